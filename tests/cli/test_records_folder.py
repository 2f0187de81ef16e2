"""Without `--results`, commands read their own records, those of a clone, or the shipped grades."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli
from own_experiment import write_own

from svgpbench.backends import framework_missing

FIG3 = "adam2021-fig3"
LINE = "no records in runs: reading those in results\n"
READING: dict[str, tuple[str, ...]] = {
    "table": ("table", FIG3),
    "plot": ("plot", FIG3),
    "compare": ("compare", "t-SVGP", "q-SVGP Adam", "--experiment", FIG3, "--metric", "elbo"),
    "claims": ("claims", "adam2021-16"),
    "verify": ("verify", FIG3),
    "report": ("report",),
    "reproduce": ("reproduce", "adam2021/fig3", "--from-records"),
}


@pytest.fixture
def clone(tmp_path: Path, quick_results: Path) -> Path:
    """A folder with committed records in `results`, as a clone has."""
    shutil.copytree(quick_results, tmp_path / "results")
    return tmp_path


class StoppedError(Exception):
    """Raised in place of the work of a command, with its folder of records."""


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands stop as soon as they have a folder of records."""

    def stop(*arguments: Any, **options: Any) -> None:
        folders = (x for x in (*arguments, *options.values()) if isinstance(x, Path))
        raise StoppedError(str(next(folders)))

    for name in (
        "svgpbench.results.collect.collect",
        "svgpbench.papers.judged_claims.judged_claims",
        *("svgpbench.papers.judged_claims.judged_and_drawn", "svgpbench.runs.pool.run_cells"),
        "svgpbench.runs.verification.verify",
    ):
        monkeypatch.setattr(name, stop)


@pytest.mark.usefixtures("clone", "stopped")
@pytest.mark.parametrize("command", READING)
def test_committed_records_are_read_where_there_are_no_others(
    cli: Cli, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    with pytest.raises(StoppedError, match=r"^results$"):
        cli(*READING[command])
    assert capsys.readouterr().err.count(LINE) == 1


@pytest.mark.usefixtures("clone", "stopped")
@pytest.mark.parametrize(
    "command", [("run", FIG3), ("reproduce", "adam2021/fig3", "--preset", "quick")]
)
def test_commands_that_write_records_never_touch_the_committed_ones(
    cli: Cli, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    if missing := next(filter(None, map(framework_missing, ("jax", "torch", "tensorflow"))), None):
        pytest.skip(missing)  # the experiment runs on all three
    with pytest.raises(StoppedError, match=r"^runs$"):
        cli(*command)
    assert LINE not in capsys.readouterr().err


def test_own_records_and_a_named_folder_are_not_replaced(cli: Cli, clone: Path) -> None:
    assert cli("table", FIG3).err == LINE
    named = cli("table", FIG3, "--results", "runs")
    assert (named.code, LINE in named.err) == (2, False)
    shutil.move(clone / "results", clone / "runs")
    assert cli("table", FIG3).err == ""


@pytest.mark.parametrize("name", ["learning", "survival"])
def test_records_of_other_benchmarks_count(cli: Cli, clone: Path, name: str) -> None:
    (clone / "runs" / name).mkdir(parents=True)
    assert LINE not in cli("table", FIG3).err


@pytest.mark.slow
def test_claims_are_answered_by_the_shipped_grades(cli: Cli) -> None:
    every, one = cli("claims"), cli("claims", "adam2021-16")
    assert every.code == one.code == 0
    assert every.err.startswith("no records here: ") and every.err.count("\n") == 1
    assert "not run" not in every.out.splitlines()[1] and "adam2021-16" in every.out
    assert one.out.startswith("adam2021-16  ") and "20 EM iterations" in one.out


@pytest.mark.slow
def test_a_claim_that_nothing_of_ones_own_decides_has_its_shipped_grade(
    cli: Cli, tmp_path: Path
) -> None:
    write_own(tmp_path, ("folds = [0, 1]", "folds = [0]"))
    assert cli("run", "mine.toml").code == 0
    done = cli("claims", "adam2021-16")
    assert "adam2021-16  t-SVGP is at least as good" in done.out
    assert ": holds (as printed)" in done.out
    assert "--results runs shows yours alone" in " ".join(done.err.split())
    (entry,) = json.loads(cli("claims", "adam2021-16", "--json").out)
    assert (entry["grade"], entry["released"]["grade"]) == ("not run", "holds")
    alone = cli("claims", "adam2021-16", "--results", "runs")
    assert "not run" in alone.out and "shipped" not in alone.out + alone.err
