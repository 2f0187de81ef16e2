"""Table 1 of adam2021 on planted records: its claims come out each way, and stand beside what is printed."""

from __future__ import annotations

from pathlib import Path

import pytest
from planted_table1 import TABLE1, Levels, plant, plant_choice

from svgpbench.experiments.plan import Plan
from svgpbench.papers import load_paper
from svgpbench.papers.grading import Judged, Part, judge
from svgpbench.papers.published_values import as_text, compare_with_records
from svgpbench.results.collect import collect

PAPER = load_paper("adam2021")
PRINTED = [figure for figure in PAPER.printed if figure.artefact == "table1"]
AS_PRINTED: Levels = {
    "t-SVGP 1E1M .040 .05": 0.304, "q-SVGP 1E1M .040 .05": 0.304,
    "t-SVGP 2E1M .030 .10": 0.283, "q-SVGP 2E1M .030 .10": 0.288,
    "t-SVGP 3E1M .030 .10": 0.281, "q-SVGP 3E1M .030 .10": 0.293,
    "t-SVGP 4E1M .035 .03": 0.255, "q-SVGP 4E1M .035 .03": 0.259,
    "t-SVGP 4E2M .030 .03": 0.283, "q-SVGP 4E2M .030 .03": 0.282,
    "t-SVGP 4E1M .030 .03": 0.230, "q-SVGP 4E1M .030 .03": 0.243,
    "t-SVGP 1E1M .030 .03": 0.330, "t-SVGP 2E1M .030 .03": 0.290, "t-SVGP 3E1M .030 .03": 0.260,
    "q-SVGP Adam": 0.600,
}  # fmt: skip


def judged(number: int, folder: Path, *changes: Levels, **more: object) -> Judged:
    """A claim on records whose NLPDs are those that are printed, but for some."""
    levels = {name: value for each in (AS_PRINTED, *changes) for name, value in each.items()}
    plant_choice(folder)
    plant(folder, "paper", levels, **more)  # type: ignore[arg-type]
    return only(number, folder)


def only(number: int, folder: Path) -> Judged:
    """A claim on the records of a folder."""
    (one,) = judge(PAPER, [x for x in PAPER.claims if x.id == f"adam2021-{number}"], folder)
    return one


def of_keys(one: Judged) -> dict[str, Part]:
    """The parts of a claim by the keys that its finding uses."""
    pairs = zip(one.claim.parts, one.parts, strict=True)
    return {stated.key: part for stated, part in pairs if stated.key}


def outcomes(part: Part) -> dict[str, str]:
    return {effect.of: effect.outcome for effect in part.judgement.effects}


def test_every_printed_figure_is_a_part_of_the_claim_with_its_number() -> None:
    (claim,) = (claim for claim in PAPER.claims if claim.id == "adam2021-17")
    parts = [part.model_dump() for part in claim.parts if part.artefact == "table1"]
    found = {(x["method"], f"{x['printed']:.3f}", f"{x['spread']:.3f}") for x in parts}
    assert found == {(x.setting, x.value, x.spread) for x in PRINTED if x.value}
    assert {part["gap"] for part in parts} == {0.013}


def test_the_numbers_hold_as_printed_row_by_row(tmp_path: Path) -> None:
    one = judged(17, tmp_path)
    assert (one.grade, one.effect) == ("holds", "7 as printed")
    assert one.condition == "1 data set, 1 split, 5 starts, jax"
    assert "0.304 and 0.304" in one.finding
    of_table1 = [part for part in one.parts if part.records]
    assert [part.grade for part in of_table1] == ["holds"] * 11
    assert of_table1[0].title == "q-SVGP, lrE=.040 lrM=.05 E=1 M=1 (q-SVGP 1E1M .040 .05)"
    assert len(one.records) == 11 * 5


def test_a_row_that_is_off_makes_the_numbers_mixed_and_is_named(tmp_path: Path) -> None:
    one = judged(17, tmp_path, {"t-SVGP 4E1M .030 .03": 0.260})
    assert (one.grade, one.effect) == ("mixed", "6 as printed, 1 not as printed")
    assert "t-SVGP, lrE=.030 lrM=.03 E=4 M=1: fails" in one.finding


def test_other_numbers_fail(tmp_path: Path) -> None:
    assert judged(17, tmp_path, dict.fromkeys(AS_PRINTED, 0.15)).grade == "fails"


def test_a_failed_cell_leaves_its_number_open(tmp_path: Path) -> None:
    one = judged(17, tmp_path, fails=["t-SVGP 4E1M .030 .03"])
    assert (one.grade, of_keys(one)["t_last"].grade) == ("open", "open")


@pytest.mark.parametrize("status", ["crashed", "error", "skipped"])
def test_a_cell_that_the_machine_ended_decides_nothing(tmp_path: Path, status: str) -> None:
    one = judged(17, tmp_path, fails=["t-SVGP 4E1M .030 .03"], status=status)
    assert (one.grade, one.records) == ("not run", ())
    assert one.finding == f"5 of 85 cells of adam2021-table1 ended {status}; run them again"


SIX = ["1E1M .05", "2E1M .10", "3E1M .10", "4E1M .03", "4E2M .03", "4E1M .03, lrE .030"]


def test_t_never_worse_is_a_setting_each_and_one_rule_over_six(tmp_path: Path) -> None:
    one = judged(18, tmp_path)
    assert set(outcomes(one.parts[0])) == set(SIX)
    assert set(outcomes(one.parts[0]).values()) == {"no worse"}
    assert one.grade == "holds"
    assert len(one.parts[0].records) == 6 * 2 * 5


