"""Salimbeni et al. 2018b, §3.1–3.2 and Figure 2: the optima of each basis, and comparisons of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from svgpbench.checks.cases import Case, Problem
from svgpbench.checks.dense.decoupled import Union
from svgpbench.checks.dense.two_part import TwoPart
from svgpbench.papers.algebra.random_problems import LOG_CONCAVE, SEEDS, Floats
from svgpbench.papers.salimbeni2018.algebra.surface import (
    Surface,
    at_optimum,
    problem,
    with_all_points,
)

FAR = 6.0
"""Shift of the points of a badly chosen basis away from the data, in units of X, which is within ±2."""
OUTLIER = 8.0
"""Absolute value of Student-t's outliers, five standard deviations of the prior."""

Row = dict[str, Any]


def larger_bases() -> pd.DataFrame:
    """Return the relative differences of the other bases' final bounds from COUPLED's (salimbeni2018-01)."""
    return pd.DataFrame(row for seed in SEEDS for row in _beside_coupled(seed))


def _beside_coupled(seed: int) -> Iterator[Row]:
    for likelihood in (*LOG_CONCAVE, "student-t"):
        coupled, x = at_optimum("COUPLED", likelihood, seed)
        row = {"likelihood": likelihood, "seed": seed}
        for basis in ("ORTH", "HYBRID"):
            gain = _gain(*_end(basis, likelihood, seed, x), coupled, x)
            yield row | {"check": f"{basis} never below", "residual": max(0.0, -gain)}
            yield row | {"check": f"{basis} above", "residual": max(0.0, gain)}
    for likelihood in LOG_CONCAVE:  # for others, B ⪰ 0 may lose more than α gains: claim 06
        coupled, x = at_optimum("COUPLED", likelihood, seed)
        row = {"likelihood": likelihood, "seed": seed}
        gain = _gain(*at_optimum("DECOUPLED", likelihood, seed), coupled, x)
        yield row | {"check": "DECOUPLED, β in α", "residual": max(0.0, -gain)}
        bad = replace(problem(seed), gamma=problem(seed).gamma[:2] + FAR)
        decoupled = Surface("DECOUPLED", likelihood, bad)
        gain = _gain(decoupled, decoupled.settled(seed), coupled, x)
        yield row | {"check": "DECOUPLED, a bad α", "residual": max(0.0, -gain)}
    yield {"check": "γ in β", "residual": _effect_of_redundant_points(seed), "seed": seed}


def _end(basis: str, likelihood: str, seed: int, coupled: Floats) -> tuple[Surface, Floats]:
    """Return a basis and its optimum from a random start.

    A likelihood that is not log-concave may have several optima, so the start is then COUPLED's optimum.
    """
    if likelihood in LOG_CONCAVE:
        return at_optimum(basis, likelihood, seed)
    of = Surface(basis, likelihood, problem(seed))
    return of, of.optimum(np.concatenate([np.zeros(of.lengths[0]), coupled]))


def _gain(of: Surface, x: Floats, coupled: Surface, x_coupled: Floats) -> float:
    best = coupled.value(x_coupled)
    return (best - of.value(x)) / abs(best)


def _effect_of_redundant_points(seed: int) -> float:
    """Return the relative effect of a_γ on ORTH's bound if γ is a part of β.

    There is no jitter, because jitter would make them different.
    """
    inside = replace(problem(seed), gamma=problem(seed).Z[:2])
    orth = Surface("ORTH", "gaussian", inside, jitter=0.0)
    (x,) = orth.random_points(np.random.default_rng(seed), 1)
    without = np.concatenate([np.zeros(orth.lengths[0]), x[orth.lengths[0] :]])
    return abs(orth.value(x) / orth.value(without) - 1.0)


def shared_optimum() -> pd.DataFrame:
    """Compare final bounds of the decoupled bases with each other and a closed form (salimbeni2018-06)."""
    return pd.DataFrame(row for seed in SEEDS for row in _ends(seed))


def _ends(seed: int) -> Iterator[Row]:
    for likelihood in LOG_CONCAVE:
        row = {"likelihood": likelihood, "seed": seed}
        of, x = at_optimum("ORTH", likelihood, seed)
        best = of.value(x)
        if likelihood == "gaussian":
            closed = _closed_form(problem(seed))
            yield row | {"check": "closed form", "residual": best / closed - 1.0}
        for basis in ("HYBRID", "DECOUPLED"):
            of, x = at_optimum(basis, likelihood, seed)
            yield row | {"check": "one optimum", "basis": basis, "residual": of.value(x) / best - 1}
        without = Surface("DECOUPLED", likelihood, problem(seed))
        deficit = without.value(without.settled(seed)) / best - 1.0
        yield row | {"check": "α without β", "residual": max(0.0, deficit)}
    yield {"check": "B ⪰ 0, Student-t", "seed": seed, "residual": _cost_of_positive_precision(seed)}


def _closed_form(on: Problem) -> float:
    """Return the negative bound for the mean of SGPR on γ ∪ β and the covariance of SGPR on β."""
    case = Case("orth adam", "gaussian", "matern52")
    theta = on.theta(case.build()[0], "decoupled")
    u, size = Union(case, theta, on.X, on.y, 1.0), len(on.gamma)
    precision = 1.0 / float(theta.likelihood.noise_variance)
    mean = np.linalg.solve(u.K_inv + precision * u.A @ u.A.T, precision * u.A @ on.y)
    m: Floats = np.asarray(mean, dtype=np.float64)
    parts = TwoPart(u, orthogonal=True)
    A = np.linalg.solve(parts.K_beta, u.Kuf[size:])
    S: Floats = np.asarray(
        np.linalg.inv(np.linalg.inv(parts.K_beta) + precision * A @ A.T), dtype=np.float64
    )
    _, covariance = parts.q(np.zeros(size), m[size:], S)
    return -u.elbo(m, covariance)


def _cost_of_positive_precision(seed: int) -> float:
    """Return the relative loss of DECOUPLED's final bound to ORTH's, with one outlier at each point of β."""
    on, rng = problem(seed), np.random.default_rng(seed)
    outliers = replace(on, X=on.Z + 0.05, y=OUTLIER * rng.choice([-1.0, 1.0], len(on.Z)))
    orth = Surface("ORTH", "student-t", outliers)
    decoupled = Surface("DECOUPLED", "student-t", with_all_points(outliers))
    best, other = (x.value(x.settled(seed)) for x in (orth, decoupled))
    return other / best - 1.0
