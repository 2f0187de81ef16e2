"""Salimbeni et al. 2018b, Eqs. 5–8 and 13–17: parameters of a basis, and natural-gradient steps on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from svgpbench.checks.bench import Bench, worst_of
from svgpbench.checks.cases import Case, Problem, build_model
from svgpbench.checks.dense import kernel_matrix
from svgpbench.checks.dense.decoupled import Union
from svgpbench.checks.dense.two_part import TwoPart
from svgpbench.checks.matrix import difference
from svgpbench.methods import build_method
from svgpbench.ops import Tree
from svgpbench.papers.algebra.random_problems import LOG_CONCAVE, SEEDS, Floats
from svgpbench.papers.salimbeni2018.algebra.surface import Surface, problem
from svgpbench.plugins import load_backend
from svgpbench.training.blocks import Batch

KERNEL = "matern52"
RATE = 0.1
NATURAL = {"coupled": "q-svgp natgrad", "gamma_step": "natural"}  # Eqs. 16a–c

Row = dict[str, Any]


def parameters_and_rules() -> pd.DataFrame:
    """Compare bases, natural and expectation parameters and steps with dense algebra (salimbeni2018-05)."""
    return pd.DataFrame(
        {**row, "seed": seed} for seed in SEEDS for part in PARTS for row in part(problem(seed))
    )


def _bases(on: Problem) -> Iterator[Row]:
    """Check Eqs. 5–8 by the marginals of a random state at the data."""
    rng = np.random.default_rng(0)
    decoupled = Surface("DECOUPLED", "gaussian", on)
    a, L_B = decoupled.unpacked(decoupled.random_points(rng, 1))
    K, k = _blocks(decoupled)
    B = L_B[0] @ L_B[0].T
    A: Floats = np.asarray(-np.linalg.inv(K) + np.linalg.inv(K @ B @ K + K), dtype=np.float64)
    theta = on.theta(decoupled.model, "decoupled")
    expected = [a @ kernel_matrix(KERNEL, theta, on.gamma, on.X), _variance(decoupled, A, k)]
    found = decoupled.marginals(decoupled.state((a, L_B)))
    yield {"check": "A from B", "residual": worst_of(found, expected)}
    coupled = Surface("COUPLED", "gaussian", on)
    m, L = coupled.unpacked(coupled.random_points(rng, 1))
    K, k = _blocks(coupled)
    K_inv: Floats = np.asarray(np.linalg.inv(K), dtype=np.float64)
    A = K_inv @ (L[0] @ L[0].T - K) @ K_inv
    expected = [m @ K_inv @ k, _variance(coupled, A, k)]
    found = coupled.marginals(coupled.state((m, L)))
    yield {"check": "A from S", "residual": worst_of(found, expected)}


def _blocks(of: Surface) -> tuple[Floats, Floats]:
    """Return K_β with jitter, and k_βx at the data."""
    theta = of.problem.theta(of.model)
    K = kernel_matrix(KERNEL, theta, of.problem.Z, of.problem.Z)
    k = kernel_matrix(KERNEL, theta, of.problem.Z, of.problem.X)
    return K + of.model.jitter * np.eye(len(K)), k


def _variance(of: Surface, A: Floats, k: Floats) -> Floats:
    """Return κ + k_xβ A k_βx [1, n]."""
    variance = float(of.problem.theta(of.model).kernel.variance[0])
    return np.asarray(variance + np.sum(k * (A @ k), axis=0))[None]


def _natural_parameters(on: Problem) -> Iterator[Row]:
    """Check that Eq. 13's Σ⁻¹μ and Σ⁻¹ in terms of (j_γ, j_β, Θ) are those of the method's q."""
    orth = _orth("gaussian", on)
    state = _general(orth)
    a, m, S = _parts(orth, state)
    u, size = _union("gaussian", on), len(on.gamma)
    K_beta = u.K[size:, size:]
    j_beta, Theta = np.linalg.solve(S, m), 0.5 * np.linalg.inv(S)
    precision, potential = u.K_inv.copy(), np.concatenate([a, j_beta])
    precision[size:, size:] += 2.0 * Theta - np.linalg.inv(K_beta)
    potential[size:] -= np.linalg.solve(K_beta, u.K[size:, :size] @ a)
    covariance = np.linalg.inv(precision)
    expected = [x[None] for x in u.marginals(covariance @ potential, covariance)]
    residual = worst_of(orth.marginals(state), expected)
    yield {"check": "natural parameters", "residual": residual}


def _expectation_parameters(on: Problem) -> Iterator[Row]:
    """Check Eq. 14: m_γ⊥β = D_γ j_γ, m_β = S j_β and the diagonal of −Λ = S + m_βm_βᵀ, from marginals."""
    orth = _orth("gaussian", on, jitter=0.0)
    state = _general(orth)
    a, m, S = _parts(orth, state)
    D, explained = _residual_kernel(orth)
    mean, _ = _marginals_at(orth, state, on.gamma)
    at_beta, variance = _marginals_at(orth, state, on.Z)
    pairs = [
        (mean[0] - explained.T @ at_beta[0], D @ a),
        (at_beta[0], S @ np.linalg.solve(S, m)),
        (variance[0] + at_beta[0] ** 2, np.diag(S + np.outer(m, m))),
    ]
    residual = max(difference(*pair) for pair in pairs)
    yield {"check": "expectation parameters", "residual": residual}


def _residual_kernel(of: Bench) -> tuple[Floats, Floats]:
    """Return D_γ and K_β⁻¹K_βγ, without jitter."""
    on, theta = of.problem, of.problem.theta(of.model, "decoupled")
    K_b = kernel_matrix(KERNEL, theta, on.Z, on.Z)
    K_bg = kernel_matrix(KERNEL, theta, on.Z, on.gamma)
    explained: Floats = np.asarray(np.linalg.solve(K_b, K_bg), dtype=np.float64)
    return kernel_matrix(KERNEL, theta, on.gamma, on.gamma) - K_bg.T @ explained, explained


def _fisher(on: Problem) -> Iterator[Row]:
    """Check the block TᵀC⁻¹R of q's metric between the two parts of the mean, at γ ∪ β and a random S."""
    for basis, check in (("ORTH", "Fisher's blocks"), ("HYBRID", "Fisher's blocks, HYBRID")):
        of = Surface(basis, "gaussian", on, jitter=0.0)
        M_g, M_b = of.lengths
        units, L = np.eye(M_g + M_b), of.unpacked(of.random_points(np.random.default_rng(0), 1))[-1]
        state = of.state((units[:, :M_g], units[:, M_g:], np.tile(L, (M_g + M_b, 1, 1))))
        points = np.concatenate([on.gamma, on.Z])
        mean = _marginals_at(of, state, points)[0].T  # [M_γ + M_β, parameters]
        K = kernel_matrix(KERNEL, on.theta(of.model, "decoupled"), points, points)
        R = K[:, M_g:] @ np.linalg.inv(K[M_g:, M_g:])
        C = K + R @ (L[0] @ L[0].T - K[M_g:, M_g:]) @ R.T
        F = mean.T @ np.linalg.solve(C, mean)
        cross = float(np.max(np.abs(F[:M_g, M_g:])) / np.max(np.abs(F)))
        yield {"check": check, "residual": cross}


