"""The state of a training run, as one value: a step of training takes a state and returns the next."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from svgpbench.kernels import Theta
from svgpbench.numerics.adam import AdamState
from svgpbench.ops import Tree

TracePoint = dict[str, float | int | None]
End = Literal["ok", "not_pd", "diverged"]
Ended = Literal["", "settled", "limit"]
"""What ended a run that may end once its bound has settled; empty for other runs."""


class TrainState(NamedTuple):
    """All that the next iteration of a run depends on, and the results so far.

    Checkpoints store the fields in this order. Arrays are the backend's in memory and NumPy's in a file; none
    is ever modified.
    """

    raw: Theta  # unconstrained
    prior: Any  # the method's blocks at `raw`; () if they are to be computed again
    q: Tree  # the method's state
    adam: AdamState
    rng_states: tuple[Any, ...]  # the state of each random stream
    iteration: int = 0
    seconds: float = 0.0
    resumptions: int = 0  # number of times that the run was resumed
    trace: tuple[TracePoint, ...] = ()
    failure: tuple[End, str] = ("ok", "")  # status and message
    evaluations: tuple[Any, ...] = ()  # values and gradients of one ascent over all iterations
    evaluated: int = 0  # number of evaluations, in all ascents
    online_rate: float = 0.0  # the rate of an online run
    trial_bounds: tuple[float, ...] = ()  # bounds reached at the rates tried so far
    best_trial: Any = ()  # the state reached at the best rate
    halvings: int = 0  # of the rates of guarded E-steps
    m_halvings: int = 0  # of the rates of guarded M-phases
    m_factor: float = 1.0  # of the rate of the next guarded M-phase
    settled: bool = False  # True if the run ends here because the bound has settled

    @property
    def failed(self) -> bool:
        """Return True if the run has failed numerically."""
        return self.failure[0] != "ok"
