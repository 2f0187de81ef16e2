"""Two methods, backends or folders on committed records: figures by hand, and every way to be wrong."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import hand_records
import numpy as np
import pytest
from committed_records import RESULTS, committed
from scipy import stats

from svgpbench.cli.application import exit_code
from svgpbench.comparison.comparison import ComparedMeasure, Comparison, compared
from svgpbench.comparison.inputs import folders, methods_or_backends
from svgpbench.errors import UserError
from svgpbench.experiments import Selection, load_experiment
from svgpbench.experiments.plan import Plan
from svgpbench.methods.dual import DualSVGP
from svgpbench.results.collect import Collected, collect
from svgpbench.results.records import Record, read_record, record_files, write_record

FIG3 = load_experiment("adam2021-fig3")
ONE, OTHER = "t-SVGP", "q-SVGP natgrad"
DATA = ("airfoil", "ionosphere", "pima")


@pytest.fixture(scope="module")
def records() -> Collected:
    """Two methods on three data sets and two backends, with the perturbed replicas of one."""
    chosen = Selection(methods=(ONE, OTHER), data=DATA, backends=("jax", "torch"))
    plan = Plan.of(FIG3, "paper", chosen)
    return collect(RESULTS, plan.only(lambda x: x.method.title in (ONE, OTHER)))


def by(found: Comparison, metric: str, **shared: str) -> ComparedMeasure:
    def fits(row: ComparedMeasure) -> bool:
        return row.metric == metric and shared.items() <= row.shared.items()

    (row,) = (row for row in found.rows if fits(row))
    return row


def raw(method: str, data: str, backend: str, metric: str) -> dict[int, dict[str, Any]]:
    """The data of the plain cells, by fold, with a metric's value."""
    found = {}
    for record in committed("adam2021-fig3"):
        config = record.config
        here = (config.method.label, config.data.name, config.backend.name, config.perturbation)
        if here == (method, data, backend, 0.0) and config.seed == 0:
            found[config.split.fold] = record.data | {"value": record.metrics[metric]}
    return found


def test_labels_that_differ_in_their_case_alone_are_two_methods() -> None:
    made = tuple(
        hand_records.record(hand_records.cell(method=label), nlpd=0.5) for label in ("A", "a", "B")
    )
    collected = Collected("by-hand", made, 0, ())
    for first in ("A", "a"):
        sides = methods_or_backends(collected, first, "b")
        assert (sides.first.name, sides.second.name) == (first, "B")


@pytest.mark.parametrize(
    ("metric", "data", "sign", "outcome"),
    [("nlpd", "ionosphere", -1, "equal"), ("nlpd", "airfoil", -1, "undecided"),
     ("rmse", "airfoil", -1, "undecided"), ("error_rate", "pima", -1, "undecided")],
)  # fmt: skip
def test_two_methods_differ_by_the_mean_over_folds_with_the_corrected_interval(
    records: Collected, metric: str, data: str, sign: int, outcome: str
) -> None:
    row = by(compared(methods_or_backends(records, ONE, OTHER)), metric, data=data, backend="jax")
    ours, theirs = (raw(method, data, "jax", metric) for method in (ONE, OTHER))
    difference = np.array([sign * (ours[k]["value"] - theirs[k]["value"]) for k in range(5)])
    overlap = np.mean([cell["n_test"] / cell["n_train"] for cell in ours.values()])
    error = math.sqrt((1 / 5 + overlap) * difference.var(ddof=1))
    half = stats.t(4).ppf(0.975) * error
    assert row.effect.value == pytest.approx(difference.mean())
    assert row.effect.low == pytest.approx(difference.mean() - half)
    assert row.effect.high == pytest.approx(difference.mean() + half)
    assert row.means == pytest.approx(
        [np.mean([cell["value"] for cell in side.values()]) for side in (ours, theirs)]
    )
    region = {"nlpd": 0.01, "rmse": 0.01 * row.means[1], "error_rate": 0.005}[metric]
    assert row.region == pytest.approx(region)
    assert (row.effect.outcome, row.pairs) == (outcome, 5)


