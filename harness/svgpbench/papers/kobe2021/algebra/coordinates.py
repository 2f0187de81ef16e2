"""Kobe 2021: paths of natural-gradient steps in several coordinates of q (claim 06)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from svgpbench.checks.bench import Bench
from svgpbench.checks.dense.diagonal import diagonals
from svgpbench.checks.dense.gaussians import Dense, times
from svgpbench.checks.matrix import difference
from svgpbench.ops import Tree
from svgpbench.papers.algebra.random_problems import SEEDS, Floats
from svgpbench.papers.kobe2021.algebra.cases import Rows, bench_of, dense, diagonal, random_problem

M = 3
LOWER = np.tril_indices(M)
IMAGINARY = 1e-30
"""The step of a complex-step derivative, exact to rounding."""


class Coordinates(NamedTuple):
    """Coordinates x of a Gaussian N(m [M], S [M, M])."""

    of: Callable[[Floats, Floats], Floats]  # (m, S) → x [d]
    moments: Callable[[Floats], tuple[Floats, Floats]]  # x [..., d] → (m, S), complex x too


def lower(x: Floats) -> Floats:
    """Return lower triangular matrices [..., M, M] from their entries [..., M(M+1)/2]."""
    out = np.zeros((*x.shape[:-1], M, M), dtype=x.dtype)
    out[..., *LOWER] = x
    return out


def symmetric(x: Floats) -> Floats:
    """Return symmetric matrices from the entries of their lower triangles."""
    half = lower(x)
    return half + np.swapaxes(half, -1, -2) - half * np.eye(M)


def joined(vector: Floats, matrix: Floats) -> Floats:
    """Concatenate a vector and the lower triangle of a matrix."""
    return np.concatenate([vector, matrix[LOWER]])


def inverse(x: Floats) -> Floats:
    """Return the inverses of real or complex matrices."""
    return np.asarray(np.linalg.inv(x), dtype=x.dtype)


def from_natural(x: Floats) -> tuple[Floats, Floats]:
    """Return (m, S) from S⁻¹m and S⁻¹."""
    S = inverse(symmetric(x[..., M:]))
    return times(S, x[..., :M]), S


def from_expectations(x: Floats) -> tuple[Floats, Floats]:
    """Return (m, S) from m and S + mmᵀ."""
    m = x[..., :M]
    return m, symmetric(x[..., M:]) - m[..., None] * m[..., None, :]


def from_factor(x: Floats) -> tuple[Floats, Floats]:
    """Return (m, S) from m and a lower factor of S."""
    L = lower(x[..., M:])
    return x[..., :M], L @ np.swapaxes(L, -1, -2)


ALL_GAUSSIANS = {
    "natural": Coordinates(lambda m, S: joined(inverse(S) @ m, inverse(S)), from_natural),
    "expectation": Coordinates(lambda m, S: joined(m, S + np.outer(m, m)), from_expectations),
    "(m, S)": Coordinates(joined, lambda x: (x[..., :M], symmetric(x[..., M:]))),
    "(m, L)": Coordinates(
        lambda m, S: joined(m, np.asarray(np.linalg.cholesky(S), dtype=S.dtype)), from_factor
    ),
}


def of_the_family(K: Floats) -> dict[str, Coordinates]:
    """Return the coordinates (μ, g) and (μ, log g) of m = Kμ and S = (K⁻¹ + diag g)⁻¹."""
    K_inv = inverse(K)

    def weights(m: Floats, S: Floats) -> tuple[Floats, Floats]:
        return K_inv @ m, np.diag(inverse(S) - K_inv)

    def moments(mu: Floats, g: Floats) -> tuple[Floats, Floats]:
        return times(K, mu), inverse(K_inv + diagonals(g))

    return {
        "(μ, g)": Coordinates(
            lambda m, S: np.concatenate(weights(m, S)),
            lambda x: moments(x[..., :M], x[..., M:]),
        ),
        "(μ, log g)": Coordinates(
            lambda m, S: np.concatenate([weights(m, S)[0], np.log(weights(m, S)[1])]),
            lambda x: moments(x[..., :M], np.exp(x[..., M:])),
        ),
    }


def natural_gradient(judge: Dense, at: Coordinates, x: Floats) -> Floats:
    """Return the natural gradient F⁻¹∇ of the bound in coordinates x.

    F and ∇ come from the complex-step Jacobian of (m, S) in x, with
    F_ij = ∂_imᵀS⁻¹∂_jm + ½tr(S⁻¹∂_iS S⁻¹∂_jS).
    """
    m, S = at.moments(x)
    dm, dS = (part.imag / IMAGINARY for part in at.moments(x + 1j * IMAGINARY * np.eye(len(x))))
    d_m, d_S = judge.slopes(m, S)
    precision = inverse(S)
    turned = precision @ dS
    fisher = dm @ precision @ dm.T + 0.5 * np.einsum("aij,bji->ab", turned, turned)
    return np.linalg.solve(fisher, dm @ d_m + np.einsum("aij,ij->a", dS, d_S))


Gaussian = tuple[Floats, Floats]


def path(judge: Dense, at: Coordinates, start: Gaussian, step: float, steps: int) -> Gaussian:
    """Take natural-gradient steps in the given coordinates; return the final (m, S)."""
    x = at.of(*start)
    for _ in range(steps):
        x = x + step * natural_gradient(judge, at, x)
    return at.moments(x)


def half_way(b: Bench) -> Tree:
    """Return the state after one E-step of rate ½; from the initial state, the steps would be stiff."""
    return b.e_step(b.start, b.full, 0.5)


def our_path(b: Bench, state: Tree, step: float, steps: int) -> Gaussian:
    """Take E-steps of the method with rate `step`; return the final (m, S)."""
    full = b.full
    for _ in range(steps):
        state = b.e_step(state, full, step)
    (m,), (S,), _ = b.posterior(state)
    return m, S


def apart(one: Gaussian, other: Gaussian) -> float:
    """Return the larger of the relative differences of two Gaussians' means and covariances."""
    return max(difference(x, y) for x, y in zip(one, other, strict=True))


