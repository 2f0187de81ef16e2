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
    """Step that starts from the same state at every call. A call waits for the result."""

    param_names: ClassVar = ["backend", "method", "problem", "dtype", "device"]
    params: ClassVar = [AXES[name] for name in param_names]
    timeout = 600  # XLA may compile for minutes
    warmup_time = 0  # `setup` has warmed
    rounds = 2
    repeat = (5, 200, 5.0)  # least and most samples of one call per round, and their total seconds
    step = ""

    def setup_cache(self) -> None:
        """Nothing; but benchmarks that have one run in one folder, where NumPy's figures are kept."""

    def setup(self, *where: str) -> None:
        """Compare with NumPy, compile and warm."""
        self.case: Any = warm(self.step, *where)


class EStep(Timed):
    """E-step that computes K(Z, Z) and its Cholesky factor."""

    step = "e_step"

    def time_e_step(self, *_: str) -> None:
        """One step on q with a batch."""
        self.case.call()


class EStepHeld(Timed):
    """E-steps at a fixed θ, which compute K(Z, Z), its factor and W once."""

    step = "e_step_held"

    def time_e_step_held(self, *_: str) -> None:
        """Eight steps on q, one after the other; the time is that of all."""
        self.case.call()


class MStep(Timed):
    """M-step: bound, gradient, Adam, and the change of q with θ."""

    step = "m_step"

    def time_m_step(self, *_: str) -> None:
        """One step on kernel, likelihood and inducing inputs."""
        self.case.call()


class EMStep(Timed):
    """EM iteration in the middle of training."""

    step = "em_step"

    def time_em_step(self, *_: str) -> None:
        """Four E-steps on fresh minibatches and an M-step on one more."""
        self.case.call()


class Predict(Timed):
    """Prediction, with K(Z, Z) and its Cholesky factor."""

    step = "predict"

    def time_predict(self, *_: str) -> None:
        """1024 rows."""
        self.case.call()
