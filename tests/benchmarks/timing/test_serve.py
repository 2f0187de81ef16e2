"""The process of a peer, with a script whose steps do nothing but take their time."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from svgpbench.benchmarks.timing.problems import make_problem, save_problem
from svgpbench.benchmarks.timing.process import ProcessFailed, StepRefused, TimedProcess

SCRIPT = """
import time

VERSIONS = ("numpy",)
threads = 0


def start(count):
    global threads
    threads = count
    print("a library's greeting")


class Step:
    def __init__(self, problem, fails):
        self.jitter, self.calls = float(problem["jitter"]), 0
        self.modes = {"slow": lambda: self.take(0.03), "broken": self.fail, "fast": lambda: self.take(0.01)}
        if fails:
            self.modes = {"broken": self.fail}

    def take(self, seconds):
        time.sleep(seconds + 0.001 * self.calls)
        self.calls += 1
        return self.calls

    def fail(self):
        raise ValueError("no such\\ncompiler")

    def figure(self, result):
        return 100 * threads + result + self.jitter

    def reset(self):
        self.calls = 0


def build(problem, method, step):
    if step == "m_step":
        raise NotImplementedError(f"{method} has none")
    return Step(problem, fails=step == "predict")
"""


@pytest.fixture
def process(tmp_path: Path) -> Iterator[TimedProcess]:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    core = min(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    with TimedProcess.of_script("p", Path(sys.executable), script, "cpu", 3, (core,)) as process:
        process.wait_until_ready()
        yield process


@pytest.fixture
def request_of(tmp_path: Path) -> dict[str, Any]:
    save_problem(make_problem("tiny"), tmp_path / "tiny.npz")
    return {"problem": str(tmp_path / "tiny.npz"), "method": "m"}


def test_the_fastest_mode_is_timed_from_the_start_and_all_are_recorded(
    process: TimedProcess, request_of: dict[str, Any]
) -> None:
    answer = process.ask(request_of | {"do": "prepare", "step": "e_step"})
    assert answer["mode"] == "fast" and 0.01 <= answer["call_s"] < answer["modes"]["slow"]
    assert answer["modes"]["broken"] == "ValueError: no such"
    assert answer["figure"] == 301.000001  # of a first call, on 3 threads
    assert answer["first_call_s"] < 0.03
    seconds = process.ask(request_of | {"do": "round", "step": "e_step", "calls": 3})["seconds"]
    assert len(seconds) == 3 and seconds[0] < 0.012 + 0.005
    assert process.environment["threads"] == 3 and "numpy" in process.environment["versions"]
    if hasattr(os, "sched_getaffinity"):
        assert process.environment["affinity"] == [min(os.sched_getaffinity(0))]


def test_what_a_peer_has_not_is_refused_and_what_fails_is_an_error(
    process: TimedProcess, request_of: dict[str, Any]
) -> None:
    with pytest.raises(StepRefused, match=r"^m has none$"):
        process.ask(request_of | {"do": "prepare", "step": "m_step"})
    with pytest.raises(ProcessFailed, match=r"^ValueError: no such$"):
        process.ask(request_of | {"do": "prepare", "step": "predict"})
