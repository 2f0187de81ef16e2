"""Where a run is, as one value: a step of training takes one and returns the next."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from svgpbench.kernels import Theta
from svgpbench.numerics.adam import AdamState
from svgpbench.ops import Tree

TracePoint = dict[str, float | int | None]
End = Literal["ok", "not_pd", "diverged"]


class Place(NamedTuple):
    """All that the next iteration depends on, and what the run has left so far.

    Arrays are those of the backend in memory, of the host in a file; none is ever written to.
    """

    raw: Theta  # unconstrained
    prior: Any  # the method's blocks at `raw`; not in a file
    state: Tree
    adam: AdamState
    draws: tuple[Any, ...]  # of each stream, as its generator states it
    iteration: int = 0
    seconds: float = 0.0
    resumptions: int = 0  # how often the run went on from a checkpoint
    trace: tuple[TracePoint, ...] = ()
    failure: tuple[End, str] = ("ok", "")  # status and message
    evaluations: tuple[Any, ...] = ()  # of an ascent through all iterations: values and gradients
    evaluated: int = 0  # how many there were of these, in ascents of all kinds
    gamma0: float = 0.0  # the rate of an online run
    trials: tuple[float, ...] = ()  # bounds that the rates tried so far reached
    best: Any = ()  # the place that the best of them reached

    @property
    def failed(self) -> bool:
        """Whether the run has ended because its numbers did."""
        return self.failure[0] != "ok"
