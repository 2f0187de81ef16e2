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
"""Where SciPy stops early: nothing more is to be had in float64."""
MOST_EVALUATIONS = 21
"""Of one iteration, its line search among them."""


def flatten(tree: Tree) -> Floats:
    """All numbers of a tree of host arrays, one after another."""
    return np.concatenate([np.ravel(np.asarray(x, dtype=np.float64)) for x in leaves(tree)])


def unflatten(like: Tree, numbers: Floats) -> Tree:
    """The tree shaped like `like` that `flatten` gives `numbers` for."""
    shapes = [np.shape(x) for x in leaves(like)]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    parts = np.split(numbers, ends[:-1])
    return rebuild(like, iter([x.reshape(s) for x, s in zip(parts, shapes, strict=True)]))


class Evaluations:
    """Values and gradients in the order in which an ascent asks for them.

    SciPy keeps its memory to itself. Led along what was evaluated before, it comes to the same place, bit
    for bit, and goes on from there.
    """

    def __init__(self, known: tuple[tuple[float, Floats], ...] = ()) -> None:
        self._known, self._next = list(known), 0

    @property
    def known(self) -> tuple[tuple[float, Floats], ...]:
        """All there are."""
        return tuple(self._known)

    def next(self, evaluate: Callable[[], tuple[float, Floats]]) -> tuple[float, Floats]:
        """The next one: known, or evaluated now."""
        if self._next == len(self._known):
            self._known.append(evaluate())
        self._next += 1
        return self._known[self._next - 1]


def lbfgs_ascent(
    value_and_gradient: Callable[[Tree], tuple[float, Tree]],
    start: Tree,
    iterations: int,
    on_iteration: Callable[[Tree], None] = lambda _: None,
    evaluations: Evaluations | None = None,
) -> Tree:
    """The tree of host arrays after at most so many iterations up from `start`.

    An iteration is one step of L-BFGS with its line search, which evaluates the function once or a
    few times; `on_iteration` is then called with where it stands. It starts without curvature and
    stops early where float64 leaves nothing to gain. What `evaluations` hold is not
    evaluated again; where there are none, nothing is remembered.
    """

    def at(numbers: Floats) -> tuple[float, Floats]:
        def evaluate() -> tuple[float, Floats]:
            value, gradient = value_and_gradient(unflatten(start, numbers))
            return value, flatten(gradient)

        return evaluate() if evaluations is None else evaluations.next(evaluate)

    first, slope = at(flatten(start))
    if not (np.isfinite(first) and np.all(np.isfinite(slope))):
        return start  # the caller sees a bound that is not finite
    # where a matrix is not positive definite there is no bound: the line search must come back
    barrier = first - max(1.0, abs(first))

    def downhill(numbers: Floats) -> tuple[float, Floats]:
        value, gradient = at(numbers)
        if not (np.isfinite(value) and np.all(np.isfinite(gradient))):
            return -barrier, np.zeros_like(numbers)
        return -value, -gradient

    def visit(xk: Floats) -> None:
        on_iteration(unflatten(start, np.array(xk)))

    found = minimize(
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
    return unflatten(start, np.asarray(found.x, dtype=np.float64))
