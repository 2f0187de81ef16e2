"""Adam et al. 2021, Eq. 10: the dual parameters as multipliers of a Lagrangian, claim 23."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from svgpbench.checks.dense.expectations import expectations
from svgpbench.checks.dense.gaussians import Dense
from svgpbench.checks.matrix import difference
from svgpbench_papers.algebra.objectives import converged_state, dense_of, slope_along
from svgpbench_papers.algebra.random_problems import (
    LIKELIHOODS,
    SEEDS,
    Check,
    Floats,
    bench_of,
    frame_over,
    full_method,
    random_problem,
)

DIRECTIONS = 3


class LagrangianPoint(NamedTuple):
    """Point at which the Lagrangian is evaluated."""

    m: Floats  # [n], of the global Gaussian
    S: Floats  # [n, n]
    mu: Floats  # [n], of the local Gaussians
    v: Floats  # [n]
    lambda1: Floats  # [n], multipliers of means and of second moments
    lambda2: Floats  # [n]


@frame_over(seed=SEEDS, likelihood=LIKELIHOODS)
def multipliers(seed: int, likelihood: str) -> Iterator[Check]:
    """Return Eq. 10's slopes at t-VGP's optimum, with its sites as multipliers and with others (claim 23)."""
    b = bench_of(full_method(likelihood), likelihood, random_problem(seed, n=8, M=2))
    state = converged_state(b)
    m, S = (x[0] for x in b.posterior(state)[:2])
    lambda1, beta = (b.ops.to_numpy(x)[0] for x in (state.lambda1, state.beta))
    # Eq. 10's multipliers are natural parameters, of which the second is −½β
    point, dense = LagrangianPoint(m, S, m, np.diag(S), lambda1, -0.5 * beta), dense_of(b)
    elbo = dense.elbo(m[None], S[None])
    yield "value", difference(lagrangian(dense, point), elbo)
    yield from ((name, x / abs(elbo)) for name, x in _slopes(dense, point, seed).items())
    doubled = point._replace(lambda1=2.0 * lambda1, lambda2=-beta)
    yield "other multipliers", np.max([*_slopes(dense, doubled, seed).values()]) / abs(elbo)


def lagrangian(dense: Dense, point: LagrangianPoint) -> float:
    """Evaluate Eq. 10 by dense algebra."""
    m, S, mu, v, lambda1, lambda2 = point
    V, _, _ = expectations(
        dense.likelihood, dense.theta.likelihood, dense.y, mu[None], v[None], dense.noise
    )
    means = lambda1 @ (mu - m)
    squares = lambda2 @ (mu**2 + v - m**2 - np.diag(S))
    return float(V.sum() - means - squares - dense.kl(m[None], S[None]))


def _slopes(dense: Dense, point: LagrangianPoint, seed: int) -> dict[str, float]:
    """Return the largest absolute slope along random directions of each group of variables."""
    rng, n = np.random.default_rng(seed), len(point.m)
    root = np.linalg.cholesky(point.S)
    steepest: dict[str, float] = {}
    for _ in range(DIRECTIONS):
        d, e, f, g = rng.standard_normal((4, n))
        G = rng.standard_normal((n, n)) / n
        D, zero = root @ (G + G.T) @ root.T, 0 * d
        moves = {
            "multipliers": (zero, 0 * D, zero, zero, d, e),
            "local Gaussians": (zero, 0 * D, np.sqrt(point.v) * f, point.v * g, zero, zero),
            "global Gaussian": (root @ d, D, zero, zero, zero, zero),
        }
        for name, move in moves.items():
            steepness = slope_along(lambda *x: lagrangian(dense, LagrangianPoint(*x)), point, move)
            steepest[name] = float(np.maximum(steepest.get(name, 0.0), abs(steepness)))
    return steepest
