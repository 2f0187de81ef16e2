"""Kobe 2021: concavity of the bound in several coordinates of q (claim 18)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from svgpbench.checks.bench import Bench
from svgpbench.checks.dense.diagonal import diagonals
from svgpbench.kernels import constrain
from svgpbench.methods.mean_covariance import MeanCholesky
from svgpbench.ops import Array, Tree
from svgpbench.training.blocks import data_term
from svgpbench_papers.algebra.random_problems import (
    LIKELIHOODS,
    LOG_CONCAVE,
    SEEDS,
    Check,
    Floats,
    bench_of,
    frame_over,
    positive_part,
)
from svgpbench_papers.kobe2021.algebra.cases import (
    FULL,
    diagonal_bench,
    random_problem,
)
from svgpbench_papers.kobe2021.algebra.coordinates import LOWER, M, lower

POINTS = 200
STEP = 1e-4
"""Step of the central differences of a gradient, for coordinates of order one."""
StateAt = Callable[[Array], Tree]
"""Function from offsets x [P, d] from P random points to a state with P latents."""


def largest_curvature(b: Bench, state_at: StateAt, d: int) -> float:
    """Return the largest eigenvalue of the bound's Hessians at P = 200 points.

    Eigenvalues are relative to the largest absolute eigenvalue of the same Hessian. The bound of P
    independent latents on the same data is the sum of P bounds, each in its own q. So one gradient of it,
    by autodiff, gives the gradients at all points.
    """
    ops = b.ops
    f = b.steps.factor(b.raw, b.prior, b.full)
    data = data_term(b.model, constrain(ops, b.raw), b.full, b.one)
    slopes = ops.value_and_grad(lambda x: b.method.bound(ops, f, data, state_at(x)))

    def slope(x: Floats) -> Floats:
        return ops.to_numpy(slopes(ops.asarray(x))[1])

    shifts = np.broadcast_to(STEP * np.eye(d)[:, None], (d, POINTS, d))
    columns = [(slope(shift) - slope(-shift)) / (2 * STEP) for shift in shifts]
    H = np.stack(columns, axis=-1)  # [P, d, d]
    # eigvalsh reads one triangle alone, with all of its differences' error
    values = np.linalg.eigvalsh((H + np.swapaxes(H, -1, -2)) / 2)
    return float(np.max(values[:, -1] / np.max(np.abs(values), axis=1)))


def in_weights(b: Bench, seed: int, *, log: bool) -> StateAt:
    """Return coordinates (μ, g) or (μ, log g) about random points, in units of g from 0.01 to 100."""
    rng, ops = np.random.default_rng(seed), b.ops
    mu = rng.standard_normal((POINTS, M))
    g = 10 ** rng.uniform(-2.0, 2.0, (POINTS, M))

    def state_at(x: Array) -> Tree:
        factor = ops.exp(x[..., M:]) if log else 1.0 + x[..., M:]
        return b.start._replace(mu=mu + x[..., :M], g=g * factor)

    return state_at


def in_factor(b: Bench, seed: int) -> StateAt:
    """Return coordinates (m, L) of whitened u about random points; they are affine in those of u."""
    rng, ops = np.random.default_rng(seed), b.ops
    mean = 2.0 * rng.standard_normal((POINTS, M))
    chol = lower(0.5 * rng.standard_normal((POINTS, len(LOWER[0]))))
    chol = chol * (1 - np.eye(M)) + diagonals(10 ** rng.uniform(-1.0, 0.5, (POINTS, M)))
    entries = lower(np.eye(len(LOWER[0])))  # [d', M, M], the entry of L for each coordinate

    def state_at(x: Array) -> Tree:
        change = ops.sum(x[..., M:, None, None] * entries, axis=-3)
        return b.start._replace(q=MeanCholesky(mean + x[..., :M], chol + change))

    return state_at


@frame_over(seed=SEEDS, likelihood=LIKELIHOODS)
def concavity(seed: int, likelihood: str) -> Iterator[Check]:
    """Return the largest curvature at 200 points in several coordinates, at least 0 (claim 18)."""
    problem = random_problem(seed, n=10, M=M)
    family = diagonal_bench("exact", likelihood, problem)
    full = bench_of(FULL, likelihood, problem)
    for coordinates, b, state_at, d in (
        ("(m, L)", full, in_factor(full, seed), M + len(LOWER[0])),
        ("(μ, g)", family, in_weights(family, seed, log=False), 2 * M),
        ("(μ, log g)", family, in_weights(family, seed, log=True), 2 * M),
    ):
        group = "log-concave" if likelihood in LOG_CONCAVE else likelihood
        yield f"{coordinates}, {group}", positive_part(largest_curvature(b, state_at, d))
