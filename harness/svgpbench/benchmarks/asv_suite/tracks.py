"""Costs of a step besides its time: first call, compilations, memory, and distance from the floor."""

from __future__ import annotations

from typing import Any, ClassVar

from svgpbench.benchmarks.timing.memory import step_memory
from svgpbench.runs.worker_setup import compilations

from .axes import axes
from .prepared import first_call, floor_ratio, threads

AXES = axes()


class Tracked:
    """Cost of a step, measured in a process that does nothing else."""

    param_names: ClassVar = ["backend", "method", "problem", "step", "dtype", "device"]
    params: ClassVar = [AXES[name] for name in param_names]
    timeout = 600
    unit = ""

    def setup_cache(self) -> None:
        """Nothing; but benchmarks that have one run in one folder, where NumPy's figures are kept."""

    def setup(
        self, backend: str, method: str, problem: str, step: str, dtype: str, device: str
    ) -> None:
        """Build, call once, and compare with NumPy."""
        self.seconds, case = first_call(step, backend, method, problem, dtype, device)
        self.case: Any = case


class FirstCall(Tracked):
    """Seconds of the first call, for which a short run waits."""

    unit = "seconds"

    def track_first_call(self, *_: str) -> float:
        """Tracing and compiling included, the import of the framework not."""
        return self.seconds


class Recompiles(Tracked):
    """Compilations after the first calls: 0, as the shapes of a step do not change."""

    unit = "compilations"

    def track_recompiles(self, *unused: str) -> int:
        """Programs compiled after the second call, in three more; 0 is wanted."""
        self.case.call()
        before = compilations(self.case.ops, self.case.compiled)
        for _ in range(3):
            self.case.call()
        return compilations(self.case.ops, self.case.compiled) - before


class Peak(Tracked):
    """Peak memory of the whole process, imports included."""

    def peakmem_step(self, *_: str) -> None:
        """Calls of the step."""
        self.case.call()


class BeyondImport(Tracked):
    """Peak memory of the process beyond the import of its framework."""

    unit = "bytes"

    def track_memory_beyond_import(
        self, backend: str, method: str, problem: str, step: str, dtype: str, device: str
    ) -> int:
        """Peak of a fresh process less what it holds once the framework is imported."""
        return step_memory(backend, method, problem, step, threads(), dtype, device).growth


class FloorRatio(Tracked):
    """Time of a step divided by that of its arithmetic, which depends less on the machine than a time."""

    unit = "times the floor"

    def setup(
        self, backend: str, method: str, problem: str, step: str, dtype: str, device: str
    ) -> None:
        """Compare with NumPy, measure the rates and the step; what has no floor is skipped."""
        self.ratio = floor_ratio(step, backend, method, problem, dtype, device)

    def track_floor_ratio(self, *_: str) -> float:
        """The fastest call over its floor."""
        return self.ratio