def paths(seed: int, likelihood: str) -> Rows:
    """Return the differences between paths in several coordinates.

    The paths have n steps of size 1/n, or one larger step.
    """
    problem = random_problem(seed, M=M)
    judge = dense(likelihood, problem)
    full = bench_of("q-svgp", {}, likelihood, problem)
    exact, printed = (diagonal(x, likelihood, problem) for x in ("exact", "projected-b"))
    family = of_the_family(judge.K)
    others = {name: x for name, x in ALL_GAUSSIANS.items() if name != "natural"}
    rows: Rows = []

    def note(check: str, coordinates: str, step: float, residual: float) -> None:
        named = {"check": check, "coordinates": coordinates}
        case = {"likelihood": likelihood, "seed": seed, "step": step}
        rows.append(named | case | {"residual": residual})

    def against(
        check: str, b: Bench, coordinates: Mapping[str, Coordinates], step: float, steps: int
    ) -> Gaussian:
        state = half_way(b)
        start, end = our_path(b, state, step, 0), our_path(b, state, step, steps)
        for name, at in coordinates.items():
            note(check, name, step, apart(end, path(judge, at, start, step, steps)))
        return end

    for step in (0.1, 1.0):
        against("natural step", full, {"natural": ALL_GAUSSIANS["natural"]}, step, 1)
        against(f"step of {step:g}", full, others, step, 1)
    for n in (15, 45, 150):
        against("path", full, others, 1 / n, n)
        end = against("path in O(M) coordinates", exact, family, 1 / n, n)
        printed_end = our_path(printed, half_way(exact), 1 / n, n)
        note("path of the printed step", "(θ₁, g)", 1 / n, apart(printed_end, end))
    return rows


def coordinates_of_a_path() -> pd.DataFrame:
    """Compare steps in several coordinates, small and of finite size (Kobe 2021, Secs. 2.3 and 3.1.1)."""
    likelihoods = ("gaussian", "bernoulli-logit")
    return pd.DataFrame([row for seed in SEEDS for x in likelihoods for row in paths(seed, x)])
