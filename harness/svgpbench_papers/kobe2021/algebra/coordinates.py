"""Kobe 2021: paths of natural-gradient steps in several coordinates of q (claim 06)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from svgpbench.checks.bench import Bench, worst_of
from svgpbench.checks.dense.diagonal import diagonals
from svgpbench.checks.dense.gaussians import Dense, times
from svgpbench.ops import Tree
from svgpbench_papers.algebra.objectives import dense_of
from svgpbench_papers.algebra.random_problems import SEEDS, Floats, Row, bench_of, frame_over
from svgpbench_papers.kobe2021.algebra.cases import (
    FULL,
    diagonal_bench,
    random_problem,
)

M = 3
LOWER = np.tril_indices(M)
IMAGINARY = 1e-30
"""The step of a complex-step derivative, exact to rounding."""


class Coordinates(NamedTuple):
    """Coordinates x of a Gaussian N(m [M], S [M, M])."""

    from_moments: Callable[[Floats, Floats], Floats]  # (m, S) → x [d]
    # x [..., d] as (vector [..., M], entries [..., d − M]) → (m, S), complex x too
    from_parts: Callable[[Floats, Floats], tuple[Floats, Floats]]

    def moments(self, x: Floats) -> tuple[Floats, Floats]:
        """Return (m, S) at x [..., d]."""
        return self.from_parts(x[..., :M], x[..., M:])


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


NATURAL = {
    "natural": Coordinates(
        lambda m, S: joined(inverse(S) @ m, inverse(S)),
        lambda v, x: (times(inverse(symmetric(x)), v), inverse(symmetric(x))),
    ),
}
OTHERS = {
    "expectation": Coordinates(
        lambda m, S: joined(m, S + np.outer(m, m)),
        lambda m, x: (m, symmetric(x) - m[..., None] * m[..., None, :]),
    ),
    "(m, S)": Coordinates(joined, lambda m, x: (m, symmetric(x))),
    "(m, L)": Coordinates(
        lambda m, S: joined(m, np.asarray(np.linalg.cholesky(S), dtype=S.dtype)),
        # a plain transpose: a conjugate is not analytic, and the complex step would be wrong
        lambda m, x: (m, lower(x) @ np.swapaxes(lower(x), -1, -2)),
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
            lambda mu, x: (times(K, mu), inverse(K_inv + diagonals(to_g(x)))),
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
    # f(x + ih) = f + ihf′ + O(h²) without a difference: no digit is lost, however small h
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


@frame_over(seed=SEEDS, likelihood=("gaussian", "bernoulli-logit"))
def coordinates_of_a_path(seed: int, likelihood: str) -> Iterator[Row]:
    """Compare paths of n steps of size 1/n in several coordinates (claim 06, Secs. 2.3 and 3.1.1)."""
    problem = random_problem(seed, M=M)
    full = bench_of(FULL, likelihood, problem)
    exact, printed = (diagonal_bench(x, likelihood, problem) for x in ("exact", "projected-b"))
    dense = dense_of(full)
    family = coordinates_of_the_family(dense.K)

    def compare(
        check: str, b: Bench, systems: Mapping[str, Coordinates], step: float, steps: int
    ) -> Iterator[Row]:
        state = half_way(b)
        start, end = (path_of_the_method(b, state, step, k) for k in (0, steps))
        for name, coordinates in systems.items():
            residual = worst_of(end, path(dense, coordinates, start, step, steps))
            yield {"check": check, "coordinates": name, "step": step, "residual": residual}

    for step in (0.1, 1.0):
        yield from compare("natural step", full, NATURAL, step, 1)
        yield from compare(f"step of {step:g}", full, OTHERS, step, 1)
    for n in (15, 45, 150):
        yield from compare("path", full, OTHERS, 1 / n, n)
        yield from compare("path in O(M) coordinates", exact, family, 1 / n, n)
        ends = [path_of_the_method(b, half_way(exact), 1 / n, n) for b in (printed, exact)]
        row = {"check": "path of the printed step", "coordinates": "(θ₁, g)", "step": 1 / n}
        yield row | {"residual": worst_of(*ends)}
