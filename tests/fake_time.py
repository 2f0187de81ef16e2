"""A clock that stands still but when work is awaited, and a backend whose work waits to be awaited."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from svgpbench.training.em import Trainer
from svgpbench.training.online import OnlineTrainer
from svgpbench_backends.numpy_backend import NumpyOps

F = Callable[..., Any]


class Clock:
    """Seconds since its start; it moves where it is told to and nowhere else."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def install(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock in place of `time.perf_counter`, and of the trainers' own where they have one."""
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", clock)
    for trainer in (Trainer, OnlineTrainer):
        monkeypatch.setattr(trainer, "clock", staticmethod(clock), raising=False)
    return clock


class LazyOps(NumpyOps):
    """NumPy that owes the time of each compiled step until it is awaited, as a GPU does.

    Numbers that leave the device wait for it too, so that no time is lost but where nobody looks.
    """

    def __init__(self, clock: Clock, seconds: Mapping[str, float]) -> None:
        super().__init__("eager", "float64", "cpu")
        self.clock, self.seconds, self.pending, self._depth = clock, seconds, 0.0, 0

    def jit(self, f: Any) -> Any:
        name = f.__name__

        def timed(*arguments: Any) -> Any:
            self._depth += 1
            try:
                return f(*arguments)
            finally:
                self._depth -= 1
                if not self._depth:  # a step within a compiled step is part of it
                    self.pending += self.seconds.get(name, 0.0)

        return timed

    def sync(self, x: Any) -> None:
        self.clock.now += self.pending
        self.pending = 0.0

    def to_numpy(self, x: Any) -> Any:
        self.sync(x)
        return super().to_numpy(x)
