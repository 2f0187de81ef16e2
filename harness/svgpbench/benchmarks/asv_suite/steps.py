"""Warm times of the steps of training; asv runs each benchmark in a process of its own.

No framework is imported before `setup`, which imports that of its backend alone. Problem, rates and draws
are those of `svgpbench.benchmarks.timing`; `axes.py` has the axes and the variable that widens them.
"""

from __future__ import annotations

from typing import Any, ClassVar

from .axes import axes
from .prepared import warm

AXES = axes()


class Timed:
    """A step from the same start at every call, its result awaited."""

    param_names: ClassVar = ["backend", "method", "problem", "dtype", "device"]
    params: ClassVar = [AXES[name] for name in param_names]
    timeout = 600  # XLA may compile for minutes
    warmup_time = 0  # `setup` has warmed
    rounds = 2
    repeat = (
        5,
        200,
        5.0,
    )  # fewest and most samples of a round, of a call each, and seconds for them
    step = ""

    def setup_cache(self) -> None:
        """Nothing; but benchmarks that have one run in one folder, where NumPy's figures are kept."""

    def setup(self, *where: str) -> None:
        """Compare with NumPy, compile and warm."""
        self.case: Any = warm(self.step, *where)


class EStep(Timed):
    """K(Z, Z) and its Cholesky factor inside."""

    step = "e_step"

    def time_e_step(self, *_: str) -> None:
        """One step on q with a batch."""
        self.case.call()


class EStepHeld(Timed):
    """θ stands still: K(Z, Z), its factor and W are computed once."""

    step = "e_step_held"

    def time_e_step_held(self, *_: str) -> None:
        """Eight steps on q, one after the other; the time is that of all."""
        self.case.call()


class MStep(Timed):
    """Value, gradient, Adam, and what ties q to θ."""

    step = "m_step"

    def time_m_step(self, *_: str) -> None:
        """One step on kernel, likelihood and inducing inputs."""
        self.case.call()


class EMStep(Timed):
    """An iteration of training as it runs on and on."""

    step = "em_step"

    def time_em_step(self, *_: str) -> None:
        """Four E-steps on fresh minibatches and an M-step on one more."""
        self.case.call()


class Predict(Timed):
    """K(Z, Z) and its Cholesky factor inside."""

    step = "predict"

    def time_predict(self, *_: str) -> None:
        """1024 rows."""
        self.case.call()
