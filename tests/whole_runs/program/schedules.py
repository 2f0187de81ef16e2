"""Rates by EM iteration i = 1, 2, …, stated as functions."""

from __future__ import annotations

import math
from collections.abc import Callable

Schedule = Callable[[int], float]


def constant(rate: float) -> Schedule:
    return lambda i: rate


def rising(start: float, end: float, steps: int) -> Schedule:
    """Return a log-linear rise from `start`; `end` is first met at iteration 1 + `steps`, and kept."""

    def rate(i: int) -> float:
        if i > steps:
            return end
        return math.exp(math.log(start) + (i - 1) / steps * (math.log(end) - math.log(start)))

    return rate


def falling(start: float, decay: float) -> Schedule:
    """Return γ₀/(1 + decay·√t) with t = i − 1 (Cheng and Boots 2017, Sec. 4)."""
    return lambda i: start / (1.0 + decay * math.sqrt(i - 1))