def test_rounding_leaves_a_difference_open_and_few_starts_are_compared_run_by_run(
    records: Collected,
) -> None:
    found = compared(methods_or_backends(records, ONE, OTHER))
    assert by(found, "nlpd", data="airfoil").effect.note.startswith("chaotic")
    bound = by(found, "elbo", data="pima")
    assert bound.effect.note == "median, least, most of the runs"
    ours, theirs = (raw(method, "pima", "jax", "elbo") for method in (ONE, OTHER))
    differences = [ours[k]["value"] - theirs[k]["value"] for k in range(5)]
    assert bound.effect.value == pytest.approx(np.median(differences))
    assert (bound.effect.low, bound.effect.high) == (min(differences), max(differences))
    assert {row.shared["backend"] for row in found.rows} == {"jax"}  # the one that stands for all
    metrics = {data: {r.metric for r in found.rows if r.shared["data"] == data} for data in DATA}
    assert metrics["airfoil"] == {"elbo", "nlpd", "rmse"}
    assert metrics["pima"] == {"elbo", "nlpd", "error_rate"}


def test_sides_change_places_with_their_signs(records: Collected) -> None:
    there = by(
        compared(methods_or_backends(records, ONE, OTHER, each_backend=True), ["nlpd"]),
        "nlpd",
        data="pima",
        backend="torch",
    )
    back = by(
        compared(methods_or_backends(records, OTHER, ONE, each_backend=True), ["nlpd"]),
        "nlpd",
        data="pima",
        backend="torch",
    )
    assert back.effect.value == pytest.approx(-float(there.effect.value or 0))
    assert back.means == there.means[::-1]


