"""A small suite through real runs: killed and interrupted, it has the same outcomes bit for bit."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from run_small_suite import outcomes_in, run_here
from small_suite import BUDGETS, MS

from svgpbench.cli.application import exit_code
from svgpbench.suite.board import Board
from svgpbench.suite.schema import SuiteFiles

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).with_name("run_small_suite.py")


def records(folder: Path) -> int:
    return len(list((folder / "runs").rglob("*.json")))


def stopped(folder: Path, how: signal.Signals, more: int) -> str:
    """Start the suite, stop it once it has so many more records, and return what it printed."""
    had = records(folder)
    process = subprocess.Popen(
        [sys.executable, SCRIPT, folder], stdout=subprocess.PIPE, text=True, cwd=SCRIPT.parent
    )
    end = time.monotonic() + 120
    while records(folder) < had + more:
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.01)
    process.send_signal(how)
    out, _ = process.communicate(timeout=60)
    return out.strip()


def test_a_killed_and_an_interrupted_suite_have_the_outcomes_of_a_whole_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for folder in (whole, broken):
        folder.mkdir()
    assert run_here(whole)
    assert stopped(broken, signal.SIGKILL, 3) == ""
    assert stopped(broken, signal.SIGINT, 4) == "interrupted"
    assert 7 <= records(broken) < records(whole)
    assert run_here(broken)
    made, wanted = outcomes_in(broken), outcomes_in(whole)
    for a, b in zip(made, wanted, strict=True):
        pd.testing.assert_frame_equal(a, b, check_exact=True)
    runs, trials = wanted
    # 2 problems of 2 entrants with 2 + 1 trials and 2 folds, and a reference on one
    assert (len(trials), len(runs)) == (12, 10)
    assert (runs["status"] == "ok").all() and (trials["status"] == "ok").all()
    assert set(runs["fold"]) == {0, 1} and set(trials["stage"]) == {1, 2}
    assert np.isfinite(runs[["nlpd", "elbo", "constant_nlpd", "best_nlpd"]].to_numpy()).all()
    # half of a hundred rows
    assert set(runs.loc[runs["problem"] == "thesis-sinusoid", "rows"]) == {50}
    board = Board(wanted, ["tied", "adam"])
    assert board.entrants == ["tied", "adam"] and board.problems
    assert_command_shows(board, whole, capsys)


def assert_command_shows(board: Board, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command finds the same records by the suite's file, runs none again, and shows this board."""
    files = SuiteFiles(folder / "small.toml")
    table = pd.Series(BUDGETS).unstack().astype("Int64")
    table.to_csv(files.iterations)
    times = pd.DataFrame(
        [(*key, ms) for key, ms in MS.items()], columns=["problem", "entrant", "ms"]
    )
    times.to_csv(files.step_times, index=False)
    had = records(folder)
    capsys.readouterr()
    arguments = ["leaderboard", "--suite", str(files.suite), "--results", str(folder / "runs")]
    assert exit_code([*arguments, "--run", "--jobs", "1", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert records(folder) == had
    wanted = board.to_json()
    assert shown["problems"] == wanted["problems"]
    assert [x["entrant"] for x in shown["entrants"]] == [x["entrant"] for x in wanted["entrants"]]
    assert shown["nlpd"] == wanted["nlpd"]
    assert shown["pairs"][0]["probability"] == wanted["pairs"][0]["probability"]
    assert exit_code(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
