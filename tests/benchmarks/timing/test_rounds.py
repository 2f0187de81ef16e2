"""A speed run with processes that answer from a script: what is asked, in which order, and what is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from svgpbench.benchmarks.timing import compare, run_speed
from svgpbench.benchmarks.timing.meter import Load
from svgpbench.benchmarks.timing.peers import Located
from svgpbench.benchmarks.timing.peers.libraries import GPFLOW
from svgpbench.benchmarks.timing.process import ProcessFailed, StepRefused
from svgpbench.benchmarks.timing.report import SpeedReport, TimedCell
from svgpbench.benchmarks.timing.tables import times_table
from svgpbench.libraries.steps import HELD_STEPS
from svgpbench.runs.cores import usable_cores

Script = dict[str, Any]
SCRIPT: Script = {
    "first_call_s": 9.0,
    "call_s": 0.1,
    "figure": -1.0,
    "seconds": [0.2],
    "others": [0.0],
}
PEER = Located(GPFLOW, Path("/of/gpflow"))
Asked = list[tuple[str, str, str, str]]


class Scripted:
    """In place of `TimedProcess`: answers by its name, and notes what it was asked."""

    def __init__(self, name: str, scripts: dict[str, Script], asked: list[Any]) -> None:
        self.name, self.environment = name, {"of": name}
        self.script, self.asked = SCRIPT | scripts.get(name, {}), asked
        self.round = 0

    def __enter__(self) -> Scripted:
        return self

    def __exit__(self, *_: object) -> None:
        self.asked.append(("end", self.name, "", ""))

    def wait_until_ready(self) -> None:
        if "dies" in self.script:
            raise ProcessFailed(self.script["dies"])

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        self.asked.append((request["do"], self.name, request["method"], request["step"]))
        if request["do"] == "prepare":
            with np.load(request["problem"], allow_pickle=False) as problem:
                assert problem["X"].shape == (16, 3)  # is there, and is the tiny one
        if "refuses" in self.script:
            raise StepRefused(self.script["refuses"])
        keys = ("first_call_s", "call_s", "figure", "mode", "modes")
        return {key: self.script[key] for key in keys if key in self.script}

    def ask_metered(self, request: dict[str, Any]) -> tuple[dict[str, Any], Load]:
        self.asked.append((request["do"], self.name, request["method"], request["step"]))
        self.script.setdefault("calls", []).append(request["calls"])
        others: Sequence[float] = self.script["others"]
        other = others[min(self.round, len(others) - 1)]
        self.round += 1
        return {"seconds": self.script["seconds"]}, Load(2.0, 1.0, 2.0 * other)


Run = Callable[..., tuple[SpeedReport, Asked, dict[str, Scripted]]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run of the tiny problem; scripts by the name of the process."""

    def call(**scripts: Script) -> tuple[SpeedReport, Asked, dict[str, Scripted]]:
        asked: Asked = []
        made: dict[str, Scripted] = {}

        def start(name: str, *rest: Any) -> Scripted:
            located = [PEER.python, PEER.peer.script] if name.startswith("gpflow") else []
            *before, cores = rest
            assert before == [*located, "cpu", 1]  # device, threads
            assert len(cores) == 1 and set(cores) <= set(usable_cores())
            made[name] = Scripted(name, scripts, asked)
            return made[name]

        monkeypatch.setattr(Scripted, "of_backend", staticmethod(start), raising=False)
        monkeypatch.setattr(Scripted, "of_script", staticmethod(start), raising=False)
        monkeypatch.setattr(compare, "TimedProcess", Scripted)
        monkeypatch.setattr(compare, "sleep", lambda s: asked.append(("wait", str(s), "", "")))
        options = scripts.pop("options", {"steps": ["e_step"], "repeats": 2})
        report = run_speed(["tiny"], ["numpy", "torch"], methods=["t-svgp"], **options)
        return report, asked, made

    return call


def cell(report: SpeedReport, source: str) -> TimedCell:
    return next(each for each in report.cells if each.source == source)


def test_all_are_prepared_before_any_is_timed_and_rounds_go_in_turn(run: Run) -> None:
    _, asked, _ = run()
    of_step = ("t-svgp", "e_step")
    wait = ("wait", "0.2", "", "")  # for the other's threads to stop spinning
    turn = [wait, ("round", "numpy", *of_step), wait, ("round", "torch", *of_step)]
    prepared = [("prepare", "numpy", *of_step), ("prepare", "torch", *of_step)]
    ended = [("end", "torch", "", ""), ("end", "numpy", "", "")]
    assert asked == prepared + turn + turn + ended


def test_between_rounds_of_one_process_nothing_is_waited_for(run: Run) -> None:
    _, asked, _ = run(torch={"dies": "it did not start"})
    assert [do for do, *_ in asked] == ["prepare", "wait", "round", "round", "end", "end"]


def test_seconds_are_those_of_the_rounds_and_the_first_call_is_apart(run: Run) -> None:
    report, _, _ = run(numpy={"seconds": [0.3, 0.1, 0.2]}, torch={"first_call_s": 4.0})
    ours, theirs = cell(report, "numpy"), cell(report, "torch")
    assert [r.seconds for r in ours.rounds] == [(0.3, 0.1, 0.2)] * 2
    assert (ours.first_call_s, theirs.first_call_s) == (9.0, 4.0)
    times = ours.times()
    assert times is not None and (times.median, times.least, times.of) == (0.2, 0.1, 6)


def test_a_call_of_several_steps_is_told_a_step(run: Run) -> None:
    options = {"steps": ["e_step_held", "m_step"], "repeats": 1}
    report, _, _ = run(options=options, numpy={"seconds": [0.8]}, torch={"seconds": [0.8]})
    seconds = {(c.step, r.seconds) for c in report.cells for r in c.rounds}
    assert seconds == {("e_step_held", (0.8 / HELD_STEPS,)), ("m_step", (0.8,))}


