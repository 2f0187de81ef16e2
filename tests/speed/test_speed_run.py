"""Backends and peers side by side: equivalence first, rounds in turn, discarded rounds counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from svgpbench.errors import UserError
from svgpbench.speed import locate_peers, run_speed
from svgpbench.speed.peers import PEERS
from svgpbench.speed.report import Cell, Round, SpeedReport, check_agreement


@pytest.fixture
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("svgpbench.speed.compare.ROUND_S", 0.01)


def cell(source: str, figure: float, *, peer: bool = False, step: str = "e_step") -> Cell:
    return Cell("tiny", step, source, "m", "q-svgp", peer, figure=figure)


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
    assert len(report.table().rows) == 8


@pytest.mark.usefixtures("short_rounds")
def test_disturbed_rounds_are_discarded_and_counted() -> None:
    report = run_speed(
        ["tiny"], ["numpy"], ["e_step"], repeats=1, methods=["t-svgp"], max_other_cores=-1.0
    )
    assert report.discarded() == (2, 2)
    assert report.cells[0].times() is None
    assert not report.table().rows
    assert any("2 of 2 rounds discarded" in line for line in report.notes())


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
        ours.rounds.append(Round((a,), 0.0, clean))
        theirs.rounds.append(Round((b,), 0.0, True))
    ratio = ours.ratio_to(theirs)
    assert ratio is not None and (ratio.median, ratio.least, ratio.of) == (3.0, 2.0, 3)
    report = SpeedReport([ours, theirs], {"max_other_cores": 0.1}, {})
    assert report.to_json()["cells"][0]["faster_than"]["gpflow m"]["median"] == 3.0


@pytest.mark.parametrize(
    ("python", "says"),
    [
        ("/no/such/python", "no such program"),
        ("/bin/false", "not a python that runs"),
        ("/bin/echo", "not a python that runs"),
    ],
)
def test_bad_peer_python_is_one_line(python: str, says: str) -> None:
    with pytest.raises(UserError, match=says) as told:
        locate_peers(["gpflow"], python)
    assert "\n" not in str(told.value)


def test_python_without_the_peer_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PEERS, "gpflow", PEERS["gpflow"]._replace(module="no_such_peer"))
    with pytest.raises(UserError, match="-m pip install no_such_peer"):
        locate_peers(["gpflow"], sys.executable)


def test_peer_without_python_names_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SVGPBENCH_GPFLOW_PYTHON", raising=False)
    assert locate_peers(None) == {}
    with pytest.raises(UserError, match="--peer-python"):
        locate_peers(["gpflow"])
    with pytest.raises(UserError, match="unknown peer 'gpflw'"):
        locate_peers(["gpflw"])


def test_command_refuses_mistakes_in_one_line() -> None:
    for arguments in (
        ["--peer-python", "/no/such/python"],
        ["--problem", "reg-M10"],
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


@pytest.mark.skipif(
    not os.environ.get("SVGPBENCH_GPFLOW_PYTHON"), reason="SVGPBENCH_GPFLOW_PYTHON is not set"
)
@pytest.mark.usefixtures("short_rounds")
@pytest.mark.parametrize("problem", ["tiny", "tiny-bern", "tiny-softmax"])
def test_gpflow_computes_the_same_numbers(problem: str) -> None:
    report = run_speed(
        [problem], ["numpy"], peers=locate_peers(["gpflow"]), repeats=1, max_other_cores=1e9
    )
    assert report.ok, report.notes()
    theirs = {cell.step: cell.difference for cell in report.cells if cell.peer}
    # its Adam is Keras's, whose rate and decays are float32: the report's own tolerance holds
    assert theirs.pop("m_step") is not None and theirs.pop("em_step") is not None
    assert set(theirs) == {"e_step", "e_step_held", "predict"}
    assert all(difference is not None and difference <= 1e-10 for difference in theirs.values())


def test_peer_scripts_import_nothing_of_this_project() -> None:
    for peer in PEERS.values():
        assert isinstance(peer.script, Path)
        lines = peer.script.read_text(encoding="utf-8").splitlines()
        imports = [line for line in lines if line.lstrip().startswith(("import ", "from "))]
        assert imports and not any("svgpbench" in line for line in imports)
