"""Nodes for integrals of p(y | f) or log p(y | f) under q(f) = N(μ, v), placed where the integrand varies.

Gauss–Hermite nodes lie where q(f) has its mass, at distances of about √v/√S. A likelihood that is narrower
than that falls between them. Here two centres are found by bisection, and Gauss–Legendre nodes are placed on
both sides of each, in s where f − centre = ± width · sinh(s). They are dense near the centre, on the scale of
its width, and still reach the ends of q(f). A kink at a centre costs no digits.

All positions t are in units of q: f = μ + √v t. The numbers of bisections and nodes are fixed, so that every
backend takes the same steps. p(y | f) may have one mode in f, or none.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from svgpbench.ops import Array, Ops

PREDICTIVE_NODES, EXPECTATION_NODES = 32, 20
"""Number of nodes in each of the three zones on each side of each of the two centres."""

# after these an interval of 2 `REACH` is 1.6e-14 long, which is near rounding
BISECTIONS = 50

WIDEST = 4.0
"""Largest width of a centre, in standard deviations of q."""

REACH = 9.0
"""Distance from a centre to the end of the nodes, in standard deviations of q: exp(−9²/2) = 3e-18."""

Position = Float[Array, "P b"]
LogDensityAlongQ = Callable[
    [Float[Array, "P b S"]], tuple[Float[Array, "P b S"], Float[Array, "P b S"]]
]
"""t → log p(y | f) and its derivative in t, at f = μ + √v t."""


class Rule(NamedTuple):
    """Nodes t, and weights of the integral over t."""

    t: Float[Array, "P b S"]
    weights: Float[Array, "P b S"]


class Centre(NamedTuple):
    """A position t, and the distance over which the integrand changes there."""

    t: Position
    width: Position


def predictive_rule(ops: Ops, log_p: LogDensityAlongQ, like: Position) -> Rule:
    """Return nodes for ∫ p(y | f) N(t; 0, 1) dt, from both modes of the product, or its mode and p's bend.

    A Student-t has two modes, one near y and one near μ, if y is far away and its scale is small.
    """
    near_mu, near_y = product_modes(ops, log_p, like)
    apart = ops.abs(near_y - near_mu) > 1e-5 * (1.0 + ops.abs(near_mu))
    low, high = ordered(ops, near_mu, near_y)
    second = ops.where(apart, near_y, bend(ops, log_p, low - REACH, high + REACH))

    def change(t: Position) -> Callable[[Array], Array]:
        def log_product(t: Array) -> Array:
            return log_p(t)[0] - 0.5 * t * t

        return lambda d: ops.abs(log_product(t[..., None] + d) - log_product(t[..., None]))

    first_centre, second_centre = (Centre(t, width(ops, change(t), 0.5)) for t in (near_mu, second))
    return rule(ops, first_centre, second_centre, REACH + 0.0 * like, PREDICTIVE_NODES)


def expectation_rule(ops: Ops, second: Centre, sd: Position) -> Rule:
    """Return nodes and weights of E log p(y | f), from the centre of q and from the bend of log p.

    The nodes reach further if √v is large, because log p may fall like exp(f), which moves the mass by √v.
    """
    origin = 0.0 * sd
    reach = REACH + ops.where(sd < 10.0, sd, origin + 10.0)
    # −max(−a, −b) is the smaller of two, for which `Ops` has no function
    low = -ops.maximum(-second.t, -REACH)  # a bend that is further away adds nothing
    t = ops.maximum(low, -REACH)
    centre = Centre(t, -ops.maximum(-second.width, -WIDEST))
    t, weights = rule(ops, Centre(origin, origin + 1.0), centre, reach, EXPECTATION_NODES)
    weights = weights * ops.exp(-0.5 * t * t) * (1.0 / math.sqrt(2.0 * math.pi))
    # with Σw = 1 and Σwt = 0 to rounding, what is linear in f has β = 0, however large its slope
    m0, m1, m2 = (ops.sum(weights * t**k, axis=-1, keepdims=True) for k in (0, 1, 2))
    return Rule(t, weights * (m2 - m1 * t) / (m0 * m2 - m1 * m1))


def bend_of(ops: Ops, log_p: LogDensityAlongQ, like: Position) -> Centre:
    """Return the bend of log p within the reach of q, and its width, by bisection."""
    t = bend(ops, log_p, 0.0 * like - REACH, 0.0 * like + REACH)
    here = t[..., None]

    def curved(d: Array) -> Array:  # without the linear part, which any rule integrates
        return ops.abs(log_p(here + d)[0] + log_p(here - d)[0] - 2.0 * log_p(here)[0])

    share = curved(ops.asarray(np.array([WIDEST]))) / WIDEST**3
    # a second difference below 1e-12 of log p may be rounding alone
    least = ops.where(share < 0.5, share, 0.0 * share + 0.5) + 1e-12 * ops.abs(log_p(here)[0])
    return Centre(t, width(ops, curved, least))


def product_modes(ops: Ops, log_p: LogDensityAlongQ, like: Position) -> tuple[Position, Position]:
    """Return the mode of p(y | f) N(t; 0, 1) nearest to t = 0, and the one nearest to the mode of p.

    They are equal if the product has one mode. Both lie on the side of 0 to which p rises.
    """
    zero = 0.0 * like
    side = ops.where(log_p(zero[..., None])[1][..., 0] < 0.0, zero - 1.0, zero + 1.0)[..., None]

    def rises_p(u: Array) -> Array:
        return side * log_p(side * u)[1] > 0.0

    def rises(u: Array) -> Array:
        # log p(t) − ½t² rises where ∂log p/∂t > t; with t = ±u only u > 0 is searched
        return side * log_p(side * u)[1] > u

    powers = ops.asarray(2.0 ** np.arange(-14.0, 28.0))
    grid = zero[..., None] + powers
    peak = bisected(ops, rises_p, zero, first_of(ops, grid, rises_p(grid), powers[-1]))
    first = first_of(ops, grid, rises(grid), powers[-1])
    near_mu = bisected(ops, rises, zero, ops.where(first < peak, first, peak))
    # the mode near y may be far closer to the peak of p than the peak is to 0, so distances are
    # from the peak
    distances = peak[..., None] * ops.asarray(2.0 ** np.arange(-32.0, 1.0))
    rising = rises(peak[..., None] - distances)
    far = 2.0 * peak + 1.0
    distance = -ops.max(ops.where(rising, -distances, -far[..., None] + 0.0 * distances), axis=-1)
    found = distance < far
    near_y = bisected(
        ops, rises, ops.where(found, peak - distance, near_mu), ops.where(found, peak, near_mu)
    )
    return side[..., 0] * near_mu, side[..., 0] * near_y


def first_of(ops: Ops, grid: Array, rising: Array, last: Array) -> Position:
    """Return the least number of a grid at which a function does not rise; `last` if it rises everywhere."""
    return -ops.max(ops.where(rising, 0.0 * grid - last, -grid), axis=-1)


def bend(ops: Ops, log_p: LogDensityAlongQ, low: Position, high: Position) -> Position:
    """Return the mode of p(y | f) in an interval, or where log p is 1 below its larger value at the ends.

    It is y for noise, and near f = 0 for a logit.
    """
    values, slopes = log_p(ops.concat([low[..., None], high[..., None]], axis=-1))
    rising, falling = slopes[..., :1] > 0.0, slopes[..., 1:] < 0.0
    top = ops.max(values, axis=-1, keepdims=True)
    up = values[..., 1:] > values[..., :1]

    def before(t: Array) -> Array:
        value, slope = log_p(t)
        zero = 0.0 * value
        below = ops.where(value < top - 1.0, zero + 1.0, zero - 1.0)
        ends = ops.where(up, below, -below)
        return ops.where(rising & falling, slope, ends) > 0.0

    return bisected(ops, before, low, high)


def bisected(ops: Ops, rises: Callable[[Array], Array], low: Position, high: Position) -> Position:
    """Return a point of [low, high] before which a function rises, and after which it does not."""

    def step(ends: tuple[Array, Array], _: tuple[()]) -> tuple[Array, Array]:
        middle = 0.5 * (ends[0] + ends[1])
        up = rises(middle[..., None])[..., 0]
        return ops.where(up, middle, ends[0]), ops.where(up, ends[1], middle)

    low, high = ops.scan(step, (low, high), (), length=BISECTIONS)
    return 0.5 * (low + high)


def width(ops: Ops, change: Callable[[Array], Array], least: Array | float) -> Position:
    """Return the least power of 2 whose steps to either side change a function; at most `WIDEST`."""
    powers = 2.0 ** np.arange(-26.0, math.log2(WIDEST) + 1.0)
    steps = ops.asarray(np.concatenate([powers, -powers]))
    changes = change(steps)
    return first_of(ops, 0.0 * changes + ops.abs(steps), changes < least, ops.asarray(WIDEST))


def ordered(ops: Ops, a: Array, b: Array) -> tuple[Array, Array]:
    """Return the smaller and the larger of two arrays."""
    return ops.where(a < b, a, b), ops.where(a < b, b, a)


@functools.cache
def gauss_legendre(nodes: int) -> tuple[Float[Array, "S"], Float[Array, "S"]]:
    """Return the nodes and weights of an integral over [0, 1]."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    return 0.5 * (x + 1.0), 0.5 * w