def test_two_backends_are_compared_method_by_method_without_the_replicas_of_one(
    records: Collected,
) -> None:
    found = compared(methods_or_backends(records, "jax", "torch"), ["nlpd"])
    assert {row.shared["method"] for row in found.rows} == {ONE, OTHER}
    assert len(found.rows) == 2 * len(DATA)
    row = by(found, "nlpd", data="pima", method=ONE)
    ours, theirs = (raw(ONE, "pima", backend, "nlpd") for backend in ("jax", "torch"))
    assert row.effect.value == pytest.approx(
        np.mean([theirs[k]["value"] - ours[k]["value"] for k in range(5)]), abs=1e-15
    )
    assert row.effect.outcome == "equal"
    assert "30 cells of jax have no partner and are left out" in found.notes
    assert any(note.startswith("0 of 30 pairs have the same bits") for note in found.notes)
    assert not any(note.startswith("backend") for note in found.notes)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            ("t-SVPG", OTHER),
            "unknown method or backend in records of adam2021-fig3 't-SVPG'; did you",
        ),
        ((ONE, "torhc"), "did you mean 'torch'"),
        ((ONE, "jax"), "two methods or two backends, not one of each"),
    ],
)
def test_names_that_no_record_has_are_one_line(
    records: Collected, names: tuple[str, str], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        methods_or_backends(records, *names)


def test_a_side_has_no_difference_from_itself_however_it_is_spelled(records: Collected) -> None:
    with pytest.raises(UserError, match="A and B are both t-SVGP: give two that differ"):
        compared(methods_or_backends(records, ONE, ONE.lower()))


def test_a_measure_that_no_record_has_is_one_line(records: Collected) -> None:
    with pytest.raises(UserError, match=r"no two cells of t-SVGP and q-SVGP natgrad have nmse"):
        compared(methods_or_backends(records, ONE, OTHER), ["nlpd", "nmse"])


Change = Callable[[Record], dict[str, Any]]


@pytest.fixture
def pair(tmp_path: Path) -> Callable[[Change], tuple[Path, Path]]:
    """Two folders of the torch cells of pima; those of t-SVGP in the second are changed."""

    def make(change: Change) -> tuple[Path, Path]:
        before, after = tmp_path / "before", tmp_path / "after"
        for record in committed("adam2021-fig3"):
            config = record.config
            here = (config.backend.name, config.data.name)
            if here == ("torch", "pima") and config.method.title in (ONE, OTHER):
                write_record(before, record)
                mine = change(record) if config.method.title == ONE else {}
                write_record(after, record.model_copy(update=mine))
        return before, after

    return make


def worse(record: Record) -> dict[str, Any]:
    """NLPD that is higher by 0.02, and by a little more on some folds."""
    more = 0.02 + 1e-4 * record.config.split.fold
    trace = record.trace | {"nlpd": [float(x or 0) + more for x in record.trace["nlpd"]]}
    return {"trace": trace, "metrics": record.metrics | {"nlpd": trace["nlpd"][-1]}}


def test_a_change_that_costs_accuracy_is_seen_and_nothing_else(
    pair: Callable[[Change], tuple[Path, Path]],
) -> None:
    before, after = pair(lambda record: worse(record) | {"method_version": 2})
    found = compared(folders(before, after))
    row = by(found, "nlpd", data="pima", method=ONE)
    assert (row.effect.outcome, row.pairs) == ("better", 5)  # the first folder
    assert row.effect.value == pytest.approx(0.0202)
    assert by(compared(folders(after, before)), "nlpd", method=ONE).effect.outcome == "worse"
    same = by(found, "nlpd", data="pima", method=OTHER).effect
    assert (same.outcome, same.value, same.note) == ("equal", 0.0, "the same bits in every cell")
    assert by(found, "elbo", method=OTHER).effect.outcome == "equal"  # though of one start a split
    assert by(found, "elbo", method=ONE).effect.outcome == "equal"
    (bits,) = (note for note in found.notes if "same bits" in note)
    assert bits.startswith(
        "5 of 10 pairs have the same bits, times left out; the farthest are 4e-0"
    )
    assert "version of the method: 1 and 2 in 5 pairs" in found.notes
    assert sum(" in 5 pairs" in note for note in found.notes) == 1


def test_a_bound_that_is_lower_in_every_run_of_one_start_is_worse(
    pair: Callable[[Change], tuple[Path, Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    def lower(record: Record) -> dict[str, Any]:
        trace = record.trace | {"elbo": [float(x or 0) - 357.0 for x in record.trace["elbo"]]}
        return {"trace": trace, "metrics": record.metrics | {"elbo": trace["elbo"][-1]}}

    before, after = map(str, pair(lower))
    effect = by(compared(folders(Path(after), Path(before))), "elbo", method=ONE).effect
    assert (effect.outcome, effect.value) == ("worse", pytest.approx(-357.0))
    compare = ["compare", "--metric", "elbo"]
    assert exit_code([*compare, after, before]) == 0
    assert exit_code([*compare, after, before, "--fail-if-worse"]) == 1
    assert exit_code([*compare, before, after, "--fail-if-worse"]) == 0


def test_a_column_that_one_side_has_besides_makes_no_difference(
    pair: Callable[[Change], tuple[Path, Path]],
) -> None:
    def fewer(record: Record) -> dict[str, Any]:
        return {"trace": {k: v for k, v in record.trace.items() if k != "variance"}}

    before, after = pair(fewer)
    for one, other in ((before, after), (after, before)):
        notes = compared(folders(one, other)).notes
        assert "10 of 10 pairs have the same bits, times left out" in notes


def test_one_cell_that_differs_is_enough_for_an_interval(
    pair: Callable[[Change], tuple[Path, Path]],
) -> None:
    found = compared(
        folders(*pair(lambda record: {} if record.config.split.fold else worse(record)))
    )
    effect = by(found, "nlpd", method=ONE).effect
    assert effect.value == pytest.approx(0.02 / 5)
    assert (effect.outcome, effect.note) == ("undecided", "no number of splits would decide")


def test_settings_and_machines_that_differ_are_listed(
    pair: Callable[[Change], tuple[Path, Path]],
) -> None:
    def elsewhere(record: Record) -> dict[str, Any]:
        training = record.config.training.model_copy(update={"m_rate": 0.1})
        config = record.config.model_copy(update={"training": training})
        place = record.environment
        assert place is not None
        versions = place.versions | {"torch": "9.9"}
        there = place.model_copy(update={"versions": versions, "cpu": "another"})
        return {"config": config, "environment": there}

    notes = compared(folders(*pair(elsewhere))).notes
    assert "training.m_rate: 0.2 and 0.1 in 5 pairs" in notes
    assert any(note.startswith("torch: 2.") and note.endswith("9.9 in 5 pairs") for note in notes)
    assert any(note.startswith("cpu: ") and "another" in note for note in notes)


@pytest.mark.parametrize("key", ["fingerprint", "split_hash"])
def test_cells_of_other_data_or_another_split_are_not_compared(
    pair: Callable[[Change], tuple[Path, Path]], key: str
) -> None:
    found = compared(folders(*pair(lambda record: {"data": record.data | {key: "another"}})))
    assert {row.shared["method"] for row in found.rows} == {OTHER}
    assert "5 pairs of pima left out: the two sides have other data or another split" in found.notes


def test_a_side_whose_cells_fail_more_often_is_worse(
    pair: Callable[[Change], tuple[Path, Path]],
) -> None:
    before, after = pair(lambda record: {"status": "diverged", "metrics": {}})
    row = by(compared(folders(before, after)), "nlpd", method=ONE)
    assert row.effect.outcome == "better"
    assert "5 of 10 pairs have the same bits, times left out; 5 ended otherwise" in (
        compared(folders(before, after)).notes
    )
    assert "failed cells: 0 of" in row.effect.note and "5 of" in row.effect.note
    text = json.dumps(compared(folders(before, after)).to_json(), allow_nan=False)
    assert json.loads(text)["rows"][0]["outcome"] == "better"


def test_what_a_later_version_of_a_method_made_replaces_the_earlier_in_its_folder(
    pair: Callable[[Change], tuple[Path, Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = pair(worse)
    monkeypatch.setattr(DualSVGP, "version", 2)
    from svgpbench.experiments.cell import identify

    for path in record_files(after):  # version 1 stays there
        record = read_record(path)
        if record.config.method.title == ONE:
            now = identify(record.config)
            write_record(
                after, record.model_copy(update={"cell_id": now.cell_id, "method_version": 2})
            )
            write_record(after, read_record(before.joinpath(*path.parts[-3:])))
    found = compared(folders(before, after, FIG3), ["nlpd"])
    row = by(found, "nlpd", method=ONE)
    assert row.effect.value == pytest.approx(0.0202)
    assert not any("no partner" in note for note in found.notes)


def test_of_several_outdated_records_of_a_cell_the_newest_counts(
    pair: Callable[[Change], tuple[Path, Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = pair(worse)
    for path in record_files(after):
        record = read_record(path)
        if record.config.method.title == ONE:
            later = {"started": record.started + timedelta(days=1), "cell_id": "f" * 16}
            write_record(after, record.model_copy(update=later | {"metrics": {"nlpd": 9.0}}))
            break
    monkeypatch.setattr(DualSVGP, "version", 3)
    mine = [r for r in folders(before, after).second.records if r.config.method.title == ONE]
    assert sum(r.metrics["nlpd"] == 9.0 for r in mine) == 1
    assert len(mine) == len(
        [r for r in folders(before, after).first.records if r.config.method.title == ONE]
    )


def test_folders_are_narrowed_by_experiment_preset_and_backend(
    pair: Callable[[Change], tuple[Path, Path]],
) -> None:
    before, after = pair(worse)
    two_folds = Plan.of(FIG3, "quick")
    row = by(compared(folders(before, after, two_folds), ["nlpd"]), "nlpd", method=ONE)
    assert row.pairs == 2
    assert len(folders(before, after, None, ["torch"]).first.records) == 10
    another = FIG3.model_copy(update={"name": "another"})
    for arguments, message in (
        ((None, ["jax"]), "no records on jax in .*before"),
        ((another, None), "no records of another in .*before"),
    ):
        with pytest.raises(UserError, match=message):
            folders(before, after, *arguments)
    shutil.rmtree(after / "adam2021-fig3")
    with pytest.raises(UserError, match=r"no records in .*after"):
        folders(before, after)


def test_cells_that_have_no_partner_at_all_are_one_line(
    pair: Callable[[Change], tuple[Path, Path]], tmp_path: Path
) -> None:
    _, after = pair(worse)
    for path in record_files(after):
        record = read_record(path)
        if record.config.split.fold:
            write_record(tmp_path / "some", record)
            path.unlink()
    with pytest.raises(UserError, match=r"no cell of .*after has a partner in .*some"):
        compared(folders(after, tmp_path / "some"))
