"""Every command in a terminal of 80 columns: no number is cut, and no line is too long."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from command_line import Cli, Outcome
from committed_records import RESULTS, committed
from own_experiment import write_own
from rich.console import RenderableType

from svgpbench.checks.identities import IdentityResult
from svgpbench.checks.matrix import MatrixEntry
from svgpbench.checks.report import COLUMNS, Report
from svgpbench.checks.rounding import Rounding
from svgpbench.cli.commands import COMMANDS as COMMAND_NAMES
from svgpbench.output import terminal
from svgpbench.output.table import Table
from svgpbench.runs.verification import Verdict
from svgpbench.site.building import Built

WIDTH = 80
OF_FIG3 = ("adam2021-fig3", "--results", RESULTS)

COMMANDS: dict[str, tuple[str | Path, ...]] = {
    "list": ("list",),
    "doctor": ("doctor",),
    "fetch": ("fetch", "--all", "--dry-run"),
    "data show": ("data", "show", "airfoil"),
    "data audit": ("data", "audit", "airfoil", "concrete", "pima"),
    "data split": ("data", "split", "airfoil"),
    "cost": ("cost", "t-svgp", "--exponents", "--peak-flops", "1e11", "--bandwidth", "1e10"),
    "table": ("table", *OF_FIG3, "--preset", "paper"),
    "table of costs": ("table", *OF_FIG3, "--preset", "starts", "--kind", "pareto"),
    "compare": (
        *("compare", "t-SVGP", "q-SVGP Adam", "--experiment"),
        *(*OF_FIG3, "--preset", "paper"),
    ),
    "claims": ("claims", "--released"),
    "a claim": ("claims", "adam2021-16", "--results", RESULTS),
    "speed": ("speed", "--load", RESULTS / "speed" / "cpu-M500.json"),
    "survive": ("survive", "--from-records", "--results", RESULTS / "survival"),
    "learn": ("learn", "--from-records", "--results", RESULTS / "learning"),
    "advise": ("advise", "airfoil"),
    "inducing": ("inducing", "rows.csv", "--target", "y", "--count", "3", "--count", "5"),
}

WITHOUT_TABLES: dict[str, tuple[str | Path, ...]] = {
    "plot": ("plot", *OF_FIG3, "--preset", "starts", "--out", "figure.png"),
    "roofline": (
        *("speed", "--load", RESULTS / "speed" / "cpu-M500.json", "--roofline", "roofline.png"),
    ),
    "reproduce": ("reproduce", "adam2021/fig5", "--from-records", "--results", RESULTS),
    "collect": ("collect", "records", "--out", "cells.csv"),
    "collect into": ("collect", "records", "--into", "together"),
    "run": ("run", "mine.toml"),
    "new": ("new", "method", "mine"),
    "help": ("--help",),
}

HAS_ADDRESSES = ("fetch",)
"""Commands that print addresses of files, one a line."""


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Table, int]]:
    """Tables that a command prints, with the widths that they have."""
    found: list[tuple[Table, int]] = []
    real = terminal.fitted

    def fitted(table: Table, width: int) -> Iterator[RenderableType]:
        found.append((table, width))
        return real(table, width)

    monkeypatch.setattr(terminal, "fitted", fitted)
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an experiment of a user, its table, and the committed records of one experiment."""
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "kobe2021-optima.parquet").symlink_to(
        RESULTS / "kobe2021-optima.parquet"
    )
    write_own(tmp_path)
    return tmp_path


def check_lines(outcome: Outcome) -> None:
    """A line longer than the terminal is one word or command, which would not be copied if it were broken."""
    assert outcome.out + outcome.err
    for line in f"{outcome.out}{outcome.err}".splitlines():
        if line.startswith("["):
            continue  # a finished cell: a terminal shows a bar instead
        whole = re.sub(r"`[^`]+`", lambda command: command[0].replace(" ", "_"), line)
        assert len(line) <= WIDTH or len(whole.split()) == 1, line


def check(out: str, shown: list[tuple[Table, int]]) -> None:
    assert shown
    assert not re.search(r"\d…", out)
    words = out.split()
    for table, width in shown:
        assert width <= WIDTH
        for row in table.texts:
            for column, text in zip(table.columns, row, strict=True):
                assert not column.numeric or column.wraps or set(text.split()) <= set(words), text


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_prints_readable_tables(
    cli: Cli, shown: list[tuple[Table, int]], folder: Path, command: str
) -> None:
    outcome = cli(*COMMANDS[command])
    assert outcome.code in (0, 1), outcome.err
    check(outcome.out, shown)
    if command not in HAS_ADDRESSES:
        check_lines(outcome)


@pytest.mark.parametrize("command", WITHOUT_TABLES)
def test_a_command_prints_no_line_that_is_too_long(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, folder: Path, command: str
) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    outcome = cli(*WITHOUT_TABLES[command])
    assert outcome.code in (0, 1), outcome.err
    check_lines(outcome)
    assert not re.search(r"\d…", outcome.out)


def test_the_report_prints_no_line_that_is_too_long(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    built = Built(120, 13_000_000, 4_000_000, ("an experiment with too few records, " * 5,))
    monkeypatch.setattr("svgpbench.site.building.build_site", lambda *_: built)
    monkeypatch.setattr(
        "svgpbench.papers.judged_claims.judged_and_drawn", lambda *_: nullcontext(([], None))
    )
    outcome = cli("report", "--results", RESULTS, "--out", "a-folder/of-the-site/of-all-records")
    assert outcome.code == 0 and "120 pages" in outcome.out
    check_lines(outcome)


@pytest.mark.parametrize("command", COMMAND_NAMES)
def test_help_prints_no_line_that_is_too_long(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    check_lines(cli(command, "--help"))


def test_a_check_prints_readable_tables(
    cli: Cli, shown: list[tuple[Table, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = "diagonal-precision projected-b | bernoulli-probit | matern52 | float32"
    entries = [
        MatrixEntry(case, group, 1.5e-8, f"{group}/elbo", ("numpy", "jax"), 1e-4)
        for group in COLUMNS
    ]
    identity = IdentityResult(
        14, "the bound of a collapsed method is the best of all q", "jax", 1e-12, 1e-8
    )
    report = Report(
        ["numpy", "jax"], True, entries, [identity], [Rounding(15, 1e-6, 1e-5, 1.0)], []
    )
    monkeypatch.setattr("svgpbench.checks.run_checks", lambda **_: report)
    outcome = cli("check")
    check(outcome.out, shown)
    check_lines(outcome)


def test_verdicts_on_records_are_readable(
    cli: Cli, shown: list[tuple[Table, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    records = committed("adam2021-fig3")[:3]
    verdicts = [Verdict(one, "chaotic", 1.5e-3, 2.5e-2, "its worker was killed") for one in records]
    monkeypatch.setattr("svgpbench.runs.verification.verify", lambda *_: verdicts)
    outcome = cli("verify", "--results", RESULTS)
    check(outcome.out, shown)
    check_lines(outcome)


def test_a_claim_is_one_line_with_its_grade(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    out = cli("claims", "--released").out
    rows = out.splitlines()[1 : out.splitlines().index("")]
    assert len(rows) == len({row.split()[0] for row in rows}) > 90
    assert "effect, 95" not in out and all(len(row) <= WIDTH for row in rows)
    monkeypatch.setenv("COLUMNS", "120")
    assert "effect" in cli("claims", "--released").out.splitlines()[0]
