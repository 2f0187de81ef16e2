"""Rounds of timed calls, as they were run and as a record keeps them, and their order statistics."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from pydantic import FiniteFloat, NonNegativeInt

from svgpbench.config import Positive


class Round(NamedTuple):
    """Some calls in a row."""

    seconds: tuple[float, ...]  # a step
    other_cores: float  # cores' worth of CPU that other processes used
    clean: bool

    @property
    def median_s(self) -> float:
        """Of its calls."""
        return statistics.median(self.seconds)

    @property
    def min_s(self) -> float:
        """Of its calls."""
        return min(self.seconds)

    @property
    def calls(self) -> int:
        """How many they were."""
        return len(self.seconds)


class KeptRound(NamedTuple):
    """A round as a record has it, without its single calls."""

    median_s: Positive
    min_s: Positive
    calls: NonNegativeInt
    other_cores: FiniteFloat
    clean: bool

    @property
    def seconds(self) -> tuple[float, ...]:
        """None is known."""
        return ()


class Spread(NamedTuple):
    """Median and quartiles of something, its least value, and of how many."""

    median: Positive
    q1: Positive
    q3: Positive
    least: Positive
    of: NonNegativeInt


def spread(values: Sequence[float]) -> Spread | None:
    """Order statistics; None of nothing."""
    if not values:
        return None
    q1, median, q3 = np.quantile(values, (0.25, 0.5, 0.75))
    return Spread(float(median), float(q1), float(q3), min(values), len(values))
