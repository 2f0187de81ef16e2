"""Which printed figures have one of ours beside them, and what it is."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hand_records import cell, record
from planted_grades import graded

from svgpbench.config import SplitConfig
from svgpbench.papers import PrintedFigure, load_paper
from svgpbench.papers.grades import Grade, Judgement
from svgpbench.papers.grading import Judged, Part
from svgpbench.papers.published_values import (
    PrintedComparison,
    as_frame,
    as_text,
    compare_with_records,
)
from svgpbench.results.records import Record

SIZES = {"n_train": 90, "n_test": 10}


def printed(
    setting: str, value: str = "0.5", metric: str = "nlpd", spread: str = ""
) -> PrintedFigure:
    return PrintedFigure("table1", setting, metric, value, spread)


def fold(number: int, nlpd: float, *, method: str = "A", status: str = "ok", **more: Any) -> Record:
    return record(cell(method=method, fold=number, **more), status=status, data=SIZES, nlpd=nlpd)


def random_split(seed: int, nlpd: float) -> Record:
    return record(cell(split=SplitConfig(kind="random", seed=seed)), data=SIZES, nlpd=nlpd)


FOLDS = [fold(0, 0.4), fold(1, 0.6)]


def only(figure: PrintedFigure, *records: Record) -> PrintedComparison:
    (found,) = compare_with_records([figure], records, [])
    return found


@pytest.mark.parametrize(
    ("setting", "metric", "is_there"),
    [("A", "nlpd", True), ("A, airfoil", "nlpd", True), ("B", "nlpd", False), ("A, sonar", "nlpd", False),
     ("A", "mean rank", False), ("A", "nlpd / 1e5", True)],
)  # fmt: skip
def test_a_setting_is_a_label_or_a_label_and_a_data_set(
    setting: str, metric: str, is_there: bool
) -> None:
    assert len(compare_with_records([printed(setting, metric=metric)], FOLDS, [])) == is_there


def test_a_label_alone_is_no_setting_of_two_data_sets() -> None:
    both = [*FOLDS, fold(0, 0.1, data="boston")]
    assert compare_with_records([printed("A")], both, []) == []
    assert only(printed("A, boston"), *both).ours.mean == pytest.approx(0.1)


def test_the_difference_is_ours_less_the_printed_one_in_the_units_of_the_print() -> None:
    assert only(printed("A"), *FOLDS).difference == pytest.approx(0.0)
    assert only(printed("A", value="0.2"), *FOLDS).difference == pytest.approx(0.3)
    scaled = only(printed("A", value="40", metric="nlpd / 1e-2"), *FOLDS)
    assert (scaled.ours.mean, scaled.difference) == pytest.approx((50.0, 10.0))


@pytest.mark.parametrize("value", ["<1", ">0.1", ""])
def test_a_bound_and_what_cannot_be_read_have_no_difference(value: str) -> None:
    one = only(printed("A", value=value), *FOLDS)
    assert math.isnan(one.difference)
    (row,) = as_text([one]).rows
    assert (row[3], row[-1]) == (value or "cannot be read", "–")


def test_ours_is_of_the_backend_that_stands_for_all_without_replicas() -> None:
    others = [fold(0, 9.0, backend="torch"), fold(0, 9.0, perturbation=1e-15)]
    assert only(printed("A"), *FOLDS, *others).ours.mean == pytest.approx(0.5)


def test_seeds_of_a_split_are_averaged_first_and_splits_are_the_unit() -> None:
    uneven = [fold(0, 0.4), fold(0, 0.8, seed=1), fold(1, 0.6)]
    ours = only(printed("A"), *uneven).ours
    assert ours.mean == pytest.approx(0.6)
    assert (ours.n, ours.unit) == (2, "splits")
    assert ours.half == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("kind", ["folds", "random splits"])
def test_half_an_interval_is_student_s_corrected_for_the_overlap_of_the_splits(kind: str) -> None:
    """Nadeau and Bengio 2003: s·√(1/n + n_test/n_train)."""
    values = (0.4, 0.6, 0.9)
    records = [fold(k, x) if kind == "folds" else random_split(k, x) for k, x in enumerate(values)]
    ours = only(printed("A"), *records).ours
    spread = math.sqrt(1 / 3 + 10 / 90) * float(np.std(values, ddof=1))
    assert ours.half == pytest.approx(scipy.stats.t.ppf(0.975, 2) * spread)
    assert (ours.n, ours.unit) == (3, "splits")


def test_one_cell_has_a_mean_and_no_interval() -> None:
    one = only(printed("A", spread="0.1"), record(cell(split=SplitConfig()), data=SIZES, nlpd=0.4))
    (row,) = as_text([one]).rows
    assert math.isnan(one.ours.half)
    assert row[3:] == [
        "0.5±0.1",
        "0.4000 (1 start a split where 5 make an interval)",
        "1 cells",
        "-0.1",
    ]


def test_a_failed_cell_leaves_no_mean_that_flatters() -> None:
    one = only(printed("A"), *FOLDS, fold(2, 0.1, status="not_pd"))
    (row,) = as_text([one]).rows
    assert row[4:] == ["– (1 of 3 cells without it)", "3 cells", "–"]


def claim_on(name: str, kind: str, *artefacts: str) -> Judged:
    """A claim of a kind on some artefacts, with a grade of its own."""
    whole = load_paper("adam2021").claims[0]
    changes = {"id": name, "kind": kind, "artefacts": artefacts, "parts": ()}
    grade = {"number": Grade.holds, "exact": Grade.fails}.get(kind, Grade.mixed)
    return graded(whole.model_copy(update=changes), grade)


@pytest.mark.parametrize(
    ("claims", "grades"),
    [
        ([("adam2021-01", "number", "table1"), ("adam2021-02", "compare", "table1")], "adam2021-01: holds"),
        ([("adam2021-02", "compare", "fig2", "table1")], "adam2021-02: mixed"),
        ([("adam2021-03", "exact", "table1"), ("adam2021-02", "count", "table1")], "adam2021-02: mixed"),
        ([("adam2021-01", "number", "table2"), ("adam2021-02", "compare", "fig1")], ""),
        ([("adam2021-03", "exact", "table1")], ""),
    ],
)  # fmt: skip
def test_a_number_has_the_grades_of_claims_on_its_own_artefact(
    claims: list[tuple[str, ...]], grades: str
) -> None:
    """Those on numbers alone, where there are any; identities never."""
    (row,) = compare_with_records([printed("A")], FOLDS, [claim_on(*one) for one in claims])
    assert row.grades == grades


@pytest.mark.parametrize(
    ("setting", "method", "grades"),
    [("A", "A", "adam2021-01: open"), ("A", "B", ""), ("A, airfoil", "A", "adam2021-01: holds")],
)
def test_a_claim_about_another_number_of_the_table_is_not_named(
    setting: str, method: str, grades: str
) -> None:
    number = next(x for x in load_paper("adam2021").claims if x.id == "adam2021-17").parts[0]
    judged = claim_on("adam2021-01", "number", "table1")
    part = number.model_copy(update={"artefact": "table1", "method": method})
    claim = judged.claim.model_copy(update={"parts": (part,)})
    judged = replace(judged, claim=claim, parts=(Part("", "core", Judgement(Grade.open, ())),))
    (row,) = compare_with_records([printed(setting)], FOLDS, [judged])
    assert row.grades == grades


def test_a_row_of_the_frame_has_each_number_under_its_name() -> None:
    rows = compare_with_records([printed("A", value="0.2", spread="0.1")], FOLDS, [])
    (found,) = as_frame(rows).to_dict(orient="records")
    ours = rows[0].ours
    expected = {
        "artefact": "table1", "setting": "A", "stands": "", "metric": "nlpd", "printed": "0.2",
        "printed_spread": "0.1", "ours": pytest.approx(0.5), "ours_half_interval": ours.half,
        "n": 2, "unit": "splits", "note": "", "difference": pytest.approx(0.3), "other_data": "",
        "grade": "",
    }  # fmt: skip
    assert found == expected
    assert ours.half > 0.1
