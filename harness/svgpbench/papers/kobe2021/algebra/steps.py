"""Kobe 2021: the printed steps as natural gradients (claim 03), and positivity of S and g (claim 04)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd

from svgpbench.checks.bench import Bench
from svgpbench.checks.dense.diagonal import natural_direction, slope
from svgpbench.checks.dense.gaussians import Dense
from svgpbench.checks.matrix import difference
from svgpbench.methods.diagonal_precision import DiagonalState
from svgpbench.ops import Tree
from svgpbench.papers.algebra.random_problems import LIKELIHOODS, SEEDS, Floats
from svgpbench.papers.kobe2021.algebra.cases import (
    Rows,
    bench_of,
    dense,
    diagonal,
    random_problem,
    random_state,
    settled,
)

OPTIMISERS = ("projected-a", "projected-b", "exact")
SMALL = 1e-2
"""A rate at which no step is halved. A step in θ₁ and g is linear in its rate."""

# --- 03: natural parameters and natural gradients -------------------------------------------------------


def natural_parameters(b: Bench, mu: Floats, g: Floats) -> tuple[Floats, Floats]:
    """Return (S⁻¹m [M], S⁻¹ [M, M]) of the method's q."""
    state = b.start._replace(mu=mu[None], g=g[None])
    (m,), (S,), _ = b.posterior(state)
    precision = np.linalg.inv(S)
    return precision @ m, precision


