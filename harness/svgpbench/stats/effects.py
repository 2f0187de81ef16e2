"""The result of comparing two methods: the difference, its interval and the outcome."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """The outcome of comparing a 95 % interval with the region of practical equivalence."""

    better = "better"
    worse = "worse"
    equal = "equal"
    no_worse = "no worse"
    no_better = "no better"  # the interval excludes every gain that matters, and allows a loss
    undecided = "undecided"
    not_learned = "not learned"  # no method does better than a constant
    same = "the same number in every run"
    unit = "one of the data sets averaged over"


NOT_VOTING = frozenset({Outcome.not_learned, Outcome.same, Outcome.unit})
"""Outcomes of data sets that do not count in a majority."""


@dataclass(frozen=True)
class Effect:
    """One comparison: a number, its 95 % interval (quartiles for times) and the outcome."""

    of: str  # the subject, such as a data set
    outcome: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    note: str = ""
    held: bool | None = None  # whether it supports the claim; None if it does not decide
    in_regions: tuple[float, float, float] | None = None
    """Number and interval in multiples of what matters, a unit that all measures share; logs of ratios."""


def in_regions(
    middle: float, low: float, high: float, region: float
) -> tuple[float, float, float] | None:
    """Return a number and its interval in multiples of the region; None without a region."""
    return (middle / region, low / region, high / region) if region else None


def with_interval(effect: Effect) -> str:
    """Return a number and its interval, with as many digits as tell them apart."""
    if effect.value is None:
        return ""
    if effect.low is None or effect.high is None:
        return f"{effect.value:+.3g}"
    return f"{effect.value:+.3g} [{effect.low:+.3g}, {effect.high:+.3g}]"