@pytest.mark.parametrize(
    ("t", "grade", "outcome"),
    [
        ({"t-SVGP": 0.2}, "holds", "no worse"),
        ({"t-SVGP": 0.5}, "fails", "worse"),
        ({"t-SVGP 4E2M": 0.4}, "mixed", "no worse"),
    ],
)
def test_t_never_worse_comes_out_each_way(
    tmp_path: Path, t: Levels, grade: str, outcome: str
) -> None:
    levels = {"t-SVGP": 0.3, "q-SVGP": 0.3, **t}
    plant_choice(tmp_path)
    plant(tmp_path, "paper", levels)
    one = only(18, tmp_path)
    assert one.grade == grade
    assert outcomes(one.parts[0])["1E1M .05"] == outcome


def test_several_e_steps_pay_in_the_printed_rows_and_at_equal_rates(tmp_path: Path) -> None:
    one = judged(19, tmp_path)
    assert one.grade == "holds"
    rows, cause = one.parts_of_role("core")
    assert {*outcomes(rows).values(), *outcomes(cause).values()} == {"better"}


def test_several_e_steps_that_do_not_pay_at_equal_rates_are_mixed(tmp_path: Path) -> None:
    same = {f"t-SVGP {k}E1M .030 .03": 0.25 + 1e-4 * k for k in (1, 2, 3, 4)}
    one = judged(19, tmp_path, same)
    assert [part.grade for part in one.parts_of_role("core")] == ["holds", "fails"]
    assert one.grade == "mixed"


@pytest.mark.parametrize(("adam", "grade"), [(0.6, "holds"), (0.3042, "fails"), (0.1, "fails")])
def test_natural_gradients_beat_adam_on_mnist_in_density(
    tmp_path: Path, adam: float, grade: str
) -> None:
    bounds = {"": -20_000.0, "q-SVGP Adam": -20_000.0 - 1e5 * (adam - 0.304)}
    plant(tmp_path, "six-starts", AS_PRINTED | {"q-SVGP Adam": adam}, bounds)
    one = only(25, tmp_path)
    assert one.grade == grade
    assert [part.grade for part in one.parts if part.records] == [grade] * 4


def test_each_printed_figure_has_ours_beside_it_row_by_row(tmp_path: Path) -> None:
    cells = plant(tmp_path, "paper", AS_PRINTED)
    records = collect(tmp_path, Plan(TABLE1, tuple(cells))).records
    rows = compare_with_records(PRINTED, records, [], TABLE1.methods)
    assert [row.printed for row in rows] == PRINTED
    for row in rows:
        if row.printed.value:
            assert row.difference == pytest.approx(0.0, abs=1e-12)
            assert (row.ours.n, row.ours.unit) == (5, "starts")
    text = as_text(rows).rows
    assert text[1][0] == "t-SVGP, lrE=.040 lrM=.05 E=1 M=1 (t-SVGP 1E1M .040 .05)"
    assert text[2][0] == "q-SVGP, lrE=? lrM=.10 E=2 M=1 (q-SVGP 2E1M .030 .10)"
    assert text[2][2:3] == text[3][2:3] == [""]  # no claim is asked for
    assert text[2][3:] == ["cannot be read", "0.288±0.002", "5 starts", "–"]


def test_the_grade_beside_a_figure_is_that_on_it(tmp_path: Path) -> None:
    one = judged(17, tmp_path, {"t-SVGP 4E1M .030 .03": 0.260})
    records = collect(tmp_path, Plan.of(TABLE1, "paper")).records
    rows = compare_with_records(PRINTED, records, [one], TABLE1.methods)
    grades = ["holds"] * 2 + ["no figure"] + ["holds"] * 8 + ["fails"]
    assert [row[2] for row in as_text(rows).rows] == [f"adam2021-17: {x}" for x in grades]


def test_all_methods_that_may_stand_for_a_row_stand_there_before_one_is_chosen(
    tmp_path: Path,
) -> None:
    cells = plant(tmp_path, "rates", {"": 0.3, "t-SVGP 2E1M .040": 0.4})
    records = collect(tmp_path, Plan(TABLE1, tuple(cells))).records
    rows = compare_with_records(PRINTED, records, [], TABLE1.methods)
    second = [row for row in rows if row.printed.setting == "t-SVGP, lrE=? lrM=.10 E=2 M=1"]
    rates = [".030", ".035", ".040"]
    assert [row.method for row in second] == [f"t-SVGP 2E1M {rate} .10" for rate in rates]
    assert [row.ours.mean for row in second] == pytest.approx([0.302, 0.302, 0.402])
    last = [row for row in rows if row.printed.setting == "t-SVGP, lrE=.030 lrM=.03 E=4 M=1"]
    assert [row.method for row in last] == ["t-SVGP 4E1M .030 .03"]


def test_rates_alone_decide_nothing(tmp_path: Path) -> None:
    plant(tmp_path, "rates", {"": 0.3})
    one = only(18, tmp_path)
    why = "73 of 85 cells of adam2021-table1 have not run"
    assert (one.grade, one.finding) == ("not run", why)


def test_nothing_is_decided_at_rates_that_the_records_do_not_choose(tmp_path: Path) -> None:
    plant(tmp_path, "paper", AS_PRINTED)
    assert only(18, tmp_path).finding == "14 of the cells that choose have not run"
    row = [x for x in TABLE1.labels if x.startswith("q-SVGP 2E1M") and x.endswith(".10")]
    named = next(label for label in row if label in (TABLE1.presets["paper"].methods or ()))
    other = next(label for label in row if label != named)
    plant_choice(tmp_path, [other])
    one = only(18, tmp_path)
    assert one.grade == "not run"
    why = f"{named!r} is not what records choose: {other!r} has the best ELBO of preset rates"
    assert one.finding == why