def bends(seed: int) -> Rows:
    """Return relative second differences of the natural parameters: in μ, and in (μ, g)."""
    problem = random_problem(seed)
    b = diagonal("exact", "gaussian", problem)
    rng = np.random.default_rng(seed + 100)
    (mu,), (g,), *_ = random_state(seed, len(problem.Z))
    by_mu, by_g, also_g = rng.standard_normal(8), rng.uniform(0.5, 1.0, 8), rng.uniform(0.5, 1.0, 8)
    nothing = np.zeros(8)

    def bend(part: int, one: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> float:
        def at(*moves: tuple[Floats, Floats]) -> Floats:
            moved = [sum((move[i] for move in moves), x) for i, x in enumerate((mu, g))]
            return natural_parameters(b, *moved)[part]

        return difference(at(one, other) + at(), at(one) + at(other))

    residuals = {
        "S⁻¹ in (μ, g)": bend(1, (by_mu, by_g), (nothing, also_g)),
        "S⁻¹m in μ": bend(0, (by_mu, nothing), (rng.standard_normal(8), nothing)),
        "S⁻¹m in (μ, g)": bend(0, (by_mu, nothing), (nothing, by_g)),
    }
    return [{"check": k, "seed": seed, "residual": x} for k, x in residuals.items()]


def direction(b: Bench, state: DiagonalState) -> tuple[Floats, Floats]:
    """Return the change of θ₁ = S⁻¹m and of g by an E-step, divided by its rate."""
    K = b.ops.to_numpy(b.prior.Kuu)[0]

    def theta1(at: DiagonalState) -> Floats:
        return np.asarray(at.mu + at.g * (at.mu @ K))

    stepped = b.e_step(state, b.full, SMALL)
    return (theta1(stepped) - theta1(state)) / SMALL, (stepped.g - state.g) / SMALL


def largest_slope(judge: Dense, state: DiagonalState) -> float:
    """Return the largest absolute entry of ∂ELBO/∂(μ, g)."""
    return max(float(np.max(np.abs(x))) for x in slope(judge, state.mu, state.g))


def printed_steps(seed: int, likelihood: str) -> Rows:
    """Compare each step with F⁻¹∇ of the family, and return the slope of the bound where the steps stop.

    The slope is relative to the slope at the start.
    """
    problem = random_problem(seed)
    judge, state = dense(likelihood, problem), random_state(seed, len(problem.Z))
    wanted, rows = natural_direction(judge, state.mu, state.g), []
    for optimiser in OPTIMISERS:
        b = diagonal(optimiser, likelihood, problem)
        found = direction(b, state)
        off = max(difference(x, y) for x, y in zip(found, wanted, strict=True))
        end = settled(b)
        left = largest_slope(judge, end) / largest_slope(judge, b.start)
        named = {"likelihood": likelihood, "seed": seed}
        rows += [
            named | {"check": f"{optimiser} against F⁻¹∇", "residual": off},
            named | {"check": f"slope where {optimiser} stops", "residual": left},
        ]
    return rows


def natural_parameters_of_a_subfamily() -> pd.DataFrame:
    """Check which parameters are affine in (μ, g), and that the printed steps are natural (Eqs. 3.8–3.20)."""
    rows: Rows = []
    for seed in SEEDS:
        rows += bends(seed)
        for likelihood in ("gaussian", "bernoulli-logit"):
            rows += printed_steps(seed, likelihood)
    return pd.DataFrame(rows)


# --- 04: what stays positive -----------------------------------------------------------------------------

STEPS, BATCHES = 200, 10
Least = Callable[[Tree], float]
"""Function that returns the smallest of the values that should be positive, relative to the largest."""


def least_precision(state: Tree) -> float:
    """Return the smallest eigenvalue of B = LᵀS⁻¹L = I + C, relative to the largest."""
    values = np.linalg.eigvalsh(np.eye(state.C.shape[-1]) + state.C[0])
    return float(values[0] / values[-1])


def least_g(state: Tree) -> float:
    """Return the smallest entry of g, relative to the largest absolute entry."""
    return float(state.g.min() / np.abs(state.g).max())


def violation(b: Bench, least: Least, seed: int, rates: tuple[float, float]) -> float:
    """Return by how much `least` falls to or below zero in 200 minibatch steps; 0 if it stays positive.

    Rates are drawn from the interval `rates`. The first violation ends the run. A value that is not finite
    is returned as it is.
    """
    rng, state = np.random.default_rng(seed), b.start
    batches = [b.batch(rows) for rows in b.problem.batches[:BATCHES]]
    turns = [(batch, b.steps.factor(b.raw, b.prior, batch)) for batch in batches]
    scale = b.number(b.n / len(batches[0].y))
    for k in range(STEPS):
        batch, f = turns[k % BATCHES]
        rate = b.number(rng.uniform(*rates))
        state = b.steps.e_phase(b.raw, f, batch, state, rate, scale)
        if (found := least(state)) <= 0.0:
            return -found
        if not np.isfinite(found):
            return found
    return 0.0


def unconstrained(likelihood: str, seed: int) -> Bench:
    """Build the bench of t-SVGP, whose natural-gradient steps on S⁻¹ are never halved.

    For a likelihood that is not log-concave, β may be negative.
    """
    b = bench_of("t-svgp", {}, likelihood, random_problem(seed))
    if b.model.likelihood.log_concave:
        return b
    raw = replace(b.model.likelihood, negative_beta="raw")
    return Bench(b.ops, replace(b.model, likelihood=raw), b.method, b.problem)


def positive_without_constraint() -> pd.DataFrame:
    """Return the largest violation in 200 minibatch steps for each of five seeds.

    Source: Kobe 2021, Secs. 2.2.3 and 4.2.3.
    """

    def full(likelihood: str) -> Callable[[int], Bench]:
        return lambda seed: unconstrained(likelihood, seed)

    def of_g(optimiser: str, likelihood: str) -> Callable[[int], Bench]:
        return lambda seed: diagonal(optimiser, likelihood, random_problem(seed))

    to_1, to_2 = (0.0, 1.0), (1.0, 2.0)
    runs: list[tuple[str, Callable[[int], Bench], Least, tuple[float, float]]] = [
        *((f"S, {x}, rates to 1", full(x), least_precision, to_1) for x in LIKELIHOODS),
        ("S, gaussian, rates to 2", full("gaussian"), least_precision, to_2),
        *((f"G, {x}, rates to 1", of_g("projected-b", x), least_g, to_1) for x in LIKELIHOODS),
        ("G, gaussian, rates to 2", of_g("projected-b", "gaussian"), least_g, to_2),
        ("G, gaussian, exact step", of_g("exact", "gaussian"), least_g, to_1),
    ]
    return pd.DataFrame(
        {"check": check, "residual": np.max([violation(of(x), least, x, rates) for x in SEEDS])}
        for check, of, least, rates in runs
    )
