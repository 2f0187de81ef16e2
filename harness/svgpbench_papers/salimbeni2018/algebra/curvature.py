"""Salimbeni et al. 2018b, §3: the shape of the negative bound in each basis's own parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from svgpbench.checks.cases import SmallProblem
from svgpbench_papers.algebra.random_problems import (
    SEEDS,
    Check,
    Floats,
    Row,
    frame_over,
    positive_part,
)
from svgpbench_papers.salimbeni2018.algebra.surface import (
    Surface,
    at_optimum,
    random_problem,
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


@frame_over(seed=SEEDS)
def convexity(seed: int) -> Iterator[Row | Check]:
    """Return ratios of a Hessian's smallest to its largest eigenvalue at random points (salimbeni2018-02)."""
    problem = random_problem(seed)
    for basis in ("ORTH", "HYBRID", "COUPLED"):
        for likelihood in STRICTLY_LOG_CONCAVE:
            least = _least_ratio(Surface(basis, likelihood, problem), seed)
            row = {"check": f"{basis} convex", "likelihood": likelihood}
            yield row | {"residual": positive_part(least)}
        for likelihood in ("student-t", "squashed probit"):
            least = _least_ratio(Surface(basis, likelihood, problem), seed, spread=WIDE)
            row = {"check": "not log-concave", "likelihood": likelihood, "basis": basis}
            yield row | {"residual": positive_part(-least)}
    # without jitter, which would make γ and β different, a_γ has no effect: D_γ = 0
    redundant = replace(problem, gamma=problem.Z[:2])
    least = _least_ratio(Surface("ORTH", "gaussian", redundant, jitter=0.0), seed)
    yield "γ in β", abs(least)


def _least_ratio(surface: Surface, seed: int, spread: float = 1.0) -> float:
    """Return the smallest ratio over random points."""
    points = surface.random_points(np.random.default_rng(seed), POINTS, spread)
    eigenvalues = np.linalg.eigvalsh(surface.hessians(points))
    return float(np.min(eigenvalues[:, 0] / eigenvalues[:, -1]))


@frame_over(seed=SEEDS)
def inverse_covariance(seed: int) -> Iterator[Row | Check]:
    """Check DECOUPLED at L_B = 0 and during a run, and the condition at its optimum (salimbeni2018-03)."""
    for likelihood in ("gaussian", "bernoulli-logit", "poisson"):
        row = {"likelihood": likelihood}
        surface, x = at_optimum("DECOUPLED", likelihood, seed)
        best, size = surface.value(x), surface.lengths[0]
        # ∂L_B = 2 ∂B L_B is 0 at L_B = 0 for any data, so gradient steps never leave it
        flat = np.concatenate([x[:size], np.zeros(len(x) - size)])  # L_B = 0
        value, slope = surface.gradient(flat[None])
        stationary = float(np.max(np.abs(slope[0, size:]))) / abs(value)
        yield row | {"check": "L_B = 0 is stationary", "residual": stationary}
        yield row | {
            "check": "L_B = 0 is not optimal",
            "residual": positive_part(value / best - 1.0),
        }
        yield row | {"check": "curvature at L_B = 0", "residual": _downward(surface, flat)}
        state = surface.start
        for step in range(ADAM_STEPS + 1):
            if step % 10 == 0:
                downward = _downward(surface, surface.point(state))
                yield row | {"check": "curvature in a run", "residual": downward}
            state = surface.e_step(state, surface.full, ADAM_RATE)
    yield from _conditions(seed)


def _downward(surface: Surface, x: Floats) -> float:
    """Return the size of the most negative eigenvalue relative to the largest; 0 if none is negative."""
    eigenvalues = np.linalg.eigvalsh(surface.hessians(x[None])[0])
    return positive_part(-float(eigenvalues[0] / eigenvalues[-1]))


def _conditions(seed: int) -> Iterator[Row | Check]:
    """Yield by how much DECOUPLED's condition number exceeds that of ORTH and COUPLED at the optimum."""
    for spacing, problem in _problems(seed).items():
        decoupled = Surface("DECOUPLED", "gaussian", with_all_points(problem))
        (worse,) = decoupled.hessians(decoupled.optimum_of_seed(seed)[None])
        for basis in ("ORTH", "COUPLED"):
            surface = Surface(basis, "gaussian", problem)
            (H,) = surface.hessians(surface.optimum_of_seed(seed)[None])
            for coordinates, better in (("m_β", H), ("a_β", surface.in_weights(H))):
                row = {"check": f"worse conditioned than {basis}", "spacing": spacing}
                residual = _advantage(better, worse)
                yield row | {"coordinates": coordinates, "residual": residual}


def _problems(seed: int) -> dict[str, SmallProblem]:
    """Return the random problem, and the problem with one point of γ near each point of β."""
    problem, rng = random_problem(seed), np.random.default_rng(seed)
    near = problem.Z + NEAR * rng.standard_normal(problem.Z.shape)
    return {"γ far": problem, "γ near β": replace(problem, gamma=near)}


def _advantage(better: Floats, worse: Floats) -> float:
    """Return the relative excess of the condition number of `worse` over that of `better`, at least 0."""
    return positive_part(float(np.linalg.cond(worse) / np.linalg.cond(better)) - 1.0)


@frame_over(seed=SEEDS)
def orthogonal_mean(seed: int) -> Iterator[Row | Check]:
    """Check the Hessian in (a_γ, a_β) of the KL alone and of the bound (salimbeni2018-04)."""
    for spacing, problem in _problems(seed).items():
        row: Row = {"spacing": spacing}
        size = len(problem.gamma)
        kl, _ = _mean_block("ORTH", problem, seed, 0.0)
        yield row | {"check": "KL's cross block", "residual": _cross(kl, size)}
        for weight in WEIGHTS:
            row |= {"weight": weight}
            orth, hybrid = (_mean_block(b, problem, seed, weight) for b in ("ORTH", "HYBRID"))
            yield row | {"check": "bound's cross block", "residual": _cross(orth[0], size)}
            for coordinates, better, worse in zip(("a_β", "m_β"), orth, hybrid, strict=True):
                row |= {"coordinates": coordinates, "residual": _advantage(better, worse)}
                yield row | {"check": "better conditioned than HYBRID"}
            printed = _advantage(orth[0], hybrid[1])  # a_β in Eq. 12, m_β in Eq. 11
            yield row | {"check": "better conditioned, as printed", "residual": printed}


def _mean_block(
    basis: str, problem: SmallProblem, seed: int, weight: float
) -> tuple[Floats, Floats]:
    """Return the Hessian in the mean's parameters, with a_β and with m_β; it is the same at every point."""
    surface = Surface(basis, "gaussian", problem, weight=weight)
    points = surface.random_points(np.random.default_rng(seed), 1)
    (H,), size = surface.hessians(points), sum(surface.lengths)
    return surface.in_weights(H)[:size, :size], H[:size, :size]


def _cross(H: Floats, size: int) -> float:
    return float(np.max(np.abs(H[:size, size:])) / np.max(np.abs(H)))
