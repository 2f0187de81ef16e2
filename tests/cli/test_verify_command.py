"""`svgpbench verify`: real records run again, and records that say something else."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace

import pytest
from command_line import Cli
from own_experiment import write_own

from svgpbench.config import CellConfig
from svgpbench.experiments.cell import identify
from svgpbench.results.difference import difference
from svgpbench.results.records import Record, write_record
from svgpbench.results.store import records_in
from svgpbench.runs.verification import MARGIN, ROUNDING, draw_sample, verdict_on, verify


@pytest.fixture
def results(cli: Cli, place: Path, tmp_path: Path) -> Path:
    """Records of t-SVGP on a user's table, in a folder of the test's own where `cli` runs."""
    write_own(tmp_path)
    for record in records_in(place / "whole", "mine").records:
        if record.config.method.name == "t-svgp":
            write_record(tmp_path / "r", record)
    return tmp_path / "r"


def rewritten(folder: Path, record: Record, factor: float, column: str = "elbo") -> None:
    trace = {k: list(v) for k, v in record.trace.items()}
    moved = float(trace[column][0] or 0.0) * factor
    trace[column][0] = None if math.isnan(moved) else moved
    write_record(folder, record.model_copy(update={"trace": trace}))


def moved(record: Record, factor: float, column: str = "elbo") -> Record:
    """The record with all numbers of a column multiplied."""
    values = [float(x or 0.0) * factor for x in record.trace[column]]
    return record.model_copy(update={"trace": record.trace | {column: values}})


def verdicts(text: str) -> list[str]:
    return [row["verdict"] for row in json.loads(text)]


def test_records_run_again_are_bitwise_the_same(cli: Cli, results: Path) -> None:
    count = len(records_in(results, "mine").records)
    outcome = cli("verify", "mine.toml", "--results", "r", "--json")
    assert outcome.code == 0
    assert verdicts(outcome.out) == ["bitwise"] * count
    every = cli("verify", "--results", "r", "--sample", "1")
    assert every.code == 0
    assert "1 bitwise" in every.out


@pytest.mark.parametrize("column", ["elbo", "lengthscale_mean"])
@pytest.mark.parametrize(
    ("factor", "kind", "code"),
    [(1 + 1e-12, "rounding", 0), (1 + 1e-6, "different", 1), (float("nan"), "different", 1)],
)
def test_a_number_that_moved_is_seen(
    cli: Cli, results: Path, factor: float, kind: str, code: int, column: str
) -> None:
    first, *others = records_in(results, "mine").records
    for other in others:
        (path,) = results.rglob(f"{other.cell_id}.json")
        path.unlink()
    rewritten(results, first, factor, column)
    outcome = cli("verify", "--results", "r", "--json")
    assert outcome.code == code
    (row,) = json.loads(outcome.out)
    assert row["verdict"] == kind
    # replicas run only where they are needed, and rounding carries them somewhere
    assert row["spread"] is None if kind == "rounding" else 0.0 < row["spread"] < 1e-9


def test_a_record_older_than_an_option_of_its_method_has_replicas(results: Path) -> None:
    record = records_in(results, "mine").records[0]
    method = record.config.method
    assert len(method.options) > 1  # a run spells them out
    older = record.config.model_copy(update={"method": method.model_copy(update={"options": {}})})
    rewritten(results, record.model_copy(update={"config": older}), 1 + 1e-6)
    spreads = [one.spread for one in verify(results, "mine") if one.kind == "different"]
    assert len(spreads) == 1
    assert 0.0 < spreads[0] < 1e-9


def test_a_record_of_another_version_is_marked_and_not_run(
    cli: Cli, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from svgpbench.methods.dual import DualSVGP

    monkeypatch.setattr(DualSVGP, "version", 2)
    outcome = cli("verify", "--results", "r", "--json")
    assert {row["reason"] for row in json.loads(outcome.out) if row["verdict"] == "superseded"} == {
        "made by version 1 of t-svgp, now at 2"
    }


def test_a_difference_within_that_of_replicas_is_chaos(results: Path) -> None:
    record = records_in(results, "mine").records[0]
    fresh = moved(record, 1 + 1e-4)
    assert difference(record, fresh) == pytest.approx(1e-4)
    assert verdict_on(record, fresh).kind == "different"
    near, far = (moved(fresh, 1 + by / MARGIN) for by in (2e-4, 5e-5))
    assert verdict_on(record, fresh, [near]).kind == "chaotic"
    assert verdict_on(record, fresh, [near]).spread == pytest.approx(2e-4 / MARGIN, rel=1e-9)
    assert verdict_on(record, fresh, [far]).kind == "different"
    assert verdict_on(record, fresh, [far, near]).kind == "chaotic"
    crashed = near.model_copy(update={"status": "crashed"})
    assert verdict_on(record, fresh, [crashed]).kind == "different"  # it says nothing of chaos
    assert MARGIN <= 10.0
    failed = record.model_copy(update={"status": "not_pd"})
    assert verdict_on(record, failed).kind == "different"
    assert verdict_on(record, record.model_copy(update={"status": "skipped"})).kind == "not run"
    assert ROUNDING <= 1e-8


def test_a_record_of_fewer_metrics_is_compared_in_those_it_has(cli: Cli, results: Path) -> None:
    for record in records_in(results, "mine").records:
        trace = {k: v for k, v in record.trace.items() if k not in ("mae", "crps")}
        write_record(results, record.model_copy(update={"trace": trace}))
    outcome = cli("verify", "--results", "r", "--json")
    assert verdicts(outcome.out) == ["bitwise", "bitwise"]
    assert [row["newer"] for row in json.loads(outcome.out)] == [["crps", "mae"]] * 2
    line = "not in all of these records, and not compared there: crps, mae"
    assert line in cli("verify", "--results", "r", "--sample", "1").out
    # but a column that a run no longer gives is a difference
    rewritten(results, record, 1.0)
    fewer = record.model_copy(update={"trace": {"iteration": [1, 2]}})
    assert verdict_on(record, fewer).kind == "different"


def test_what_a_record_lacks_makes_nothing_chaotic(results: Path) -> None:
    fresh = records_in(results, "mine").records[0]
    record = moved(fresh, 1 + 1e-4)
    older = record.model_copy(
        update={"trace": {k: v for k, v in record.trace.items() if k != "crps"}}
    )
    replica = moved(fresh, 2.0, "crps")
    assert verdict_on(record, fresh, [replica]).kind == "chaotic"
    assert verdict_on(older, fresh, [replica]).kind == "different"


def test_a_sample_is_the_same_every_time_and_draws_from_all(results: Path) -> None:
    record = records_in(results, "mine").records[0]
    many = [record.model_copy(update={"cell_id": str(i)}) for i in range(200)]
    chosen = [r.cell_id for r in draw_sample(many, 12)]
    assert chosen == [r.cell_id for r in draw_sample(many, 12)]
    assert len(set(chosen)) == 12
    assert len({r.cell_id for r in draw_sample(many, 199)}) == 199
    assert max(map(int, chosen)) > 150 and min(map(int, chosen)) < 50
    assert draw_sample(many, 500) == many
    assert chosen != [r.cell_id for r in draw_sample(many, 12, seed=1)]


def test_another_seed_draws_another_record(cli: Cli, results: Path) -> None:
    drawings = [("verify", "--results", "r", "--sample", "1", "--seed", x, "--json") for x in "01"]
    ids = [json.loads(cli(*drawing).out)[0]["cell_id"] for drawing in drawings]
    assert ids == [
        r.cell_id
        for r in (draw_sample(records_in(results, "mine").records, 1, s)[0] for s in (0, 1))
    ]
    assert len(set(ids)) == 2


def test_records_that_this_machine_cannot_run_keep_no_other_from_being_verified(
    results: Path,
) -> None:
    record = records_in(results, "mine").records[0]
    cuda = record.config.backend.model_copy(update={"device": "cuda"})
    for changes in ({"threads": 1000}, {"backend": cuda}):
        identity = identify(record.config.model_copy(update=changes))
        facts = {"config": identity.config, "cell_id": identity.cell_id}
        write_record(results, record.model_copy(update=facts))
    found = verify(results)
    reasons = sorted(verdict.reason for verdict in found if verdict.kind == "not run")
    assert len(reasons) == 2
    assert "1000 threads" in reasons[0] and "cuda" in reasons[1]
    assert [v.kind for v in found if v.kind != "not run"] == ["bitwise", "bitwise"]


def test_a_sample_is_of_records_that_can_run_here(results: Path) -> None:
    record = records_in(results, "mine").records[0]
    for seed in range(30):  # records of a framework that nobody has
        backend = record.config.backend.model_copy(update={"name": "jax"})
        config = record.config.model_copy(update={"backend": backend})
        write_record(
            results, record.model_copy(update={"config": config, "cell_id": f"{seed:016x}"})
        )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("svgpbench.backends.importlib.util.find_spec", lambda name: None)
        (verdict,) = verify(results, sample=1)
    assert (verdict.kind, verdict.record.config.backend.name) == ("bitwise", "numpy")


def test_a_cell_that_failed_by_its_numbers_is_verified_too(cli: Cli, tmp_path: Path) -> None:
    singular = ("lengthscale = 1.0", "lengthscale = 1e9")
    write_own(tmp_path, ('backends = ["numpy"]', 'backends = ["numpy"]\njitter = 0.0'), singular)
    assert cli("run", "mine.toml", "--results", "r").code == 1
    assert {record.status for record in records_in(tmp_path / "r", "mine").records} == {"not_pd"}
    outcome = cli("verify", "--results", "r", "--json")
    assert (outcome.code, verdicts(outcome.out)) == (0, ["bitwise", "bitwise"])


def test_the_chaos_of_one_cell_does_not_excuse_another(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calm, wild = records_in(results, "mine").records
    home = {record.config.split.fold: record for record in (calm, wild)}

    def run_again(cells: list[CellConfig], **_: object) -> SimpleNamespace:
        made = []
        for cell in cells:
            record = home[cell.split.fold]
            replica_of_wild = bool(cell.perturbation) and record is wild
            factor = (1 + 1e-4) * (1 + 1e-4 * replica_of_wild)
            again = {"config": cell, "cell_id": identify(cell).cell_id}
            made.append(moved(record, factor).model_copy(update=again))
        return SimpleNamespace(interrupted=False, records=made)

    monkeypatch.setattr("svgpbench.runs.verification.run_cells", run_again)
    kinds = {verdict.record.cell_id: verdict.kind for verdict in verify(results)}
    assert kinds == {calm.cell_id: "different", wild.cell_id: "chaotic"}
