"""The mean of a few units with its interval, what an interval says, and how many units would decide."""

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
"""What tells the cells of one mean apart."""

LEVEL = 0.95
STARTS = 5
"""The fewest seeds of one split that make an interval."""

MOST_UNITS = 1000


class Sample(NamedTuple):
    """Numbers of which a mean is wanted, and how far they overlap."""

    values: Floats  # one a unit, or a row of several
    overlap: float  # n_test / n_train of folds and random splits, 0 of seeds
    unit: str

    @property
    def mean(self) -> float:
        """Of the units."""
        return float(self.values.mean())

    @property
    def error(self) -> Floats:
        """The standard error of the mean of the units."""
        return self.error_of(len(self.values))

    def error_of(self, units: int) -> Floats:
        """The standard error of the mean of so many units of the same spread.

        Source: Nadeau and Bengio 2003, the corrected resampled t.
        """
        return np.asarray(self.values.std(axis=0, ddof=1) * math.sqrt(1 / units + self.overlap))

    def half_width(self, units: int) -> float:
        """Half the 95 % interval that so many units of the same spread have."""
        quantile = float(stdtrit(units - 1, 0.5 + LEVEL / 2))  # Student's t
        return quantile * float(self.error_of(units))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the mean."""
        half = self.half_width(len(self.values))
        return self.mean - half, self.mean + half


class TooFewError(ValueError):
    """Too few units for an interval; the message says what is there and what it takes."""


def sampled(values: pd.Series[float] | pd.DataFrame, overlap: float, rows: str) -> Sample:
    """The units among `values`, or among the rows of a frame, indexed by split_seed, fold and seed.

    Of a test score, the splits, seeds averaged first; of a training score, and where there is one split
    alone, the seeds, five at least.

    Raises `TooFewError`.
    """
    splits = values.groupby(level=["split_seed", "fold"]).mean()
    return of_units(
        splits.to_numpy(), values.groupby(level="seed").mean().to_numpy(), overlap, rows
    )


def of_units(splits: Floats, starts: Floats, overlap: float, rows: str) -> Sample:
    """As `sampled`, of the means over each split and over each start."""
    if rows == "test" and len(splits) > 1:
        return Sample(splits, overlap, "splits")
    if len(starts) < STARTS:
        count = f"{len(starts)} start{'s' if len(starts) > 1 else ''} a split"
        raise TooFewError(f"{count} where {STARTS} make an interval")
    return Sample(starts, 0.0, "starts")


def says(low: float, high: float, region: float) -> Outcome:
    """What an interval says: all beyond the region, all inside, or neither."""
    if low > region:
        return Outcome.better
    if high < -region:
        return Outcome.worse
    if -region <= low and high <= region:
        return Outcome.equal
    return Outcome.undecided


def says_no_worse(low: float, high: float, region: float) -> Outcome:
    """What an interval says of non-inferiority: whether all of it lies above minus the region."""
    if low > -region:
        return Outcome.no_worse
    return Outcome.worse if high < -region else Outcome.undecided


def would_decide(units: int | None, unit: str) -> str:
    """What a note says of how many would."""
    return f"{units or 'no number of'} {unit} would decide"


def units_that_decide(
    sample: Sample, region: float, says_of: Callable[[float, float, float], Outcome] = says
) -> int | None:
    """The fewest units of the same mean and spread that would decide; None where no number would."""
    mean = sample.mean
    return _fewest(sample, lambda h: says_of(mean - h, mean + h, region) != Outcome.undecided)


def units_of_width(sample: Sample, width: float) -> int | None:
    """The fewest units of the same spread whose interval is no wider; None where no number is enough."""
    return _fewest(sample, lambda half: 2 * half <= width)


def _fewest(sample: Sample, enough: Callable[[float], bool]) -> int | None:
    """The fewest units beyond those there are whose half interval is enough."""
    more = range(len(sample.values) + 1, MOST_UNITS + 1)
    # intervals of more units lie within those of fewer, so that what is enough stays so
    place = bisect_left(more, True, key=lambda units: enough(sample.half_width(units)))
    return more[place] if place < len(more) else None
