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
    undecided = "undecided"
    not_learned = "not learned"  # no method does better than the mean of the targets


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


def with_interval(effect: Effect) -> str:
    """Return a number and its interval, with as many digits as tell them apart."""
    if effect.value is None:
        return ""
    if effect.low is None or effect.high is None:
        return f"{effect.value:+.3g}"
    return f"{effect.value:+.3g} [{effect.low:+.3g}, {effect.high:+.3g}]"
