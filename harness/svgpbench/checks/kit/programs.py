"""Programs that a backend compiles for a function, counted at each call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from svgpbench.ops import Ops, Tree
from svgpbench.runs.worker_setup import compilations, forget_programs


class CountedPrograms:
    """A function compiled by a backend, which notes how many programs each call compiles.

    The backend's `Framework` counts its programs. Where it counts none, calls of the Python function are
    counted instead: a backend that traces calls it once per program. Skips the test if the backend
    compiles nothing.
    """

    def __init__(self, ops: Ops, function: Callable[..., Tree]) -> None:
        # no counter inside `function`: torch.compile traces that too, and compiles anew when it changes
        self.ops, self.function = ops, function
        self.compiled: Callable[..., Tree] = ops.jit(function)
        if self.compiled is function or ops.mode == "eager":
            pytest.skip(f"backend {ops.name!r} compiles nothing in mode {ops.mode!r}")
        # torch.compile keeps programs with the code, which this function shares with those of other
        # tests: it makes shapes dynamic that differ among tests, and compiles nothing after eight
        forget_programs(ops)
        self.traces: list[int] | None = None  # one entry per trace; None: the framework counts
        self.per_call: list[int] = []

    def __call__(self, *arguments: Any) -> Tree:
        """Return the function's result, and note the programs that were compiled for it."""
        before = self._count()
        result = self.compiled(*arguments)
        if not self.per_call and self._count() == 0:
            self.traces = []
            self.compiled = self.ops.jit(self._traced)
            result = self.compiled(*arguments)
        self.per_call.append(self._count() - before)
        return result

    def _traced(self, *arguments: Any) -> Tree:
        assert self.traces is not None
        self.traces.append(1)
        return self.function(*arguments)

    def _count(self) -> int:
        if self.traces is not None:
            return len(self.traces)
        return compilations(self.ops, [self.compiled])

    def assert_compiled_once(self) -> None:
        """Raise `AssertionError` unless the first call compiles programs and later ones none."""
        first, *later = self.per_call
        how = (
            f"\nThey are calls of the Python function: the framework of {self.ops.name!r} reports no"
            " programs. If Python code also runs without compilation, give it `compilations`."
            if self.traces is not None
            else ""
        )
        assert first >= 1 and not any(later), f"programs compiled per call: {self.per_call}{how}"
