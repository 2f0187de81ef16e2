"""The place of a run, as one value: a step of training takes a place and returns the next."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from svgpbench.kernels import Theta
from svgpbench.numerics.adam import AdamState
from svgpbench.ops import Tree

TracePoint = dict[str, float | int | None]
End = Literal["ok", "not_pd", "diverged"]


class Place(NamedTuple):
    """The state of a run: all that the next iteration depends on, and the results so far.

    Arrays are the backend's in memory and NumPy's in a file; none is ever modified.
    """

    raw: Theta  # unconstrained
    prior: Any  # the method's blocks at `raw`; not in a file
    state: Tree
    adam: AdamState
    draws: tuple[Any, ...]  # the state of each random stream
    iteration: int = 0
    seconds: float = 0.0
    resumptions: int = 0  # number of times that the run was resumed
    trace: tuple[TracePoint, ...] = ()
    failure: tuple[End, str] = ("ok", "")  # status and message
    evaluations: tuple[Any, ...] = ()  # values and gradients of one ascent over all iterations
    evaluated: int = 0  # number of evaluations, in all ascents
    gamma0: float = 0.0  # the rate of an online run
    trials: tuple[float, ...] = ()  # bounds reached at the rates tried so far
    best: Any = ()  # the place reached at the best rate

    @property
    def failed(self) -> bool:
        """Return True if the run has failed numerically."""
        return self.failure[0] != "ok"
