"""Standard deviation and quantiles of y, from a predictive density that is known point by point.

With NumPy, for a regression: the density is summed over counts, or integrated over real values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from svgpbench.errors import UserError

Floats = npt.NDArray[np.float64]
# a text: `NDArray` is no class from Python 3.12 and NumPy 2.5 on, and jaxtyping asks for one
LogDensity: TypeAlias = "Callable[[Float[Floats, 'K b']], Float[Floats, 'K b']]"
"""y → log p(y) at every test point."""

GRID = np.linspace(-14.0, 14.0, 561)
"""Positions s of the grid y = centre + scale · sinh(s), whose ends are 6e5 scales away."""

MOST_COUNTS = 2**15
"""Number of counts up to which a predictive distribution is summed."""


def quantiles(
    log_density: LogDensity, support: str, mean: Floats, levels: Sequence[float]
) -> Floats:
    """Return the quantiles [Q, b] of y at levels in (0, 1); a quantile of counts is a count.

    Args:
        log_density: the predictive density.
        support: of the likelihood: "real", "positive" or "counts".
        mean: a value of y near the middle of each density.
        levels: of the quantiles.

    Raises:
        UserError: if the density does not integrate to 1 on the grid, or if counts are too large to sum.
    """
    wanted = checked_levels(levels)
    if support == "counts":
        top = float(wanted.max())
        p = count_probabilities(log_density, len(mean), lambda p: np.sum(p, axis=0) > top)
        return np.stack([np.sum(np.cumsum(p, axis=0) < q, axis=0) for q in wanted]).astype(float)
    y, p, h = grid(log_density, support, mean)
    # the density in s is the slope of the distribution function: a cubic between two points
    F = np.concatenate([np.zeros((1, p.shape[1])), np.cumsum(0.5 * h * (p[1:] + p[:-1]), axis=0)])
    slope = np.gradient(p, h, axis=0)
    F[1:] += h * h / 12.0 * (slope[0] - slope[1:])  # Euler–Maclaurin
    out = np.empty((len(wanted), p.shape[1]))
    for b in range(p.shape[1]):
        for q, level in enumerate(wanted):
            out[q, b] = _inverse(F[:, b], p[:, b], h, y[b], float(level))
    return out


def checked_levels(levels: Sequence[float]) -> Float[Floats, "Q"]:
    """Return levels of quantiles as an array; raises `UserError` if one is not between 0 and 1."""
    wanted = np.asarray(levels, dtype=np.float64)
    if not np.all((wanted > 0.0) & (wanted < 1.0)):
        raise UserError(f"levels of quantiles are {list(levels)}; give numbers between 0 and 1")
    return wanted


def _inverse(F: Floats, p: Floats, h: float, y: Callable[[float], float], level: float) -> float:
    """Return y where the cubic Hermite interpolant of F is `level`, by bisection within one interval."""
    i = int(np.clip(np.searchsorted(F, level) - 1, 0, len(F) - 2))
    low, high = 0.0, 1.0
    for _ in range(50):
        t = 0.5 * (low + high)
        u = 1.0 - t
        value = u * u * ((1.0 + 2.0 * t) * F[i] + t * h * p[i]) + t * t * (
            (1.0 + 2.0 * u) * F[i + 1] - u * h * p[i + 1]
        )
        low, high = (t, high) if value < level else (low, t)
    return y(float(GRID[i] + 0.5 * (low + high) * h))


def standard_deviation(log_density: LogDensity, support: str, mean: Floats) -> Floats:
    """Return the standard deviation [b] of y about its mean, with errors as `quantiles`."""
    if support == "counts":

        def parts(p: Floats) -> Floats:
            return p * (np.arange(len(p))[:, None] - mean) ** 2

        def settled(p: Floats) -> Any:  # the last half of the counts adds nothing
            added = parts(p)
            return np.sum(added[len(p) // 2 :], axis=0) <= 1e-9 * np.sum(added, axis=0)

        p = count_probabilities(log_density, len(mean), settled)
        return np.asarray(np.sqrt(np.sum(parts(p), axis=0)))
    y, p, h = grid(log_density, support, mean)
    values = np.stack([[at(s) for s in GRID] for at in y], axis=-1)
    squares = np.square(np.where(p > 0.0, values - mean, 0.0))  # positive values may be infinite
    return np.asarray(np.sqrt(h * np.sum(p * squares, axis=0)))


def grid(
    log_density: LogDensity, support: str, mean: Floats
) -> tuple[list[Callable[[float], float]], Floats, float]:
    """Return y as a function of s for every density, the densities in s [S, b], and the step of s.

    Positive values have the grid in log y. Raises `UserError` if a density does not integrate to 1.
    """
    positive = support == "positive"
    centre = np.log(mean) if positive else mean

    def in_z(z: Floats) -> Floats:  # density of log y, or of y
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            log_p = log_density(np.exp(z) if positive else z) + (z if positive else 0.0)
            return np.nan_to_num(np.exp(log_p))

    # a normal density has the standard deviation 1/(√(2π) p(centre)), and 1/√(2π) = 0.4
    scale = 0.4 / np.maximum(in_z(centre[None])[0], 1e-300)
    h = float(GRID[1] - GRID[0])

    def along(s: Floats) -> tuple[Floats, Floats]:
        z = centre + scale * np.sinh(s)[:, None]
        return z, in_z(z) * scale * np.cosh(s)[:, None]

    for _ in range(2):  # the second time about the median, with the scale of the middle half
        z, p = along(GRID[::4])
        F = np.cumsum(p, axis=0) / np.maximum(np.sum(p, axis=0), 1e-300)
        quarter, median, three = (
            np.array([np.interp(q, F[:, b], z[:, b]) for b in range(len(mean))])
            for q in (0.25, 0.5, 0.75)
        )
        centre, scale = median, np.maximum(0.5 * (three - quarter), 1e-300)
    z, p = along(GRID)
    # a sum at equal steps converges faster than any power of h for a smooth p that vanishes at both
    # ends
    mass = h * np.sum(p, axis=0)
    if not np.all(np.abs(mass - 1.0) < 1e-3):  # a kink of the noise, where q is narrow, takes 2e-4
        worst = mass[np.argmax(np.abs(mass - 1.0))]
        raise UserError(
            f"a predictive density integrates to {worst:.6g}, not to 1: the likelihood must override "
            "predictive_sd and predictive_quantiles"
        )

    def value(b: int) -> Callable[[float], float]:
        def at(s: float) -> float:
            moved = centre[b] + scale[b] * np.sinh(s)
            with np.errstate(over="ignore"):
                return float(np.exp(moved) if positive else moved)

        return at

    return [value(b) for b in range(len(mean))], p / mass, h


def count_probabilities(
    log_density: LogDensity, b: int, enough: Callable[[Floats], npt.NDArray[np.bool_]]
) -> Floats:
    """Return p(y = 0), p(1), … [K, b] until there are enough at every test point.

    Raises `UserError` after `MOST_COUNTS` counts.
    """
    p = np.empty((0, b))
    while not len(p) or not np.all(enough(p)):
        if len(p) >= MOST_COUNTS:
            raise UserError(
                f"the predictive distribution reaches beyond {MOST_COUNTS} counts: the likelihood must "
                "override predictive_sd and predictive_quantiles"
            )
        more = np.arange(len(p), max(64, 2 * len(p)), dtype=np.float64)
        p = np.concatenate([p, np.exp(log_density(np.repeat(more[:, None], b, axis=1)))])
    return p
