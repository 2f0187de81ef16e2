"""Adam et al. 2021, Eq. 10: the dual parameters as multipliers of a Lagrangian, claim 23."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from svgpbench.checks.bench import Bench
from svgpbench.checks.dense.expectations import expectations
from svgpbench.checks.dense.gaussians import Dense
from svgpbench.checks.matrix import difference
from svgpbench.papers.algebra.derivatives import slope
from svgpbench.papers.algebra.objectives import converged_state, dense_of
from svgpbench.papers.algebra.random_problems import LIKELIHOODS, bench_of, full_method, problems

Floats = npt.NDArray[np.float64]
Row = dict[str, Any]
DIRECTIONS = 3


class LagrangianPoint(NamedTuple):
    """Point at which the Lagrangian is evaluated."""

    m: Floats  # [n], of the global Gaussian
    S: Floats  # [n, n]
    mu: Floats  # [n], of the local Gaussians
    v: Floats  # [n]
    lambda1: Floats  # [n], multipliers of means and of second moments
    lambda2: Floats  # [n]


def multipliers() -> pd.DataFrame:
    """Return Eq. 10's slopes at t-VGP's optimum, with its sites as multipliers and with others (claim 23)."""
    return pd.DataFrame(
        {"seed": seed, "likelihood": likelihood, **row}
        for seed, problem in problems(n=8, M=2)
        for likelihood in LIKELIHOODS
        for row in _at_optimum(bench_of(full_method(likelihood), likelihood, problem), seed)
    )


def _at_optimum(b: Bench, seed: int) -> Iterator[Row]:
    state = converged_state(b)
    m, S = (x[0] for x in b.posterior(state)[:2])
    lambda1, beta = (b.ops.to_numpy(x)[0] for x in (state.lambda1, state.beta))
    point, dense = LagrangianPoint(m, S, m, np.diag(S), lambda1, -0.5 * beta), dense_of(b)
    elbo = dense.elbo(m[None], S[None])
    yield {"check": "value", "residual": difference(lagrangian(dense, point), elbo)}
    for name, steepest in _slopes(dense, point, seed):
        yield {"check": name, "residual": steepest / abs(elbo)}
    doubled = point._replace(lambda1=2.0 * lambda1, lambda2=-beta)
    slopes = [steepest for _, steepest in _slopes(dense, doubled, seed)]
    yield {"check": "other multipliers", "residual": max(slopes) / abs(elbo)}


def lagrangian(dense: Dense, point: LagrangianPoint) -> float:
    """Evaluate Eq. 10 by dense algebra."""
    m, S, mu, v, lambda1, lambda2 = point
    V, _, _ = expectations(
        dense.likelihood, dense.theta.likelihood, dense.y, mu[None], v[None], dense.noise
    )
    means = lambda1 @ (mu - m)
    squares = lambda2 @ (mu**2 + v - m**2 - np.diag(S))
    return float(V.sum() - means - squares - dense.kl(m[None], S[None]))


def _slopes(dense: Dense, point: LagrangianPoint, seed: int) -> Iterator[tuple[str, float]]:
    """Yield the largest absolute slope along random directions of each group of variables."""
    rng, n = np.random.default_rng(seed), len(point.m)
    root = np.linalg.cholesky(point.S)
    slopes: dict[str, list[float]] = {}
    for _ in range(DIRECTIONS):
        d, e, f, g = rng.standard_normal((4, n))
        G = rng.standard_normal((n, n)) / n
        D = root @ (G + G.T) @ root.T
        moves = {
            "multipliers": LagrangianPoint(0 * d, 0 * D, 0 * d, 0 * d, d, e),
            "local Gaussians": LagrangianPoint(
                0 * d, 0 * D, np.sqrt(point.v) * f, point.v * g, 0 * d, 0 * d
            ),
            "global Gaussian": LagrangianPoint(root @ d, D, 0 * d, 0 * d, 0 * d, 0 * d),
        }
        for name, move in moves.items():

            def along(t: float, move: LagrangianPoint = move) -> float:
                return lagrangian(
                    dense, LagrangianPoint(*(x + t * y for x, y in zip(point, move, strict=True)))
                )

            slopes.setdefault(name, []).append(abs(slope(along)))
    for name, values in slopes.items():
        yield name, max(values)
