"""Meter of the CPU that other processes used while one worker was timed.

With one of two cores taken, a step of 3 ms takes 250 ms, so a disturbed round says nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

import psutil


class Reading(NamedTuple):
    """Counters at one moment, in seconds."""

    wall: float
    busy: float  # CPU time of everything on the metered cores, stolen time included
    worker: float  # CPU time of the worker's process tree


class Load(NamedTuple):
    """Seconds of wall clock, of the worker's CPU, and of other processes' CPU, between two readings.

    The counters tick 100 times a second, so `other_s` of a short interval may be below 0.
    """

    wall_s: float
    own_s: float
    other_s: float

    @property
    def other_cores(self) -> float:
        """CPU of other processes in cores, at least 0."""
        return max(0.0, self.other_s / self.wall_s) if self.wall_s > 0 else 0.0


def between(before: Reading, after: Reading) -> Load:
    """Return the load from one reading to the next."""
    wall, busy, worker = (b - a for a, b in zip(before, after, strict=True))
    return Load(wall, worker, busy - worker)


def together(loads: Iterable[Load]) -> Load:
    """Return the load of several intervals together, in which tick errors cancel."""
    return Load(*map(sum, zip(Load(0.0, 0.0, 0.0), *loads, strict=True)))


class Meter:
    """Meter of the cores that one worker is pinned to, or of all cores if `cores` is empty."""

    def __init__(self, pid: int, cores: Sequence[int] = ()) -> None:
        self._process = psutil.Process(pid)
        self._cores = frozenset(cores)

    def read(self) -> Reading:
        """Read the counters."""
        wall, busy, worker = time.perf_counter(), 0.0, 0.0
        for core, times in enumerate(psutil.cpu_times(percpu=True)):
            if not self._cores or core in self._cores:
                named = times._asdict()  # `guest` times are counted in `user` and `nice`
                # steal: other guests of the host had the core, which slows a step too
                counted = ("user", "nice", "system", "irq", "softirq", "steal")
                busy += sum(named.get(kind, 0.0) for kind in counted)
        # helpers of the worker count as its own: XLA and BLAS may start processes
        with suppress(psutil.NoSuchProcess):
            for process in (self._process, *self._process.children(recursive=True)):
                with suppress(psutil.NoSuchProcess):
                    used = process.cpu_times()
                    worker += used.user + used.system
        return Reading(wall, busy, worker)
