"""Derivatives of a function of one number by central differences of sixth order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T", float, npt.NDArray[np.float64])


def slope(f: Callable[[float], T], h: float = 3e-3) -> T:
    """Return f′(0) from six values at distances up to 3h."""
    # truncation h⁶f⁽⁷⁾/140 = 5e-18 f⁽⁷⁾ lies far below the rounding of f, ε/h = 7e-14
    d1, d2, d3 = (f(k * h) - f(-k * h) for k in (1, 2, 3))
    return (45.0 * d1 - 9.0 * d2 + d3) / (60.0 * h)


def slope_along(f: Callable[..., T], point: Sequence[Any], direction: Sequence[Any]) -> T:
    """Return the slope of f at a point along a direction; both have one entry per argument of f."""
    return slope(lambda t: f(*(x + t * d for x, d in zip(point, direction, strict=True))))


def curvature(f: Callable[[float], float], h: float = 2e-2) -> float:
    """Return f″(0) from seven values at distances up to 3h."""
    # rounding grows as ε/h², so h is larger: 6e-13, beside a truncation h⁶f⁽⁸⁾/560 = 1e-13 f⁽⁸⁾
    s1, s2, s3 = (f(k * h) + f(-k * h) for k in (1, 2, 3))
    return (270.0 * s1 - 27.0 * s2 + 2.0 * s3 - 490.0 * f(0.0)) / (180.0 * h * h)
