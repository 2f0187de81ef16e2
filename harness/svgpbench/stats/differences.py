"""Intervals of a mean over splits, starts or data sets, their outcomes, and the units that would decide."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import stdtrit

from svgpbench.stats.effects import Outcome

Floats: TypeAlias = npt.NDArray[np.floating[Any]]

REPLICATE: Final = ["split_seed", "fold", "seed"]
"""Columns that identify a cell among the cells of one mean."""

LEVEL = 0.95
RESAMPLES = 10_000
"""Resamples of a bootstrap."""
STARTS = 5
"""The fewest seeds of one split that make an interval."""

MOST_UNITS = 1000

Judge: TypeAlias = Callable[[float, float, float], Outcome]
"""Function from the ends of an interval and half the width of the region to an outcome."""


class Sample(NamedTuple):
    """The units of a mean (splits or starts), and the overlap of their training parts."""

    values: Floats  # [units], or [units, columns]
    overlap: float  # n_test / n_train of folds and random splits, 0 of seeds
    unit: str

    @property
    def mean(self) -> float:
        """The mean of the units."""
        return float(self.values.mean())

    @property
    def error(self) -> Floats:
        """The standard error of the mean of the units."""
        return self.error_of(len(self.values))

    def error_of(self, units: int) -> Floats:
        """Return the standard error of the mean of `units` units of the same spread.

        Source: Nadeau and Bengio 2003, the corrected resampled t.
        """
        # splits overlap in training and are correlated, by about ρ = n_test/n:
        # their mean of J has the variance (1/J + ρ/(1 − ρ))s², and ρ/(1 − ρ) = n_test/n_train
        return np.asarray(self.values.std(axis=0, ddof=1) * math.sqrt(1 / units + self.overlap))

    def half_width(self, units: int) -> float:
        """Return half the width of the 95 % interval for `units` units of the same spread."""
        quantile = float(stdtrit(units - 1, 0.5 + LEVEL / 2))  # Student's t
        return quantile * float(self.error_of(units))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the mean."""
        half = self.half_width(len(self.values))
        return self.mean - half, self.mean + half


class TooFewError(ValueError):
    """Too few units for an interval; the message has the number of units and the number needed."""


def sampled(values: pd.Series[float] | pd.DataFrame, overlap: float, rows: str) -> Sample:
    """Return the units of values that are indexed by split_seed, fold and seed.

    The units of a test score are the splits, each averaged over seeds. The units of a training score are
    the seeds, each averaged over splits. Seeds are also used if there is only one split.

    Args:
        values: a series, or a frame with one such row per cell.
        overlap: n_test / n_train.
        rows: the part of the data that the score is computed on, "test" or "training".

    Raises:
        TooFewError: the units are seeds, and there are fewer than five.
    """
    # seeds of a split share its test rows: as units of their own they would narrow the interval
    splits = values.groupby(level=["split_seed", "fold"]).mean()
    return of_units(
        splits.to_numpy(), values.groupby(level="seed").mean().to_numpy(), overlap, rows
    )


def of_units(splits: Floats, starts: Floats, overlap: float, rows: str) -> Sample:
    """Return the units as `sampled` does, from the mean of each split and of each start."""
    if rows == "test" and len(splits) > 1:
        return Sample(splits, overlap, "splits")
    if len(starts) < STARTS:
        count = f"{len(starts)} start{'s' if len(starts) > 1 else ''} a split"
        raise TooFewError(f"{count} where {STARTS} make an interval")
    return Sample(starts, 0.0, "starts")


def bootstrap(values: Floats, statistic: Callable[..., Any]) -> Floats:
    """Return a statistic of `RESAMPLES` resamples of rows, [resamples, ...] of values [rows, ...].

    `statistic` takes an axis, as `np.mean` does.
    """
    # a fixed seed, so that the same records always give the same interval
    rows = np.random.default_rng(0).integers(len(values), size=(RESAMPLES, len(values)))
    return np.asarray(statistic(values[rows], axis=1))