def _steps(on: Problem) -> Iterator[Row]:
    """Compare steps with Eqs. 16b, c and 16a by dense slopes of the bound; γ moves at β's new marginals."""
    for likelihood in LOG_CONCAVE:
        orth, row = _orth(likelihood, on), {"likelihood": likelihood}
        state = _general(orth)
        a, m, S = _parts(orth, state)
        u = _union(likelihood, on)
        both = TwoPart(u, orthogonal=True)
        d_m, d_S = u.slopes(*both.q(a, m, S))
        d_m, d_S = d_m @ both.R, both.R.T @ d_S @ both.R
        j_beta = np.linalg.solve(S, m) + RATE * (d_m - 2.0 * d_S @ m)
        Theta = 0.5 * np.linalg.inv(S) - RATE * d_S
        S_new: Floats = np.asarray(0.5 * np.linalg.inv(Theta), dtype=np.float64)
        new_a, new_m, new_S = _parts(orth, orth.e_step(state, orth.full, RATE))
        residual = worst_of([new_m, new_S], [S_new @ j_beta, S_new])
        yield row | {"check": "β's rule", "residual": residual}
        slope = u.slopes(*both.q(a, new_m, new_S))[0] @ both.T
        D = both.T.T @ u.K_inv @ both.T
        expected = a + RATE * np.linalg.solve(D, slope)
        yield row | {"check": "γ's rule", "residual": difference(new_a, expected)}