def rule(ops: Ops, a: Centre, b: Centre, reach: Position, nodes: int) -> Rule:
    """Return the nodes from two centres: outwards to `reach`, inwards to half way between them."""
    swap = a.t > b.t
    low, high = ops.where(swap, b.t, a.t), ops.where(swap, a.t, b.t)
    half = 0.5 * (high - low)
    # a centre is as wide as the structure that the other one adds at its distance
    wide_a, wide_b = a.width + 2.0 * half, b.width + 2.0 * half
    first_width = ops.where(a.width < wide_b, a.width, wide_b)
    second_width = ops.where(b.width < wide_a, b.width, wide_a)
    first = ops.where(swap, second_width, first_width)
    second = ops.where(swap, first_width, second_width)
    # one row for each direction: from the lower centre down and up, from the higher one down and up
    centre, scale, length = (
        ops.concat([part[..., None] for part in parts], axis=-1)
        for parts in (
            (low, low, high, high),
            (first, first, second, second),
            (reach, half, half, reach),
        )
    )
    wide = ops.maximum(scale, WIDEST)
    stops = [0.0 * length]
    for distance in (8.0 * scale, 0.0 * scale + 1.0, length):  # 8 widths hold a peak
        stop = ops.where(distance < length, distance, length)
        stops.append(ops.where(stop < stops[-1], stops[-1], stop))
    units = [scale, scale, wide]  # the last zone has the scale of q
    s0, s1 = (
        ops.concat([asinh(ops, y / unit) for y, unit in zip(ends, units, strict=True)], axis=-1)
        for ends in (stops[:-1], stops[1:])
    )
    unit, origin = (ops.concat(parts, axis=-1)[..., None] for parts in (units, [centre] * 3))
    sign = ops.asarray(np.array([-1.0, 1.0, -1.0, 1.0] * 3))[:, None]
    x, w = map(ops.asarray, gauss_legendre(nodes))
    span = (s1 - s0)[..., None]
    # one exponential gives both t = unit · sinh(s) and dt/ds = unit · cosh(s)
    up = ops.exp(s0[..., None] + span * x)
    t = origin + sign * (0.5 * unit) * (up - 1.0 / up)
    weights = (0.5 * unit) * (up + 1.0 / up) * span * w
    shape = (*reach.shape, 12 * nodes)
    return Rule(ops.reshape(t, shape), ops.reshape(weights, shape))


def asinh(ops: Ops, x: Array) -> Array:
    """Return the inverse of sinh for x ≥ 0."""
    return ops.log(x + ops.sqrt(x * x + 1.0))
