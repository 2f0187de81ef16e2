"""The constant latent function under which training targets are most probable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from scipy.optimize import brentq

HALF_A_COUNT: Final = 0.5
"""Nats below the supremum at which a maximum at infinity is cut off.

For Poisson counts that are all 0, and for labels of one class, this is the f of half a count of the other
kind: n e^f = ½, and n log p = −½."""

GRID: Final = (0.0, *(sign * 2.0**k for k in range(-20, 31) for sign in (1.0, -1.0)))
"""Values to try, those near 0 first: a log link has a mean of e^f, other links have one near f itself."""

WORST: Final = -1e300
"""Value where a log likelihood is not finite."""


def best_constant(log_likelihood: Callable[[float], tuple[float, float]]) -> float:
    """Return the f that maximises a log likelihood, given as (value, slope) at f; it is always finite.

    If the values rise towards an infinite f, it is the f nearest to 0 within half a nat of the supremum. Of
    several maxima it is one near the best value of a coarse grid.
    """

    def value(f: float) -> float:
        at_f = log_likelihood(f)[0]
        return at_f if np.isfinite(at_f) else WORST

    def root(function: Callable[[float], float], start: float, end: float) -> float:
        return float(brentq(function, start, end, xtol=1e-15))

    # the far ends of the grid overflow exp(f); their values count as `WORST`
    with np.errstate(all="ignore"):
        values = [value(f) for f in GRID]
        best, ordered = GRID[int(np.argmax(values))], sorted(GRID)
        before, after = (
            ordered[min(max(ordered.index(best) + i, 0), len(GRID) - 1)] for i in (-1, 1)
        )
        if log_likelihood(before)[1] > 0.0 > log_likelihood(after)[1]:
            return root(lambda f: log_likelihood(f)[1], before, after)
        close_enough = max(values) - HALF_A_COUNT
        outwards = [0.0, *(f for f in GRID if f * best > 0.0)]
        first = next(i for i, f in enumerate(outwards) if value(f) >= close_enough)
        if not first:
            return 0.0
        return root(lambda f: value(f) - close_enough, outwards[first - 1], outwards[first])
