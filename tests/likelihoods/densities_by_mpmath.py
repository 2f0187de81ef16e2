"""Likelihoods, and log ∫ p(y | f) N(f; μ, v) df by mpmath at points that are drawn over wide ranges.

`python tests/likelihoods/densities_by_mpmath.py` writes the integrals to `densities.csv`, in some minutes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pandas as pd

from svgpbench.likelihoods import (
    BernoulliLogit,
    BernoulliProbit,
    Likelihood,
    NoParameters,
    Poisson,
    StudentT,
    StudentTParameters,
)
from svgpbench.likelihoods.quadrature import QuadratureLikelihood
from svgpbench.ops import Array, Ops, Tree

POINTS = Path(__file__).with_name("densities.csv")
EACH = 16
"""Number of points of each likelihood."""
MEANS = (-8.0, -0.3, 0.0, 2.0, 9.0)
VARIANCES = (1e-8, 1e-3, 0.3, 3.8, 100.0)
NOISE = (-5.0, 0.0, 0.31, 2.0, 40.0)


class Number(QuadratureLikelihood):
    """A likelihood of real y whose mean is f."""

    name, task, support = "stranger", "regression", "real"

    def predict(self, ops: Ops, p: Tree, mu: Array, v: Array) -> Array:
        return mu[0, ...]


@dataclass(frozen=True)
class Laplace(Number):
    """Noise whose density has a kink."""

    scale: float = 0.1

    def log_density(self, ops: Ops, p: Tree, y: Array, f: Array) -> tuple[Array, Array]:
        error = (y - f) / self.scale
        zero = 0.0 * error
        slope = ops.where(error > 0.0, zero + 1.0, zero - 1.0) / self.scale
        return -ops.abs(error) - np.log(2.0 * self.scale), slope


@dataclass(frozen=True)
class Exponential(Number):
    """Positive y with mean exp(f)."""

    support = "positive"

    def log_density(self, ops: Ops, p: Tree, y: Array, f: Array) -> tuple[Array, Array]:
        ratio = y * ops.exp(-f)
        return -f - ratio, ratio - 1.0

    def predict(self, ops: Ops, p: Tree, mu: Array, v: Array) -> Array:
        return ops.exp(mu + 0.5 * v)[0, ...]


@dataclass(frozen=True)
class NegativeBinomial(Number):
    """Counts with mean exp(f) and size 2½."""

    support = "counts"

    def log_density(self, ops: Ops, p: Tree, y: Array, f: Array) -> tuple[Array, Array]:
        r = 2.5
        share = ops.softplus(f - np.log(r))
        value = ops.lgamma(y + r) - ops.lgamma(y + 1.0) - float(mp.loggamma(r))
        value = value + y * (f - np.log(r)) - (y + r) * share
        return value, y - (y + r) * (1.0 - ops.exp(-share))

    def predict(self, ops: Ops, p: Tree, mu: Array, v: Array) -> Array:
        return ops.exp(mu + 0.5 * v)[0, ...]


def student_t(scale: float, df: float) -> Callable[[Any, Any], Any]:
    constant = (
        mp.loggamma((df + 1) / 2) - mp.loggamma(df / 2) - mp.log(mp.pi * df) / 2 - mp.log(scale)
    )
    return lambda y, f: constant - (df + 1) / 2 * mp.log1p(((y - f) / scale) ** 2 / df)


def negative_binomial(y: Any, f: Any) -> Any:
    r = mp.mpf("2.5")
    size = mp.loggamma(y + r) - mp.loggamma(y + 1) - mp.loggamma(r)
    return size + y * (f - mp.log(r)) - (y + r) * mp.log1p(mp.exp(f) / r)


Case = tuple[
    Likelihood, Tree, Callable[[Any, Any], Any], tuple[float, ...], Callable[[float], float]
]
COUNTS = (0.0, 1.0, 10.0, 100.0, 1e4)


def log_of(y: float) -> float:
    return float(np.log(max(y, 0.3)))


CASES: dict[str, Case] = {
    "logit": (
        BernoulliLogit(),
        NoParameters(),
        lambda y, f: -mp.log1p(mp.exp(-(2 * y - 1) * f)),
        (0.0, 1.0),
        lambda y: 0.0,
    ),
    "probit": (
        BernoulliProbit(),
        NoParameters(),
        lambda y, f: mp.log(mp.ncdf((2 * y - 1) * f)),
        (0.0, 1.0),
        lambda y: 0.0,
    ),
    "squashed probit": (
        BernoulliProbit(squash=1e-3),
        NoParameters(),
        lambda y, f: mp.log(mp.mpf("1e-3") + mp.mpf("0.998") * mp.ncdf((2 * y - 1) * f)),
        (0.0, 1.0),
        lambda y: 0.0,
    ),
    "poisson": (
        Poisson(),
        NoParameters(),
        lambda y, f: y * f - mp.exp(f) - mp.loggamma(y + 1),
        COUNTS,
        log_of,
    ),
    **{
        f"student-t {scale:g} {df:g}": (
            StudentT(df=df),
            StudentTParameters(scale),
            student_t(scale, df),
            NOISE,
            lambda y: y,
        )
        for scale, df in ((1e-3, 1.01), (1e-3, 30.0), (0.03, 3.0), (1.0, 300.0), (10.0, 4.0))
    },
    "negative binomial": (NegativeBinomial(), NoParameters(), negative_binomial, COUNTS, log_of),
    "exponential": (
        Exponential(),
        NoParameters(),
        lambda y, f: -f - y * mp.exp(-f),
        (1e-3, 1.0, 50.0, 1e4),
        log_of,
    ),
    "laplace": (
        Laplace(),
        NoParameters(),
        lambda y, f: -abs(y - f) * 10 + mp.log(5),
        NOISE,
        lambda y: y,
    ),
}


def exact(log_p: Callable[[Any, Any], Any], y: float, m: float, v: float, peak: float) -> float:
    """Return log ∫ p(y | f) N(f; m, v) df, with intervals that double from both peaks and from the mode."""
    sd, y_, m_ = mp.sqrt(v), mp.mpf(y), mp.mpf(m)

    def log_product(f: Any) -> Any:
        return log_p(y_, f) - (f - m_) ** 2 / (2 * v) - mp.log(2 * mp.pi * v) / 2

    line = np.concatenate([m + float(sd) * np.linspace(-40, 40, 161), np.linspace(m, peak, 400)])
    for _ in range(20):  # the mode, by finer and finer grids
        best = max(line, key=lambda f: log_product(mp.mpf(f)))
        gap = np.min(np.abs(line - best)[line != best])
        line = best + gap * np.linspace(-1.5, 1.5, 13)
    top = log_product(mp.mpf(best))
    steps = [0.0, *(1e-5 * 3.0 ** np.arange(17))]
    edges = {c + s * d for c in (m, peak, best) for s in (-1, 1) for d in steps}
    edges |= {m + s * float(sd) * d for s in (-1, 1) for d in (0.5, 1.5, 3.0, 6.0, 12.0)}
    edges |= {
        best + s * float(sd) * d for s in (-1, 1) for d in (0.01, 0.1, 0.5, 1.5, 3.0, 6.0, 12.0)
    }
    low = min(m, best) - 13 * float(sd)
    high = max(m, best) + 13 * float(sd)
    kept = sorted(x for x in edges | {low, high} if low <= x <= high)
    total = mp.mpf(0)
    for a, b in itertools.pairwise(kept):
        if b - a > 1e-14 * max(1.0, abs(a)):
            total += mp.quad(lambda f: mp.exp(log_product(f) - top), [a, b], maxdegree=5)
    return float(top + mp.log(total))


def main() -> None:
    """Write the integrals at `EACH` points of every case."""
    mp.mp.dps = 30
    rows = []
    for name, (_, _, log_p, ys, peak) in CASES.items():
        rng = np.random.default_rng(len(name))
        points = [(y, m, v) for y in ys for m in MEANS for v in VARIANCES]
        for i in rng.choice(len(points), EACH, replace=False):
            y, m, v = points[i]
            rows.append((name, y, m, v, repr(exact(log_p, y, m, v, peak(y)))))
        print(name, flush=True)
    columns = ["likelihood", "y", "mu", "v", "log_density"]
    pd.DataFrame(rows, columns=columns).to_csv(POINTS, index=False)


if __name__ == "__main__":
    main()
