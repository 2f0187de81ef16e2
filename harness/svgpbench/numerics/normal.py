"""The normal distribution function over any `Ops`, by one formula for all backends.

The frameworks' own log Φ differ: one has no derivative, one is inaccurate in the tail. So log Φ is computed
from the scaled complementary error function, by a Chebyshev expansion (Shepherd and Laframboise 1981) that
is fitted here to SciPy's.
"""

from __future__ import annotations

import math

from jaxtyping import Float
from numpy.polynomial import chebyshev
from scipy.special import erfcx

from svgpbench.ops import Array, Ops

_CENTRE, _DEGREE = 3.75, 28


def _coefficients() -> list[float]:
    """Fit (1 + 2z) erfcx(z), z ∈ [0, ∞), by a polynomial in t = (z − k)/(z + k) ∈ [−1, 1].

    Return its coefficients, lowest power first.
    """
    nodes = chebyshev.chebpts1(_DEGREE + 1)
    z = _CENTRE * (1.0 + nodes) / (1.0 - nodes)
    # erfcx falls like 1/z: times 1 + 2z it has a finite limit at t = 1, which a polynomial can meet
    values = (1.0 + 2.0 * z) * erfcx(z)
    series = chebyshev.chebfit(nodes, values, _DEGREE)
    return [float(a) for a in chebyshev.cheb2poly(series)]


_POWERS = _coefficients()


def scaled_erfc(ops: Ops, z: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Compute exp(z²) erfc(z) for z ≥ 0, to a few units in the last place."""
    t = (z - _CENTRE) / (z + _CENTRE)
    out = _POWERS[-1] + 0.0 * t
    for a in reversed(_POWERS[:-1]):
        out = out * t + a
    return out / (1.0 + 2.0 * z)


def log_ndtr(ops: Ops, x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Compute log Φ(x), accurate in both tails."""
    return log_ndtr_and_slope(ops, x)[0]


def log_ndtr_and_slope(
    ops: Ops, x: Float[Array, "*shape"]
) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    """Compute log Φ(x) and its derivative φ(x)/Φ(x), from one evaluation of erfcx."""
    z = ops.abs(x) * math.sqrt(0.5)
    scaled = scaled_erfc(ops, z)
    gauss = ops.exp(-z * z)
    tail = 0.5 * gauss * scaled  # Φ(−|x|)
    negative = x < 0.0
    # for x < 0 log Φ = log(½ erfcx(z)) − z², while Φ itself is 0 in float64 from x = −38.5; both
    # branches are finite on either side, so that `where` passes no NaN to autodiff
    value = ops.where(negative, ops.log(0.5 * scaled) - z * z, ops.log1p(-tail))
    phi = gauss * (1.0 / math.sqrt(2.0 * math.pi))
    # exp(−z²) cancels in φ/Φ, which tends to −x where both underflow
    slope = ops.where(negative, math.sqrt(2.0 / math.pi) / scaled, phi / (1.0 - tail))
    return value, slope


def squashed_log_ndtr(
    ops: Ops, x: Float[Array, "*shape"], squash: float
) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    """Compute log(ε + (1 − 2ε) Φ(x)) and its derivative, where ε is `squash`.

    With ε > 0 the logarithm is bounded in the tail, so Φ and φ need no scaling.
    """
    if not squash:
        return log_ndtr_and_slope(ops, x)
    z = math.sqrt(0.5) * x
    p = squash + (0.5 - squash) * ops.erfc(-z)
    phi = ops.exp(-z * z) * ((1.0 - 2.0 * squash) / math.sqrt(2.0 * math.pi))
    return ops.log(p), phi / p
