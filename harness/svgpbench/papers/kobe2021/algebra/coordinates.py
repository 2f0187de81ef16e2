"""Kobe 2021: paths of natural-gradient steps in several coordinates of q (claim 06)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from svgpbench.checks.bench import Bench, worst_of
from svgpbench.checks.dense.diagonal import diagonals
from svgpbench.checks.dense.gaussians import Dense, times
from svgpbench.ops import Tree
from svgpbench.papers.algebra.objectives import dense_of
from svgpbench.papers.algebra.random_problems import SEEDS, Floats, bench_of
from svgpbench.papers.kobe2021.algebra.cases import (
    FULL,
    Rows,
    diagonal_bench,
    random_problem,
    residual_rows,
)

M = 3
LOWER = np.tril_indices(M)
IMAGINARY = 1e-30
"""The step of a complex-step derivative, exact to rounding."""


class Coordinates(NamedTuple):
    """Coordinates x of a Gaussian N(m [M], S [M, M])."""

    from_moments: Callable[[Floats, Floats], Floats]  # (m, S) → x [d]
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


NATURAL = {
    "natural": Coordinates(lambda m, S: joined(inverse(S) @ m, inverse(S)), from_natural),
}
OTHERS = {
    "expectation": Coordinates(lambda m, S: joined(m, S + np.outer(m, m)), from_expectations),
    "(m, S)": Coordinates(joined, lambda x: (x[..., :M], symmetric(x[..., M:]))),
    "(m, L)": Coordinates(
        lambda m, S: joined(m, np.asarray(np.linalg.cholesky(S), dtype=S.dtype)), from_factor
    ),
}
"""Coordinates of all Gaussians."""


def coordinates_of_the_family(K: Floats) -> dict[str, Coordinates]:
    """Return the coordinates (μ, g) and (μ, log g) of m = Kμ and S = (K⁻¹ + diag g)⁻¹."""
    K_inv = inverse(K)

    def coordinates(
        from_g: Callable[[Floats], Floats], to_g: Callable[[Floats], Floats]
    ) -> Coordinates:
        return Coordinates(
            lambda m, S: np.concatenate([K_inv @ m, from_g(np.diag(inverse(S) - K_inv))]),
            lambda x: (times(K, x[..., :M]), inverse(K_inv + diagonals(to_g(x[..., M:])))),
        )

    return {
        "(μ, g)": coordinates(np.asarray, np.asarray),
        "(μ, log g)": coordinates(np.log, np.exp),
    }


def natural_gradient(dense: Dense, coordinates: Coordinates, x: Floats) -> Floats:
    """Return the natural gradient F⁻¹∇ of the bound in coordinates x.

    F and ∇ come from the complex-step Jacobian of (m, S) in x, with
    F_ij = ∂_imᵀS⁻¹∂_jm + ½tr(S⁻¹∂_iS S⁻¹∂_jS).
    """
    m, S = coordinates.moments(x)
    shifted = coordinates.moments(x + 1j * IMAGINARY * np.eye(len(x)))
    dm, dS = (part.imag / IMAGINARY for part in shifted)
    d_m, d_S = dense.slopes(m, S)
    precision = inverse(S)
    turned = precision @ dS
    fisher = dm @ precision @ dm.T + 0.5 * np.einsum("aij,bji->ab", turned, turned)
    return np.linalg.solve(fisher, dm @ d_m + np.einsum("aij,ij->a", dS, d_S))


Gaussian = list[Floats]
"""Mean m [M] and covariance S [M, M]."""


def path(
    dense: Dense, coordinates: Coordinates, start: Gaussian, step: float, steps: int
) -> Gaussian:
    """Take natural-gradient steps in the given coordinates; return the final (m, S)."""
    x = coordinates.from_moments(*start)
    for _ in range(steps):
        x = x + step * natural_gradient(dense, coordinates, x)
    return [*coordinates.moments(x)]


def half_way(b: Bench) -> Tree:
    """Return the state after one E-step of rate ½; from the initial state, the steps would be stiff."""
    return b.e_step(b.start, b.full, 0.5)


def path_of_the_method(b: Bench, state: Tree, step: float, steps: int) -> Gaussian:
    """Take E-steps of the method with rate `step`; return the final (m, S)."""
    full = b.full
    for _ in range(steps):
        state = b.e_step(state, full, step)
    return [x[0] for x in b.posterior(state)[:2]]


def paths(seed: int, likelihood: str) -> Rows:
    """Return the differences between paths in several coordinates.

    The paths have n steps of size 1/n, or one larger step.
    """
    problem = random_problem(seed, M=M)
    full = bench_of(FULL, likelihood, problem)
    exact, printed = (diagonal_bench(x, likelihood, problem) for x in ("exact", "projected-b"))
    dense = dense_of(full)
    family = coordinates_of_the_family(dense.K)
    rows: Rows = []

    def note(check: str, coordinates: str, step: float, residual: float) -> None:
        case = {"likelihood": likelihood, "seed": seed, "step": step}
        rows.extend(residual_rows({check: residual}, coordinates=coordinates, **case))

    def compare(
        check: str, b: Bench, systems: Mapping[str, Coordinates], step: float, steps: int
    ) -> Gaussian:
        state = half_way(b)
        start, end = (path_of_the_method(b, state, step, k) for k in (0, steps))
        for name, coordinates in systems.items():
            note(check, name, step, worst_of(end, path(dense, coordinates, start, step, steps)))
        return end

    for step in (0.1, 1.0):
        compare("natural step", full, NATURAL, step, 1)
        compare(f"step of {step:g}", full, OTHERS, step, 1)
    for n in (15, 45, 150):
        compare("path", full, OTHERS, 1 / n, n)
        end = compare("path in O(M) coordinates", exact, family, 1 / n, n)
        printed_end = path_of_the_method(printed, half_way(exact), 1 / n, n)
        note("path of the printed step", "(θ₁, g)", 1 / n, worst_of(printed_end, end))
    return rows


def coordinates_of_a_path() -> pd.DataFrame:
    """Compare steps in several coordinates, small and of finite size (Kobe 2021, Secs. 2.3 and 3.1.1)."""
    likelihoods = ("gaussian", "bernoulli-logit")
    return pd.DataFrame([row for seed in SEEDS for x in likelihoods for row in paths(seed, x)])
