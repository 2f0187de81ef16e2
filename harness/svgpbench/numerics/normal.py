"""The normal distribution function over any `Ops`, one formula for all backends.

The frameworks' own log Φ differ (one has no derivative, one is off in the tail), so it is built on
the scaled complementary error function by a Chebyshev expansion (Shepherd and Laframboise 1981),
fitted here to SciPy's.
"""

from __future__ import annotations

import math

from numpy.polynomial import chebyshev
from scipy.special import erfcx

from svgpbench.ops import Array, Ops

_CENTRE, _DEGREE = 3.75, 28


def _coefficients() -> list[float]:
    """(1 + 2z) erfcx(z) on z ∈ [0, ∞) as a polynomial in t = (z − k)/(z + k) ∈ [−1, 1]."""
    nodes = chebyshev.chebpts1(_DEGREE + 1)
    z = _CENTRE * (1.0 + nodes) / (1.0 - nodes)
    values = (1.0 + 2.0 * z) * erfcx(z)
    series = chebyshev.chebfit(nodes, values, _DEGREE)
    return [float(a) for a in chebyshev.cheb2poly(series)]


_POWERS = _coefficients()


def scaled_erfc(ops: Ops, z: Array) -> Array:
    """exp(z²) erfc(z) for z ≥ 0, to a few units in the last place."""
    t = (z - _CENTRE) / (z + _CENTRE)
    out = _POWERS[-1] + 0.0 * t
    for a in reversed(_POWERS[:-1]):
        out = out * t + a
    return out / (1.0 + 2.0 * z)


def log_ndtr(ops: Ops, x: Array) -> Array:
    """Log Φ(x), accurate in both tails."""
    return log_ndtr_and_slope(ops, x)[0]


def log_ndtr_and_slope(ops: Ops, x: Array) -> tuple[Array, Array]:
    """Log Φ(x) and its derivative φ(x)/Φ(x), from one evaluation of erfcx."""
    z = ops.abs(x) * math.sqrt(0.5)
    scaled = scaled_erfc(ops, z)
    gauss = ops.exp(-z * z)
    tail = 0.5 * gauss * scaled  # Φ(−|x|)
    negative = x < 0.0
    value = ops.where(negative, ops.log(0.5 * scaled) - z * z, ops.log1p(-tail))
    phi = gauss * (1.0 / math.sqrt(2.0 * math.pi))
    slope = ops.where(negative, math.sqrt(2.0 / math.pi) / scaled, phi / (1.0 - tail))
    return value, slope


def squashed_log_ndtr(ops: Ops, x: Array, squash: float) -> tuple[Array, Array]:
    """Log(ε + (1 − 2ε) Φ(x)) and its derivative, ε being `squash`; that of Φ itself where ε is 0.

    An ε above 0 keeps the logarithm off the tail, so Φ and φ need no scaling.
    """
    if not squash:
        return log_ndtr_and_slope(ops, x)
    z = math.sqrt(0.5) * x
    p = squash + (0.5 - squash) * ops.erfc(-z)
    phi = ops.exp(-z * z) * ((1.0 - 2.0 * squash) / math.sqrt(2.0 * math.pi))
    return ops.log(p), phi / p
