"""When a bound has converged, how much it still rises at the end of a run, and how far it falls back.

The bound of a run on minibatches is smoothed by a running median over nine looks first; over fewer where a
trace has fewer than 36, so that a window never covers more than a quarter of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats: TypeAlias = npt.NDArray[np.float64]

WINDOW: Final = 9
"""Looks of a running median."""

LAST_QUARTER: Final = 0.75


class BoundTrace(NamedTuple):
    """The bound of a run at the iterations where it was evaluated, −∞ where it is no number."""

    iterations: Floats  # [looks]
    bound: Floats  # [looks], smoothed
    best: float = -math.inf  # the best bound known for the cell, of any run
    region: float = 0.0  # of practical equivalence; a shorter way from start to best counts as this

    @property
    def start(self) -> float:
        """The first evaluated bound."""
        return float(self.bound[0]) if len(self.bound) else math.nan

    def converges(self, start: float, tolerance: float) -> float:
        """Return T: the first evaluated iteration from which the bound stays near the best.

        Near is within the share `tolerance` of the way from `start` to the best bound, which is no shorter
        than the region. Infinite where the bound is not near at the end of the run.
        """
        way = max(self.best - start, self.region)
        below = np.flatnonzero(self.bound < self.best - tolerance * way)
        first = int(below[-1]) + 1 if len(below) else 0
        return float(self.iterations[first]) if first < len(self.iterations) else math.inf

    @property
    def last_quarter(self) -> Floats:
        """The bound from three quarters of the iterations on."""
        if not len(self.iterations):
            return self.bound
        last: Floats = self.bound[self.iterations >= LAST_QUARTER * self.iterations[-1]]
        return last

    @property
    def rise(self) -> float:
        """By how much the bound rose in the last quarter of the run; below 0 where it fell.

        NaN where it was evaluated less than twice there, or is no number at an end.
        """
        last = self.last_quarter
        if len(last) < 2 or not np.isfinite(last[[0, -1]]).all():
            return math.nan
        return float(last[-1] - last[0])

    @property
    def fall(self) -> float:
        """By how much the bound fell at most below an earlier one of the last quarter."""
        last = self.last_quarter[np.isfinite(self.last_quarter)]
        return float(np.max(np.maximum.accumulate(last) - last, initial=0.0))


def bound_trace(
    iterations: Sequence[float | None], bound: Sequence[float | None], minibatches: bool
) -> BoundTrace:
    """Make the trace of a run from the columns of its record."""
    values = np.array([-math.inf if x is None else x for x in bound], dtype=np.float64)
    values[np.isnan(values)] = -math.inf
    if minibatches:
        values = _running_median(values)
    return BoundTrace(np.array(iterations, dtype=np.float64)[: len(values)], values)


def _running_median(values: Floats) -> Floats:
    """Smooth by a centred window of an odd number of looks."""
    quarter = len(values) // 4
    window = min(WINDOW, quarter - (quarter % 2 == 0))
    if window < 3:
        return values
    finite = np.where(np.isfinite(values), values, -1e300)  # pandas leaves infinities out
    rolling = pd.Series(finite).rolling(window, center=True, min_periods=1)
    smooth = rolling.median().to_numpy(np.float64)
    return np.where(smooth <= -1e299, -math.inf, smooth)