def _functional_descent(on: Problem) -> Iterator[Row]:
    """Check that the residue r at γ moves to (1 − τ)r + τ Σ_i α_i k_⊥(γ, x_i), and stays 0 at β."""
    orth = _orth("gaussian", on, jitter=0.0)
    state = _general(orth)
    moved = orth.e_step(state, orth.full, RATE)
    half = state._replace(coupled=moved.coupled)  # the state from which γ moves
    theta = on.theta(orth.model, "decoupled")
    mu = orth.marginals(half)[0][0]
    alpha = (on.y - mu) / float(theta.likelihood.noise_variance)
    _, explained = _residual_kernel(orth)
    K_x = kernel_matrix(KERNEL, theta, on.gamma, on.X)
    K_x = K_x - explained.T @ kernel_matrix(KERNEL, theta, on.Z, on.X)
    before, after = (_residue(orth, x, on.gamma) for x in (half, moved))
    residual = difference(after, (1.0 - RATE) * before + RATE * K_x @ alpha)
    yield {"check": "functional gradient", "residual": residual}
    at_beta = float(np.max(np.abs(_residue(orth, moved, on.Z))) / np.max(np.abs(after)))
    yield {"check": "off span(Ψ_β)", "residual": at_beta}


def _residue(orth: Bench, state: Tree, points: Floats) -> Floats:
    """Return γ's part of the mean at points."""
    without = state._replace(a=0.0 * state.a)
    mean, other = (_marginals_at(orth, x, points)[0] for x in (state, without))
    return np.asarray(mean[0] - other[0])


def _coupled_steps(on: Problem) -> Iterator[Row]:
    """Compare β's step with COUPLED's, on the data less γ's mean and on the data themselves."""
    orth = _orth("gaussian", on)
    state = _general(orth)
    expected = orth.posterior(orth.e_step(state, orth.full, RATE))[:2]
    shift = _residue(orth, state, on.X)
    for check, y in (("COUPLED's step beside γ", on.y - shift), ("COUPLED's step", on.y)):
        of = build_method("q-svgp", {})
        coupled = Bench(orth.ops, orth.model, of, replace(on, y=y))
        found = coupled.posterior(coupled.e_step(state.coupled, coupled.full, RATE))[:2]
        yield {"check": check, "residual": worst_of(found, expected)}


def _orth(likelihood: str, on: Problem, jitter: float = 1e-6) -> Bench:
    model = build_model(likelihood, KERNEL, jitter=jitter)
    return Bench(load_backend("numpy"), model, build_method("orth", NATURAL), on)


def _general(orth: Bench) -> Tree:
    """Return the state after two E-steps, in which no part is zero."""
    return orth.e_step(orth.e_step(orth.start, orth.full, RATE), orth.full, RATE)


def _parts(orth: Bench, state: Tree) -> tuple[Floats, Floats, Floats]:
    """Return a_γ, m_β and S."""
    m, S, _ = orth.posterior(state)
    return np.asarray(state.a[0]), m[0], S[0]


def _union(likelihood: str, on: Problem) -> Union:
    case = Case("orth natgrad natural", likelihood, KERNEL)
    model, _ = case.build()
    y = on.targets(model.likelihood.support)
    return Union(case, on.theta(model, "decoupled"), on.X, y, 1.0)


def _marginals_at(of: Bench, state: Tree, points: Floats) -> tuple[Floats, Floats]:
    """Return the method's mean and variance [P, k] at k points."""
    batch = Batch(points, np.zeros(len(points)), np.arange(len(points)))
    f = of.steps.factor(of.raw, of.prior, batch)
    mu, v = of.method.marginals(of.ops, f, of.method.factorise(of.ops, f, state))
    return np.asarray(mu), np.asarray(v)


PARTS = (
    _bases,
    _natural_parameters,
    _expectation_parameters,
    _fisher,
    _steps,
    _functional_descent,
    _coupled_steps,
)
