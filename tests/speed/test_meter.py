"""The meter tells the CPU that other processes used from the worker's own."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from svgpbench.speed.meter import Meter, Reading, between

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


def test_counters_whose_ticks_disagree_give_no_negative_load() -> None:
    assert between(Reading(0.0, 0.0, 0.0), Reading(1.0, 0.99, 1.0)).other_s == 0.0
