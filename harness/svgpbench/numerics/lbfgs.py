"""L-BFGS over trees of arrays (Liu and Nocedal 1989; SciPy's L-BFGS-B without bounds), as ascent.

It runs on the host in float64; the value and the gradient come from any backend.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from svgpbench.ops import Tree
from svgpbench.tree import leaves, rebuild

Floats = npt.NDArray[np.float64]
VALUE_PRECISION, SLOPE_PRECISION = 1e-13, 1e-9
"""Tolerances at which SciPy stops early: float64 allows no further progress."""
# more than the 20 that SciPy's line search takes at most (`maxls`), so that `maxiter` ends a run
MOST_EVALUATIONS = 21
"""Most evaluations per iteration, averaged over a run, line searches included."""


def flatten(tree: Tree) -> Floats:
    """Return all numbers of a tree of host arrays, as one vector."""
    return np.concatenate([np.ravel(np.asarray(x, dtype=np.float64)) for x in leaves(tree)])


def unflatten(like: Tree, numbers: Floats) -> Tree:
    """Return the tree structured like `like` for which `flatten` gives `numbers`."""
    shapes = [np.shape(x) for x in leaves(like)]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    parts = np.split(numbers, ends[:-1])
    return rebuild(like, iter([x.reshape(s) for x, s in zip(parts, shapes, strict=True)]))


class Evaluations:
    """Values and gradients, in the order in which an ascent asks for them.

    SciPy does not expose its memory. If it is given earlier evaluations again, it reaches the same point, bit
    for bit, and continues from there.
    """

    def __init__(self, stored: tuple[tuple[float, Floats], ...] = ()) -> None:
        self._stored, self._next = list(stored), 0

    @property
    def stored(self) -> tuple[tuple[float, Floats], ...]:
        """All evaluations so far."""
        return tuple(self._stored)

    def next(self, evaluate: Callable[[], tuple[float, Floats]]) -> tuple[float, Floats]:
        """Return the next evaluation: a stored one, or a new one by `evaluate`."""
        if self._next == len(self._stored):
            self._stored.append(evaluate())
        self._next += 1
        return self._stored[self._next - 1]


def lbfgs_ascent(
    value_and_gradient: Callable[[Tree], tuple[float, Tree]],
    start: Tree,
    iterations: int,
    on_iteration: Callable[[Tree], None] = lambda _: None,
    evaluations: Evaluations | None = None,
) -> Tree:
    """Return the tree of host arrays after at most `iterations` iterations of ascent from `start`.

    An iteration is one step of L-BFGS with its line search, which evaluates the function once or a few
    times. `on_iteration` is then called with the current tree. The ascent starts without curvature, and
    stops early if float64 allows no further progress. Stored `evaluations` are not computed again, and
    new ones are added to them; without `evaluations`, none are stored.
    """

    def evaluate_at(numbers: Floats) -> tuple[float, Floats]:
        def evaluate() -> tuple[float, Floats]:
            value, gradient = value_and_gradient(unflatten(start, numbers))
            return value, flatten(gradient)

        return evaluate() if evaluations is None else evaluations.next(evaluate)

    first, slope = evaluate_at(flatten(start))
    if not (np.isfinite(first) and np.all(np.isfinite(slope))):
        return start  # the caller sees a bound that is not finite
    # the bound is NaN if a matrix is not positive definite: the line search must then step back
    barrier = first - max(1.0, abs(first))

    def downhill(numbers: Floats) -> tuple[float, Floats]:
        value, gradient = evaluate_at(numbers)
        if not (np.isfinite(value) and np.all(np.isfinite(gradient))):
            # a finite value, which SciPy's line search interpolates back from: at ∞ it may
            # end the ascent, and from NaN it moves further out
            return -barrier, np.zeros_like(numbers)
        return -value, -gradient

    def visit(xk: Floats) -> None:
        on_iteration(unflatten(start, np.array(xk)))

    result = minimize(
        downhill,
        flatten(start),
        jac=True,
        method="L-BFGS-B",
        callback=visit,
        options={
            "maxiter": iterations,
            "maxfun": MOST_EVALUATIONS * iterations,
            "ftol": VALUE_PRECISION,
            "gtol": SLOPE_PRECISION,
        },
    )
    return unflatten(start, np.asarray(result.x, dtype=np.float64))
