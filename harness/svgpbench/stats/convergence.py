"""Convergence of a bound: its iteration, and the rise and fall in the last quarter of a run.

The bound of a run on minibatches is first smoothed by a running median. The window has nine evaluations.
It has fewer if the trace has fewer than 36, so that it never covers more than a quarter of the trace.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from svgpbench.stats.measures import MEASURES

Floats: TypeAlias = npt.NDArray[np.float64]

WINDOW: Final = 9
"""Most evaluations in the window of the running median."""

LAST_QUARTER: Final = 0.75

# c/(¾t) − c/t = c/(3t): what is left to gain, c/t, is three times the move of the last quarter
RELATIVE_REGION: Final = 1e-3
"""Largest move of a settled bound of labels or counts, as a share of it.

A bound whose distance to its limit falls as 1/t is then within 0.3 % of it.
"""


class BoundTrace(NamedTuple):
    """The bound of a run at the iterations where it was evaluated, −∞ where it is NaN or null."""

    iterations: Floats  # [evaluations]
    bound: Floats  # [evaluations], smoothed for minibatches
    best: float = -math.inf  # the best bound known for the cell, of any run
    region: float = 0.0  # of practical equivalence; the least distance from start to best
    start: float = (
        math.nan
    )  # the first finite bound as evaluated, not smoothed; NaN if there is none

    def converges(self, start: float, tolerance: float) -> float:
        """Return the first evaluated iteration from which the bound stays near the best bound.

        Near means within `tolerance` times the distance from `start` to the best bound. The distance is at
        least the region. Returns infinity if the bound is not near at the end of the run.
        """
        # a floor: a run that starts at its best has no way to go, and rounding would decide its T
        distance = max(self.best - start, self.region)
        below = np.flatnonzero(self.bound < self.best - tolerance * distance)
        first = int(below[-1]) + 1 if len(below) else 0
        return float(self.iterations[first]) if first < len(self.iterations) else math.inf

    def with_fit_region(self, rows: int, discrete: bool) -> BoundTrace:
        """Return the trace with the region within which the bound of a fit has settled.

        It is 0.001 nats per row. If y is discrete, it is at most 0.001 of the bound, too: the bound of rare
        labels rests on a few rows, and may be a few nats on thousands of rows. All its terms are negative, so
        its size is what there is to gain. A bound of densities has no zero of its own: another unit of y
        adds n log c. Less than 0.001 nats in all is no move of any fit.
        """
        region = MEASURES["elbo"].region_at(0.0, rows)
        if discrete and len(self.bound):
            region = min(region, RELATIVE_REGION * max(1.0, abs(self.bound[-1])))
        return self._replace(region=region)

    @property
    def last_quarter(self) -> Floats:
        """The evaluated bounds of the last quarter of the iterations."""
        if not len(self.iterations):
            return self.bound
        last: Floats = self.bound[self.iterations >= LAST_QUARTER * self.iterations[-1]]
        return last

    @property
    def rise(self) -> float:
        """The increase of the bound over the last quarter of the run, negative if the bound fell.

        NaN if the quarter has fewer than two evaluations, or if its first or last one is not finite.
        """
        return _rise(self.last_quarter)

    @property
    def fall(self) -> float:
        """The largest drop of the bound below an earlier value of the last quarter."""
        return _fall(self.last_quarter)

    @property
    def move(self) -> float:
        """The rise or, negative, the fall at the end of the run if it exceeds the region; else 0.

        The end is the last quarter, or the last two evaluations if the quarter has fewer.
        """
        end = self.last_quarter if len(self.last_quarter) > 1 else self.bound[-2:]
        if _rise(end) > self.region:
            return _rise(end)
        return -_fall(end) if _fall(end) > self.region else 0.0

    @property
    def unsettled(self) -> str:
        """Text on the move, such as `rose by 3`; empty if the bound had settled."""
        if not self.move:
            return ""
        return f"{'rose' if self.move > 0 else 'fell'} by {abs(self.move):.3g}"


def _rise(bound: Floats) -> float:
    if len(bound) < 2 or not np.isfinite(bound[[0, -1]]).all():
        return math.nan
    return float(bound[-1] - bound[0])


def _fall(bound: Floats) -> float:
    finite = bound[np.isfinite(bound)]
    return float(np.max(np.maximum.accumulate(finite) - finite, initial=0.0))


def bound_trace(
    iterations: Sequence[float | None], bound: Sequence[float | None], minibatches: bool
) -> BoundTrace:
    """Return the trace of a run, from the columns of its record."""
    values = np.array([-math.inf if x is None else x for x in bound], dtype=np.float64)
    values[np.isnan(values)] = -math.inf
    # before the smoothing: its first value is a median of five looks, on NAVAL 93 % of the way up
    start = next((float(x) for x in values if math.isfinite(x)), math.nan)
    if minibatches:
        values = _running_median(values)
    return BoundTrace(np.array(iterations, dtype=np.float64)[: len(values)], values, start=start)


def _running_median(values: Floats) -> Floats:
    """Return the running median over a centred window of an odd number of values."""
    quarter = len(values) // 4
    window = min(WINDOW, quarter - (quarter % 2 == 0))
    if window < 3:
        return values
    finite = np.where(np.isfinite(values), values, -1e300)  # pandas leaves infinities out
    # min_periods: the window is cut at both ends, where the default gives NaN
    rolling = pd.Series(finite).rolling(window, center=True, min_periods=1)
    smooth = rolling.median().to_numpy(np.float64)
    return np.where(smooth <= -1e299, -math.inf, smooth)
