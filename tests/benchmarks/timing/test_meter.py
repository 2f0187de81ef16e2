"""The meter tells the CPU that other processes used from the worker's own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import NamedTuple

import psutil
import pytest

from svgpbench.benchmarks.timing.meter import Meter, Reading, between, together

SPIN = """
import os, sys, time
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {int(sys.argv[1])})
end = time.monotonic() + 30
print("spinning", flush=True)
while time.monotonic() < end:
    pass
"""


def test_busy_loop_in_another_process_is_metered() -> None:
    pinned = hasattr(os, "sched_getaffinity")
    core = min(os.sched_getaffinity(0)) if pinned else 0
    idle = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    spinner = subprocess.Popen([sys.executable, "-c", SPIN, str(core)], stdout=subprocess.PIPE)
    try:
        assert spinner.stdout is not None
        spinner.stdout.readline()
        meter = Meter(idle.pid, (core,) if pinned else ())
        before = meter.read()
        time.sleep(0.6)
        load = between(before, meter.read())
    finally:
        for process in (idle, spinner):
            process.kill()
            process.communicate()
    assert load.other_cores > 0.5


def test_work_of_the_metered_process_is_its_own() -> None:
    meter = Meter(os.getpid())
    before, start = meter.read(), time.process_time()
    while time.process_time() - start < 0.3:
        pass
    load = between(before, meter.read())
    assert load.own_s == pytest.approx(0.3, abs=0.1)


def test_others_are_what_is_busy_and_not_own() -> None:
    load = between(Reading(10.0, 100.0, 40.0), Reading(12.0, 103.5, 42.5))
    assert (load.wall_s, load.own_s, load.other_s) == (2.0, 2.5, 1.0)
    assert load.other_cores == 0.5


def test_counters_whose_ticks_disagree_give_no_negative_cores() -> None:
    assert between(Reading(0.0, 0.0, 0.0), Reading(1.0, 0.99, 1.0)).other_cores == 0.0


def test_ticks_of_many_short_intervals_are_no_disturbance() -> None:
    start = Reading(0.0, 0.0, 0.0)
    early = between(start, Reading(0.02, 0.01, 0.02))  # the worker's own tick comes first
    late = between(start, Reading(0.02, 0.03, 0.02))
    whole = together([early, late] * 50)
    assert whole == pytest.approx((2.0, 2.0, 0.0), abs=1e-12)
    assert together([]).other_cores == 0.0


class Times(NamedTuple):
    """What psutil tells of one core."""

    user: float
    nice: float
    system: float
    idle: float
    iowait: float
    irq: float
    softirq: float
    steal: float
    guest: float


def test_busy_is_all_that_keeps_the_metered_cores_from_idling(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Waiting is idling, a guest's time is within the user's, and stolen time is lost to others."""
    cores = [
        Times(*(10.0**core * x for x in (1, 2, 4, 1e6, 1e6, 8, 16, 32, 1e6))) for core in range(3)
    ]
    monkeypatch.setattr(psutil, "cpu_times", lambda percpu: cores)
    assert Meter(os.getpid(), (1,)).read().busy == 630.0
    assert Meter(os.getpid(), (0, 2)).read().busy == 63.0 + 6300.0
    assert Meter(os.getpid()).read().busy == 63.0 + 630.0 + 6300.0


def test_a_process_that_has_ended_used_nothing_more() -> None:
    done = subprocess.Popen([sys.executable, "-c", "pass"])
    meter = Meter(done.pid)
    done.wait()
    assert meter.read().worker == 0.0
