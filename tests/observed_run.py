"""A training run watched from outside: θ and state at every trace point, and batches of given rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from svgpbench.kernels import Theta
from svgpbench.ops import Tree
from svgpbench.training.em import Trained, Trainer
from svgpbench.training.state import TrainState
from svgpbench.tree import tree_map


class Seen(NamedTuple):
    """What a run holds while a trace point is evaluated."""

    theta: Theta
    state: Tree


def observed(trainer: Trainer) -> tuple[Trained, list[Seen]]:
    """The whole run, and what it held at each of its trace points.

    Every trace point asks for the metrics once, which is where this looks. What trials of several rates
    saw is told apart by those numbers, since only the best trial's points are in the trace.
    """
    seen: dict[tuple[float, ...], Seen] = {}
    metrics = trainer.metrics

    def watched(state: TrainState) -> dict[str, float]:
        found, q = metrics(state), tree_map(trainer.ops.to_numpy, state.q)
        held = Seen(tree_map(np.array, trainer.theta(state)), tree_map(np.array, q))
        seen[state.iteration, *found.values()] = held
        names.update(found)
        return found

    names: dict[str, float] = {}
    trainer.metrics = watched  # type: ignore[method-assign]
    trained = trainer.run()
    points = [
        (int(point["iteration"] or 0), *(float(point[name] or 0.0) for name in names))
        for point in trained.trace
    ]
    return trained, [seen[point] for point in points]


class GivenRows:
    """Row numbers in place of a trainer's draws; `left` says how many batches were not asked for."""

    def __init__(self, batches: Iterable[npt.ArrayLike]) -> None:
        self.batches = [np.asarray(rows, dtype=np.int64) for rows in batches]
        self.drawn = 0

    def feed(self, trainer: Trainer) -> None:
        """From here on the trainer's batches are these."""
        draws: Any = trainer.batches
        draws.sample = self.following

    def following(self) -> npt.NDArray[np.int64]:
        self.drawn += 1
        return self.batches[self.drawn - 1]

    @property
    def left(self) -> int:
        return len(self.batches) - self.drawn
