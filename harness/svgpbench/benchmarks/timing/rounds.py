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

    median_s: Positive  # of the calls, per step
    min_s: Positive
    calls: NonNegativeInt
    other_cores: FiniteFloat  # cores' worth of CPU that other processes used
    clean: bool
    seconds: tuple[float, ...] = ()  # per step, one per call; a record has none

    @classmethod
    def measured(cls, seconds: tuple[float, ...], other_cores: float, clean: bool) -> Round:
        """Return the round of calls that took these seconds per step."""
        # not a mean: one call of 3 ms whose core was taken can last 250 ms
        median_s = statistics.median(seconds)
        return cls(median_s, min(seconds), len(seconds), other_cores, clean, seconds)


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
