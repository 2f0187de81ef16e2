"""Seconds of a call: awaited, each on its own, the first apart; on a clock that the tests move."""

from __future__ import annotations

import gc
import io
import json
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from fake_time import Clock, LazyOps, install

from svgpbench.benchmarks.timed_calls import WARM_CALLS, WARM_S, first_call, time_calls, warm_up
from svgpbench.benchmarks.timing import worker
from svgpbench.benchmarks.timing.cases import STEPS, build_case
from svgpbench.benchmarks.timing.problems import make_problem
from svgpbench.benchmarks.timing.worker import prepare
from svgpbench.libraries.steps import CACHED_ROWS

Call = Callable[[], Any]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return install(monkeypatch)


def taking(clock: Clock, *seconds: float) -> Call:
    """A call that takes these seconds one after the other, the last of them from then on."""
    left = list(seconds)

    def call() -> float:
        took = left.pop(0) if len(left) > 1 else left[0]
        clock.now += took
        return took

    return call


def test_first_call_gives_its_seconds_and_its_result(clock: Clock) -> None:
    clock.now = 5e3
    assert first_call(taking(clock, 7.0)) == (7.0, 7.0)


def test_each_call_has_seconds_of_its_own(clock: Clock) -> None:
    assert time_calls(taking(clock, 1.0, 2.0, 4.0), 3) == [1.0, 2.0, 4.0]
    assert clock.now == 7.0


def test_no_garbage_is_collected_between_calls_and_all_of_it_before(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(gc, "collect", lambda: seen.append("collect"))
    assert gc.isenabled()
    time_calls(lambda: seen.append("collects" if gc.isenabled() else "call"), 2)
    assert seen == ["collect", "call", "call"]
    assert gc.isenabled()

    def fail() -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        time_calls(fail, 1)
    assert gc.isenabled()


def test_warm_up_lasts_long_enough_and_tells_the_fastest_call(clock: Clock) -> None:
    assert warm_up(taking(clock, 9.0, 2.0, 3.0)) == 2.0
    assert clock.now == 14.0  # slow calls: as few as there may be
    assert WARM_CALLS == 3
    start = clock.now
    warm_up(taking(clock, WARM_S / 10))
    assert clock.now - start == pytest.approx(WARM_S, abs=1.01 * WARM_S / 10)


@pytest.mark.parametrize("step", STEPS)
def test_a_timed_call_awaits_its_work(clock: Clock, step: str) -> None:
    """On a device that computes later, what is not awaited would take no time at all."""
    cost = {
        "e_step": 3.0,
        "e_step_held": 5.0,
        "m_phase_batches": 7.0,
        "predict": 11.0,
        "predict_cached": 17.0,
        "e_phase_batches": 13.0,
    }
    ops = LazyOps(clock, cost)
    case = build_case(ops, make_problem("tiny"), "t-svgp", step)
    ops.sync(())
    parts = {key: ["predict_cached"] for key in CACHED_ROWS}
    parts |= {"m_step": ["m_phase_batches"], "em_step": ["e_phase_batches", "m_phase_batches"]}
    expected = sum(cost[part] for part in parts.get(step, [step]))
    assert time_calls(case.call, 2) == [expected] * 2
    assert ops.pending == 0.0


class Compiled:
    """A case whose first call compiles."""

    def __init__(self, clock: Clock) -> None:
        self.call = taking(clock, 50.0, 2.0, 3.0)

        self.as_peers: Callable[[], float] | None = None

    def figure(self, result: float) -> float:
        return -result


def test_the_first_call_is_told_apart_from_warm_ones(clock: Clock) -> None:
    assert prepare(Compiled(clock)) == {  # type: ignore[arg-type]
        "first_call_s": 50.0,
        "call_s": 2.0,
        "figure": -50.0,  # of the first result
    }
    assert clock.now < 60.0 and time.perf_counter() == clock.now
    sampled = Compiled(clock)
    sampled.as_peers = lambda: -3.0
    assert prepare(sampled)["as_peers"] == -3.0  # type: ignore[arg-type]


def test_a_process_is_pinned_as_asked_and_answers_with_every_call_of_a_round(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_case = {"method": "t-svgp", "step": "e_step"}
    asked = [{"do": "prepare", "problem": "p.npz"} | of_case, {"do": "round", "calls": 3} | of_case]
    answers, pinned = io.StringIO(), []
    monkeypatch.setattr(worker, "take_pipes", lambda: (map(json.dumps, asked), answers))
    monkeypatch.setattr(worker, "listen", lambda requests: requests)
    monkeypatch.setattr(worker, "end_with", lambda parent: None)
    monkeypatch.setattr(worker, "pin", lambda *how: pinned.append(how))
    monkeypatch.setattr(worker, "load_problem", lambda path: None)
    monkeypatch.setattr(worker, "prepare", lambda case: {})
    case = SimpleNamespace(call=taking(clock, 1.0, 2.0, 4.0))
    monkeypatch.setattr(worker, "build_case", lambda *what: case)
    worker.main(["--backend", "numpy", "--threads", "3", "--cores", "2,5,7"])
    assert pinned == [("numpy", 3, [2, 5, 7])]
    environment, prepared, timed = map(json.loads, answers.getvalue().splitlines())
    assert environment["environment"]["threads"] == 3
    assert (prepared, timed) == ({}, {"seconds": [1.0, 2.0, 4.0]})