def percentile_interval(resampled: Floats | pd.Series[float]) -> Floats:
    """Return the ends of the 95 % interval of a resampled statistic, [2, ...] of [resamples, ...]."""
    return np.quantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)


def signed_rank_interval(values: Floats) -> tuple[float, float, float]:
    """Return the middle of some values and its 95 % interval by Wilcoxon's signed ranks.

    The middle is the median of the means of all pairs of values, each value paired with itself too. The
    interval leaves out as many of these means at each end as the exact distribution of the rank sum allows.
    It is infinite for fewer than six values.

    Source: Hodges and Lehmann 1963; for a comparison over data sets Demšar 2006, Sec. 3.1.3.
    """
    # Tukey: the positive rank sum of x − t is the number of means (xᵢ + xⱼ)/2, i ≤ j, above t
    first, second = np.triu_indices(len(values))
    means = np.sort((values[first] + values[second]) / 2)
    ways = np.ones(1)  # [rank sums], the number of sign patterns of each
    # coefficients of ∏(1 + z^rank): at no difference each rank is positive with probability ½
    for rank in range(1, len(values) + 1):
        ways = np.pad(ways, (0, rank)) + np.pad(ways, (rank, 0))
    tails = np.cumsum(ways) / ways.sum()
    left_out = int(np.searchsorted(tails, (1 - LEVEL) / 2, side="right"))
    middle = float(np.median(means))
    # five values of one sign: 2⁻⁵ = 3.1 % a side, more than 2.5 %
    if left_out == 0:
        return middle, -math.inf, math.inf
    return middle, float(means[left_out - 1]), float(means[-left_out])


def interval_outcome(low: float, high: float, region: float) -> Outcome:
    """Return the outcome of an interval: all of it beyond the region, all inside, or undecided."""
    if low > region:
        return Outcome.better
    if high < -region:
        return Outcome.worse
    if -region <= low and high <= region:
        return Outcome.equal
    return Outcome.undecided


def superiority_outcome(low: float, high: float, region: float) -> Outcome:
    """Return the outcome of an interval where the question is whether the first method is better.

    Beside the outcomes of `interval_outcome` it is `no_better` if the interval lies below the region.
    """
    outcome = interval_outcome(low, high, region)
    return Outcome.no_better if outcome == Outcome.undecided and high < region else outcome


def non_inferiority_outcome(low: float, high: float, region: float) -> Outcome:
    """Return the outcome of a non-inferiority test: `no_worse` if the whole interval is above −region."""
    if low > -region:
        return Outcome.no_worse
    return Outcome.worse if high < -region else Outcome.undecided


def would_decide(units: int | None, unit: str) -> str:
    """Return the note on the number of units that would decide; `units` None means no number."""
    return f"{units or 'no number of'} {unit} would decide"


def units_that_decide(
    sample: Sample,
    region: float,
    judge: Judge = interval_outcome,
) -> int | None:
    """Return the fewest units of the same mean and spread that would decide, or None if there is none.

    Args:
        sample: the units of an undecided difference.
        region: half the width of the region of practical equivalence.
        judge: one of the functions above, from an interval and a region to an outcome.
    """
    mean = sample.mean
    return _fewest(sample, lambda h: judge(mean - h, mean + h, region) != Outcome.undecided)


def units_of_width(sample: Sample, width: float) -> int | None:
    """Return the fewest units of the same spread with an interval no wider than `width`, or None."""
    return _fewest(sample, lambda half: 2 * half <= width)


def _fewest(sample: Sample, enough: Callable[[float], bool]) -> int | None:
    """Return the fewest units, more than there are, whose half width satisfies `enough`, or None."""
    more = range(len(sample.values) + 1, MOST_UNITS + 1)
    # the interval shrinks with the number of units, so `enough` stays true once it is true
    index = bisect_left(more, True, key=lambda units: enough(sample.half_width(units)))
    return more[index] if index < len(more) else None
