"""Salimbeni et al. 2018b, §3: the shape of the negative bound in each basis's own parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from svgpbench.checks.cases import Problem
from svgpbench.papers.algebra.random_problems import SEEDS, Floats
from svgpbench.papers.salimbeni2018.algebra.surface import (
    Surface,
    at_optimum,
    problem,
    with_all_points,
)

STRICTLY_LOG_CONCAVE = ("gaussian", "bernoulli-logit", "bernoulli-probit", "poisson")
POINTS = 10
"""Number of points for each likelihood and seed; two hundred per basis in all."""
WIDE = 4.0
"""A multiple of a random mean that leaves data in the tails, where −∇²log p may be negative."""
NEAR = 0.1
"""Distance of points γ near β from β, in units of X, which is within ±2."""
WEIGHTS = (0.01, 1.0, 100.0)
"""Weights of the data term: numbers of copies of each datum."""
ADAM_STEPS, ADAM_RATE = 30, 0.01

Row = dict[str, Any]


def convexity() -> pd.DataFrame:
    """Return ratios of a Hessian's smallest to its largest eigenvalue at random points (salimbeni2018-02)."""
    return pd.DataFrame(row for seed in SEEDS for row in _least_eigenvalues(seed))


def _least_eigenvalues(seed: int) -> Iterator[Row]:
    for basis in ("ORTH", "HYBRID", "COUPLED"):
        for likelihood in STRICTLY_LOG_CONCAVE:
            least = _least(Surface(basis, likelihood, problem(seed)), seed)
            row = {"check": f"{basis} convex", "likelihood": likelihood, "seed": seed}
            yield row | {"residual": max(0.0, least)}
        for likelihood in ("student-t", "squashed probit"):
            least = _least(Surface(basis, likelihood, problem(seed)), seed, spread=WIDE)
            row = {"check": "not log-concave", "likelihood": likelihood, "seed": seed}
            yield row | {"basis": basis, "residual": max(0.0, -least)}
    inside = replace(problem(seed), gamma=problem(seed).Z[:2])
    least = _least(Surface("ORTH", "gaussian", inside, jitter=0.0), seed)
    yield {"check": "γ in β", "seed": seed, "residual": abs(least)}


def _least(of: Surface, seed: int, spread: float = 1.0) -> float:
    points = of.random_points(np.random.default_rng(seed), POINTS, spread)
    eigenvalues = np.linalg.eigvalsh(of.hessians(points))
    return float(np.min(eigenvalues[:, 0] / eigenvalues[:, -1]))


def inverse_covariance() -> pd.DataFrame:
    """Check DECOUPLED at L_B = 0 and during a run, and the condition at its optimum (salimbeni2018-03)."""
    rows = [row for seed in SEEDS for row in _negative_curvature(seed)]
    return pd.DataFrame([*rows, *(row for seed in SEEDS for row in _conditions(seed))])


def _negative_curvature(seed: int) -> Iterator[Row]:
    for likelihood in ("gaussian", "bernoulli-logit", "poisson"):
        of, x = at_optimum("DECOUPLED", likelihood, seed)
        best, row = of.value(x), {"likelihood": likelihood, "seed": seed}
        mean = of.lengths[0]
        flat = np.concatenate([x[:mean], np.zeros(len(x) - mean)])  # L_B = 0
        value, slope = of.gradient(flat[None])
        stationary = float(np.max(np.abs(slope[0, mean:]))) / abs(value)
        yield row | {"check": "L_B = 0 is stationary", "residual": stationary}
        yield row | {"check": "L_B = 0 is not optimal", "residual": max(0.0, value / best - 1.0)}
        yield row | {"check": "curvature at L_B = 0", "residual": _downward(of, flat)}
        state = of.start
        for turn in range(ADAM_STEPS + 1):
            if turn % 10 == 0:
                downward = _downward(of, of.point(state))
                yield row | {"check": "curvature in a run", "residual": downward}
            state = of.e_step(state, of.full, ADAM_RATE)


def _downward(of: Surface, x: Floats) -> float:
    """Return the size of the most negative eigenvalue relative to the largest; 0 if none is negative."""
    eigenvalues = np.linalg.eigvalsh(of.hessians(x[None])[0])
    return max(0.0, -float(eigenvalues[0] / eigenvalues[-1]))


def _conditions(seed: int) -> Iterator[Row]:
    """Yield by how much DECOUPLED's condition number at the optimum exceeds that of ORTH and COUPLED.

    The other two are taken in m_β and in a_β.
    """
    for spacing, on in (("γ far", problem(seed)), ("γ near β", _near(seed))):
        decoupled = Surface("DECOUPLED", "gaussian", with_all_points(on))
        (H,) = decoupled.hessians(decoupled.settled(seed)[None])
        for basis in ("ORTH", "COUPLED"):
            of = Surface(basis, "gaussian", on)
            (other,) = of.hessians(of.settled(seed)[None])
            for coordinates, theirs in (("m_β", other), ("a_β", of.in_weights(other))):
                yield {
                    "check": f"worse conditioned than {basis}",
                    "seed": seed,
                    "spacing": spacing,
                    "coordinates": coordinates,
                    "residual": _advantage(theirs, H),
                }


def _near(seed: int) -> Problem:
    """Return the problem with one point of γ near each point of β."""
    on, rng = problem(seed), np.random.default_rng(seed)
    return replace(on, gamma=on.Z + NEAR * rng.standard_normal(on.Z.shape))


def _advantage(better: Floats, worse: Floats) -> float:
    """Return the relative excess of the condition number of `worse` over that of `better`, at least 0."""
    return max(0.0, float(np.linalg.cond(worse) / np.linalg.cond(better)) - 1.0)


def orthogonal_mean() -> pd.DataFrame:
    """Check the Hessian in (a_γ, a_β) of the KL alone and of the bound (salimbeni2018-04)."""
    return pd.DataFrame(row for seed in SEEDS for row in _mean_blocks(seed))


def _mean_blocks(seed: int) -> Iterator[Row]:
    for spacing, on in (("γ far", problem(seed)), ("γ near β", _near(seed))):
        row = {"seed": seed, "spacing": spacing}
        alone, _ = _mean_block("ORTH", on, seed, 0.0)
        yield row | {"check": "KL's cross block", "residual": _cross(alone, len(on.gamma))}
        for weight in WEIGHTS:
            row |= {"weight": weight}
            orth, hybrid = (_mean_block(b, on, seed, weight) for b in ("ORTH", "HYBRID"))
            yield row | {"check": "bound's cross block", "residual": _cross(orth[0], len(on.gamma))}
            for coordinates, ours, theirs in zip(("a_β", "m_β"), orth, hybrid, strict=True):
                row |= {"coordinates": coordinates, "residual": _advantage(ours, theirs)}
                yield row | {"check": "better conditioned than HYBRID"}
            printed = _advantage(orth[0], hybrid[1])  # a_β in Eq. 12, m_β in Eq. 11
            yield row | {"check": "better conditioned, as printed", "residual": printed}


def _mean_block(basis: str, on: Problem, seed: int, weight: float) -> tuple[Floats, Floats]:
    """Return the Hessian in the mean's parameters, with a_β and with m_β; it is the same at every point."""
    of = Surface(basis, "gaussian", on, weight=weight)
    points = of.random_points(np.random.default_rng(seed), 1)
    (H,), size = of.hessians(points), sum(of.lengths)
    return of.in_weights(H)[:size, :size], H[:size, :size]


def _cross(H: Floats, size: int) -> float:
    return float(np.max(np.abs(H[:size, size:])) / np.max(np.abs(H)))
