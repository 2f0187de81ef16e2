"""Central differences of fourth order, the independent check of every derivative."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def derivative(f: Callable[[float], Floats | float], step: float) -> Floats:
    """f′(0) from f at ±h and ±2h; the error is of order h⁴."""
    difference = 8.0 * (np.asarray(f(step)) - f(-step)) - (np.asarray(f(2 * step)) - f(-2 * step))
    return np.asarray(difference / (12.0 * step))


def gradient(f: Callable[..., float], arguments: list[Floats], step: float = 1e-3) -> list[Floats]:
    """Gradient of scalar f(*arguments) in every entry of every argument."""
    out = []
    for k, x in enumerate(arguments):
        g = np.zeros(x.shape)
        for index in np.ndindex(x.shape):

            def along(h: float, k: int = k, index: tuple[int, ...] = index) -> float:
                moved = [np.array(a) for a in arguments]
                moved[k][index] += h
                return float(f(*moved))

            g[index] = derivative(along, step)
        out.append(g)
    return out
