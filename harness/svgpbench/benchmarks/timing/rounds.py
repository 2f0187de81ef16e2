"""Rounds of timed calls, as measured and as stored in a record, and their order statistics."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from pydantic import FiniteFloat, NonNegativeInt

from svgpbench.config import Positive


class Round(NamedTuple):
    """Round of consecutive calls."""

    seconds: tuple[float, ...]  # per step, one per call
    other_cores: float  # cores' worth of CPU that other processes used
    clean: bool

    @property
    def median_s(self) -> float:
        """Median seconds of the calls."""
        # not a mean: one call of 3 ms whose core was taken can last 250 ms
        return statistics.median(self.seconds)

    @property
    def min_s(self) -> float:
        """Least seconds of the calls."""
        return min(self.seconds)

    @property
    def calls(self) -> int:
        """Number of calls."""
        return len(self.seconds)


class KeptRound(NamedTuple):
    """Round as stored in a record, without its single calls."""

    median_s: Positive
    min_s: Positive
    calls: NonNegativeInt
    other_cores: FiniteFloat
    clean: bool

    @property
    def seconds(self) -> tuple[float, ...]:
        """Seconds of single calls: empty, as they are not stored."""
        return ()


class OrderStatistics(NamedTuple):
    """Median, quartiles and least value of a sample, and its size."""

    median: Positive
    q1: Positive
    q3: Positive
    least: Positive
    of: NonNegativeInt


def spread(values: Sequence[float]) -> OrderStatistics | None:
    """Return the order statistics of the values, or None if there are none."""
    if not values:
        return None
    q1, median, q3 = np.quantile(values, (0.25, 0.5, 0.75))
    return OrderStatistics(float(median), float(q1), float(q3), min(values), len(values))
