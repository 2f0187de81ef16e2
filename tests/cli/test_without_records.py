"""Commands of a user who has the wheel alone: no folder of records, and one line that says so."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from command_line import Cli
from committed_records import RESULTS

from svgpbench.comparison.released import RELEASED, TRACED
from svgpbench.results.store import experiments, records_in

SIZES = ("advise", "--n", "90", "--D", "1", "--likelihood", "gaussian")


def test_claims_are_answered_by_the_shipped_grades(cli: Cli) -> None:
    every, one = cli("claims"), cli("claims", "adam2021-16")
    assert every.code == one.code == 0
    assert every.err.startswith("no records here: ") and every.err.count("\n") == 1
    assert "not run" not in every.out.splitlines()[1] and "adam2021-16" in every.out
    assert one.out.startswith("adam2021-16  ") and "20 EM iterations" in one.out
    unknown = cli("claims", "adam2021-99")
    assert unknown.code == 2 and "unknown claim 'adam2021-99'" in unknown.err


def test_advice_is_what_all_committed_records_give(cli: Cli) -> None:
    shipped, committed = cli(*SIZES, "--json"), cli(*SIZES, "--json", "--results", RESULTS)
    assert shipped.err.startswith("no records here: ") and shipped.err.count("\n") == 1
    assert committed.err == ""
    assert json.loads(shipped.out) == json.loads(committed.out)
    assert json.loads(shipped.out)["fields"]


def test_named_records_are_not_replaced(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    assert cli(*SIZES, "--results", "runs").err == ""


@pytest.mark.slow
def test_the_shipped_records_are_the_committed_ones_with_shorter_traces() -> None:
    """`make ledger` writes them."""
    assert experiments(RELEASED) == experiments(RESULTS)
    for name in experiments(RESULTS):
        kept, whole = records_in(RELEASED, name).records, records_in(RESULTS, name).records
        assert [one.cell_id for one in kept] == [one.cell_id for one in whole]
        for one, record in zip(kept, whole, strict=True):
            trace = {key: record.trace[key] for key in TRACED if key in record.trace}
            assert one == record.model_copy(update={"trace": trace, "environment": None})
    for path in (RESULTS / "learning").glob("*.jsonl"):
        assert (RELEASED / "learning" / path.name).read_bytes() == path.read_bytes()


def test_a_wheel_has_the_shipped_records_and_they_are_small() -> None:
    project = tomllib.loads((RESULTS.parent / "pyproject.toml").read_text("utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"]["svgpbench"]
    in_wheel = {path for pattern in patterns for path in RELEASED.parent.glob(pattern)}
    files = {path for path in RELEASED.rglob("*") if path.is_file()}
    assert files and files <= in_wheel
    assert sum(path.stat().st_size for path in files) < 5_000_000
