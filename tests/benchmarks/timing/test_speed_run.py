"""Backends and peers side by side: equivalence first, rounds in turn, discarded rounds counted."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from svgpbench.benchmarks.timing import run_speed
from svgpbench.benchmarks.timing.report import SpeedReport, TimedCell, check_agreement
from svgpbench.benchmarks.timing.rounds import Round
from svgpbench.benchmarks.timing.tables import times_table
from svgpbench.cli import speed
from svgpbench.cli.application import exit_code


@pytest.fixture
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("svgpbench.benchmarks.timing.compare.ROUND_S", 0.01)
    monkeypatch.setattr("svgpbench.benchmarks.timing.compare.SETTLE_S", 0.0)


def cell(source: str, figure: float, *, peer: bool = False, step: str = "e_step") -> TimedCell:
    return TimedCell("tiny", step, source, "m", "q-svgp", peer, figure=figure)


@pytest.mark.usefixtures("short_rounds")
def test_backends_are_timed_in_turn_in_processes_of_their_own() -> None:
    lines: list[str] = []
    report = run_speed(
        ["tiny"],
        ["numpy", "torch"],
        ["e_step", "m_step"],
        repeats=2,
        on_progress=lines.append,
        methods=["t-svgp", "q-svgp"],
        max_other_cores=1e9,
    )
    assert report.ok
    assert [c.title for c in report.cells[:4]] == [
        "numpy t-svgp",
        "numpy q-svgp",
        "torch t-svgp",
        "torch q-svgp",
    ]
    assert {c.step for c in report.cells} == {"e_step", "m_step"}
    assert all(len(c.rounds) == 2 and c.times() is not None for c in report.cells)
    assert all(c.difference is not None and c.difference < 1e-10 for c in report.cells)
    assert report.environment["torch"]["threads"] == 1
    assert lines
    record = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert record["rounds"] == {"total": 16, "discarded": 0}
    assert len(times_table(report).rows) == 8


@pytest.mark.usefixtures("short_rounds")
def test_a_run_hands_over_what_is_timed_after_each_step_and_when_it_is_interrupted() -> None:
    unfinished: list[SpeedReport] = []

    def stop_in_the_second_step(line: str) -> None:
        if "m_step" in line:
            raise KeyboardInterrupt

    def run(on_progress: Callable[[str], None]) -> SpeedReport:
        return run_speed(
            ["tiny"], ["numpy"], ["e_step", "m_step"], repeats=1, on_progress=on_progress,
            methods=["t-svgp"], max_other_cores=1e9,
            on_step=lambda report: unfinished.append(SpeedReport.from_json(report.to_json())),
        )  # fmt: skip

    whole = run(lambda line: None)
    assert not whole.interrupted
    assert [(x.interrupted, len(x.cells)) for x in unfinished] == [(True, 1), (True, 2)]
    unfinished.clear()
    stopped = run(stop_in_the_second_step)
    assert stopped.interrupted and stopped.notes()[0].startswith("interrupted: ")
    assert [[cell.step for cell in report.cells] for report in unfinished] == [["e_step"]]


@pytest.mark.usefixtures("short_rounds")
def test_the_record_of_a_killed_run_has_the_steps_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, stored = tmp_path / "speed.json", list[SpeedReport]()

    def look(line: str) -> None:
        if "m_step: preparing" in line:
            stored.append(SpeedReport.read(out))

    monkeypatch.setattr("svgpbench.cli.speed.tell", look)
    steps = ("--step", "e_step", "--step", "m_step", "--repeats", "1", "--no-floor")
    where = ("--problem", "tiny", "--backend", "numpy", "--method", "t-svgp", "--out", str(out))
    assert exit_code(["speed", *where, *steps, "--max-other-cores", "1000"]) == 0
    (halfway,) = stored
    assert halfway.interrupted and [cell.step for cell in halfway.cells] == ["e_step"]
    assert not SpeedReport.read(out).interrupted


@pytest.mark.usefixtures("short_rounds")
def test_disturbed_rounds_are_discarded_and_counted() -> None:
    report = run_speed(
        ["tiny"], ["numpy"], ["e_step"], repeats=1, methods=["t-svgp"], max_other_cores=-1.0
    )
    assert report.discarded() == (1, 1)
    assert report.cells[0].times() is None
    assert not times_table(report).rows
    assert any("1 of 1 rounds discarded" in line for line in report.notes())


def test_a_figure_that_differs_is_not_timed() -> None:
    cells = [cell("a", -1.0), cell("b", -1.0 + 1e-12), cell("c", -1.0 + 1e-6), cell("d", -1.0)]
    check_agreement(cells)
    assert [bool(c.error) for c in cells] == [False, False, True, False]
    assert "tolerance 1e-08" in cells[2].error


def test_a_figure_that_is_not_finite_is_not_timed() -> None:
    cells = [cell("a", float("nan"))]
    check_agreement(cells)
    assert cells[0].error


def test_ratio_is_taken_round_by_round_where_both_are_clean() -> None:
    ours, theirs = cell("a", 0.0), cell("gpflow", 0.0, peer=True)
    for a, b, clean in ((1.0, 2.0, True), (10.0, 40.0, True), (1.0, 99.0, False), (2.0, 6.0, True)):
        ours.rounds.append(Round.measured((a,), 0.0, clean))
        theirs.rounds.append(Round.measured((b,), 0.0, True))
    ratio = ours.ratio_to(theirs)
    assert ratio is not None and (ratio.median, ratio.least, ratio.of) == (3.0, 2.0, 3)
    report = SpeedReport([ours, theirs], {"max_other_cores": 0.1}, {})
    assert report.to_json()["cells"][0]["faster_than"]["gpflow m"]["median"] == 3.0


def test_a_run_with_nothing_to_time_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where no framework is installed and no backend is named."""
    monkeypatch.setattr(speed, "frameworks", dict)
    assert exit_code(["speed", "--problem", "tiny"]) == 2
    told = capsys.readouterr().err
    assert "no backend to time" in told and told.count("\n") == 1


def test_command_refuses_mistakes_in_one_line() -> None:
    for arguments in (
        ["--peer-python", "/no/such/python"],
        ["--peer", "gpflw"],
        ["--peer", "gpflow@/no/such.whl", "--peer-python", sys.executable],
        ["--problem", "reg-M0"],
        ["--out", "/no/such/folder/x.json"],
        ["--backend", "trch"],
    ):
        done = subprocess.run(
            [sys.executable, "-P", "-m", "svgpbench.cli", "speed", *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