@pytest.mark.parametrize(
    ("call_s", "calls"), [(0.1, 4), (0.01, 40), (30.0, 3), (1e-6, 1000), (0.4 / 7, 7)]
)
def test_a_round_has_as_many_calls_as_fill_it_within_limits(
    run: Run, call_s: float, calls: int
) -> None:
    _, _, made = run(numpy={"call_s": call_s})
    assert made["numpy"].script["calls"] == [calls] * 2
    assert made["torch"].script["calls"] == [4, 4]


def test_a_disturbed_round_is_discarded_counted_and_replaced(run: Run) -> None:
    report, _, _ = run(numpy={"others": [0.0, 0.11, 0.1]})
    # at the limit is undisturbed, above it is not
    assert [r.clean for r in cell(report, "numpy").rounds] == [True, False, True]
    assert [r.other_cores for r in cell(report, "numpy").rounds] == [0.0, 0.11, 0.1]
    assert len(cell(report, "torch").rounds) == 3  # in turn, also where only one was disturbed
    assert report.discarded() == (1, 6)
    times = cell(report, "numpy").times()
    assert times is not None and times.of == 2
    assert "1 of 6 rounds discarded: other processes used over 0.1 cores" in report.notes()


def test_replacing_ends_at_twice_the_rounds_asked_for(run: Run) -> None:
    report, _, _ = run(torch={"others": [0.5]})
    assert len(cell(report, "numpy").rounds) == 4
    assert cell(report, "torch").times() is None
    assert any("torch t-svgp: no time, as other processes" in note for note in report.notes())


def test_nothing_is_replaced_where_every_round_of_every_cell_was_disturbed(run: Run) -> None:
    report, _, _ = run(numpy={"others": [0.5]}, torch={"others": [0.5]})
    assert report.discarded() == (4, 4)


def test_a_figure_that_is_off_is_not_timed(run: Run) -> None:
    report, asked, _ = run(numpy={"figure": -1.0}, torch={"figure": -1.0 + 1e-7})
    assert not any(do == "round" for do, *_ in asked)
    assert not report.ok
    report, asked, _ = run(torch={"figure": -1.0 + 1e-9})
    assert report.ok
    assert cell(report, "torch").difference == pytest.approx(5e-10, rel=1e-3)


def test_a_process_that_did_not_start_is_named_and_the_others_are_timed(run: Run) -> None:
    report, asked, _ = run(torch={"dies": "the process ended with code 1"})
    assert cell(report, "torch").error == "the process ended with code 1"
    assert len(cell(report, "numpy").rounds) == 2
    assert {name for do, name, *_ in asked if do in ("prepare", "round")} == {"numpy"}
    assert set(report.environment) == {"parent", "numpy"}


def test_every_process_is_told_with_its_own_environment(run: Run) -> None:
    report, _, _ = run()
    assert [report.environment[name]["of"] for name in ("numpy", "torch")] == ["numpy", "torch"]


def test_peers_run_under_their_python_and_are_what_ratios_refer_to(run: Run) -> None:
    options = {"steps": ["e_step"], "repeats": 1, "peers": {"gpflow": PEER}}
    report, _, _ = run(options=options, gpflow={"seconds": [0.6]}, torch={"seconds": [1.2]})
    record = {c["source"]: c for c in report.to_json()["cells"]}
    peer = "gpflow natgrad"
    # numpy takes 0.2 to its 0.6, torch 1.2: above 1 is faster
    assert record["numpy"]["faster_than"][peer]["median"] == pytest.approx(3.0)
    assert record["torch"]["faster_than"][peer]["median"] == pytest.approx(0.5)
    assert record["gpflow"]["faster_than"] == {}
    assert report.settings["peers"] == ["gpflow"]


def test_what_a_peer_refuses_is_recorded_and_not_timed(run: Run) -> None:
    options = {"steps": ["e_step"], "repeats": 1, "peers": {"gpflow": PEER}}
    report, asked, _ = run(options=options, gpflow={"refuses": "it has no such step"})
    assert ("round", "gpflow", "natgrad", "e_step") not in asked
    assert report.ok and cell(report, "gpflow").difference is None
    assert cell(report, "numpy").difference == 0.0
    assert len(times_table(report).rows) == 2
    record = {c["source"]: c for c in report.to_json()["cells"]}
    assert (record["gpflow"]["refused"], record["gpflow"]["error"]) == ("it has no such step", "")
    assert "tiny e_step gpflow natgrad: refused: it has no such step" in report.notes()


def test_a_candidate_has_a_column_beside_the_release_and_both_their_modes(run: Run) -> None:
    both = {"gpflow": PEER, "gpflow@3.0": PEER}
    options = {"steps": ["e_step"], "repeats": 1, "peers": both}
    modes = {"graph": 0.3, "xla": "UnimplementedError: no"}
    scripts = {"gpflow": {"seconds": [0.6]}, "gpflow@3.0": {"mode": "graph", "modes": modes}}
    report, _, _ = run(options=options, **scripts)
    record = {c["source"]: c for c in report.to_json()["cells"]}
    ratios = {name: r["median"] for name, r in record["numpy"]["faster_than"].items()}
    plain = {name: ratio for name, ratio in ratios.items() if not name.endswith("retraced")}
    assert plain == pytest.approx({"gpflow natgrad": 3.0, "gpflow@3.0 natgrad": 1.0})
    assert times_table(report).header[-2:] == ["× gpflow", "× gpflow@3.0"]
    assert (record["gpflow@3.0"]["mode"], record["gpflow@3.0"]["modes"]) == ("graph", modes)
