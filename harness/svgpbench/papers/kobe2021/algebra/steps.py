"""Kobe 2021: the printed steps as natural gradients (claim 03), and what they keep positive (claim 04)."""

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
"""A rate at which no step is halved; in θ₁ and g a step is linear in its rate."""

# --- 03: natural parameters and natural gradients -------------------------------------------------------


def natural_parameters(b: Bench, mu: Floats, g: Floats) -> tuple[Floats, Floats]:
    """(S⁻¹m [M], S⁻¹ [M, M]) of our q."""
    state = b.start._replace(mu=mu[None], g=g[None])
    (m,), (S,), _ = b.posterior(state)
    precision = np.linalg.inv(S)
    return precision @ m, precision


def bends(seed: int) -> Rows:
    """Second differences of the natural parameters: in g, in μ, and along both at once."""
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
    """What an E-step adds to θ₁ = S⁻¹m and to g, per unit of its rate."""
    K = b.ops.to_numpy(b.prior.Kuu)[0]

    def theta1(at: DiagonalState) -> Floats:
        return np.asarray(at.mu + at.g * (at.mu @ K))

    stepped = b.e_step(state, b.full, SMALL)
    return (theta1(stepped) - theta1(state)) / SMALL, (stepped.g - state.g) / SMALL


def largest_slope(judge: Dense, state: DiagonalState) -> float:
    """The largest entry of ∂ELBO/∂(μ, g)."""
    return max(float(np.max(np.abs(x))) for x in slope(judge, state.mu, state.g))


def printed_steps(seed: int, likelihood: str) -> Rows:
    """Each step against F⁻¹∇ of the family, and the slope of the bound where it stops."""
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
    """Kobe 2021, Eqs. 3.8–3.20: what is affine in (μ, g), and whether the printed step is natural."""
    rows: Rows = []
    for seed in SEEDS:
        rows += bends(seed)
        for likelihood in ("gaussian", "bernoulli-logit"):
            rows += printed_steps(seed, likelihood)
    return pd.DataFrame(rows)


# --- 04: what stays positive -----------------------------------------------------------------------------

STEPS, BATCHES = 200, 10
Least = Callable[[Tree], float]
"""The least of what should be positive in a state, relative to its largest."""


def least_precision(state: Tree) -> float:
    """The least eigenvalue of B = LᵀS⁻¹L = I + C."""
    values = np.linalg.eigvalsh(np.eye(state.C.shape[-1]) + state.C[0])
    return float(values[0] / values[-1])


def least_g(state: Tree) -> float:
    """The least entry of g."""
    return float(state.g.min() / np.abs(state.g).max())


def violation(b: Bench, least: Least, seed: int, rates: tuple[float, float]) -> float:
    """How far minibatch steps at rates drawn from an interval take something below zero, else 0."""
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
    """t-SVGP, which moves S⁻¹ by natural gradients, with nothing that halves a step."""
    b = bench_of("t-svgp", {}, likelihood, random_problem(seed))
    if b.model.likelihood.log_concave:
        return b
    raw = replace(b.model.likelihood, negative_beta="raw")
    return Bench(b.ops, replace(b.model, likelihood=raw), b.method, b.problem)


def positive_without_constraint() -> pd.DataFrame:
    """The worst of a thousand minibatch steps, five seeds together (Kobe 2021, Secs. 2.2.3 and 4.2.3)."""

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
