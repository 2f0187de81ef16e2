"""Salimbeni et al. 2018b, Eqs. 5–8 and 13–17: parameters of a basis, and natural-gradient steps on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from svgpbench.checks.bench import Bench, worst_of
from svgpbench.checks.cases import SmallProblem
from svgpbench.checks.dense import kernel_matrix
from svgpbench.checks.dense.two_part import TwoPart
from svgpbench.checks.matrix import difference
from svgpbench.methods import build_method
from svgpbench.ops import Tree
from svgpbench_papers.algebra.random_problems import (
    LOG_CONCAVE,
    SEEDS,
    Check,
    Floats,
    Row,
    bench_of,
    frame_over,
)
from svgpbench_papers.salimbeni2018.algebra.surface import (
    KERNEL,
    Surface,
    random_problem,
    union_of,
)

RATE = 0.1
NATURAL = {"coupled": "q-svgp natgrad", "gamma_step": "natural"}  # Eqs. 16a–c


@frame_over(seed=SEEDS)
def parameters_and_rules(seed: int) -> Iterator[Row | Check]:
    """Compare bases, natural and expectation parameters and steps with dense algebra (salimbeni2018-05)."""
    problem = random_problem(seed)
    parts = _bases, _natural_parameters, _expectation_parameters, _fisher, _steps, _residue_steps
    for part in (*parts, _coupled_steps):
        yield from part(problem)


def _bases(problem: SmallProblem) -> Iterator[Row | Check]:
    """Check Eqs. 5–8 by the marginals of a random state at the data."""
    rng = np.random.default_rng(0)
    decoupled = Surface("DECOUPLED", "gaussian", problem)
    a, L_B = decoupled.unpacked(decoupled.random_points(rng, 1))
    theta = problem.theta(decoupled.model, "decoupled")
    k_ax, k = (kernel_matrix(KERNEL, theta, Z, problem.X) for Z in (problem.gamma, problem.Z))
    K = kernel_matrix(KERNEL, theta, problem.Z, problem.Z) + decoupled.model.jitter * np.eye(len(k))
    variance = float(theta.kernel.variance[0])
    B = L_B[0] @ L_B[0].T
    A: Floats = np.asarray(-np.linalg.inv(K) + np.linalg.inv(K @ B @ K + K), dtype=np.float64)
    expected = [a @ k_ax, (variance + np.sum(k * (A @ k), axis=0))[None]]
    marginals = decoupled.marginals(decoupled.state((a, L_B)))
    yield "A from B", worst_of(marginals, expected)
    coupled = Surface("COUPLED", "gaussian", problem)
    m, L = coupled.unpacked(coupled.random_points(rng, 1))
    K_inv: Floats = np.asarray(np.linalg.inv(K), dtype=np.float64)
    A = K_inv @ (L[0] @ L[0].T - K) @ K_inv
    expected = [m @ K_inv @ k, (variance + np.sum(k * (A @ k), axis=0))[None]]
    marginals = coupled.marginals(coupled.state((m, L)))
    yield "A from S", worst_of(marginals, expected)


def _natural_parameters(problem: SmallProblem) -> Iterator[Row | Check]:
    """Check that Eq. 13's Σ⁻¹μ and Σ⁻¹ in terms of (j_γ, j_β, Θ) are those of the method's q."""
    orth = _orth("gaussian", problem)
    state = _general_state(orth)
    a, m, S = _parts(orth, state)
    u, size = union_of(orth), len(problem.gamma)
    K_beta = u.K[size:, size:]
    j_beta, Theta = np.linalg.solve(S, m), 0.5 * np.linalg.inv(S)
    precision, potential = u.K_inv.copy(), np.concatenate([a, j_beta])
    precision[size:, size:] += 2.0 * Theta - np.linalg.inv(K_beta)
    potential[size:] -= np.linalg.solve(K_beta, u.K[size:, :size] @ a)
    covariance = np.linalg.inv(precision)
    expected = [x[None] for x in u.marginals(covariance @ potential, covariance)]
    residual = worst_of(orth.marginals(state), expected)
    yield "natural parameters", residual


def _expectation_parameters(problem: SmallProblem) -> Iterator[Row | Check]:
    """Check Eq. 14: m_γ⊥β = D_γ j_γ, m_β = S j_β and the diagonal of −Λ = S + m_βm_βᵀ, from marginals."""
    # no jitter: marginals at γ and β are predictions, whose covariances have none
    orth = _orth("gaussian", problem, jitter=0.0)
    state = _general_state(orth)
    a, m, S = _parts(orth, state)
    D, explained = _residual_kernel(orth)
    (mean,), _ = _marginals_at(orth, state, problem.gamma)
    (m_beta,), (variance,) = _marginals_at(orth, state, problem.Z)
    computed = [mean - explained.T @ m_beta, m_beta, variance + m_beta**2]
    expected = [D @ a, S @ np.linalg.solve(S, m), np.diag(S + np.outer(m, m))]
    yield "expectation parameters", worst_of(computed, expected)


def _residual_kernel(bench: Bench) -> tuple[Floats, Floats]:
    """Return D_γ and K_β⁻¹K_βγ, without jitter."""
    problem, theta = bench.problem, bench.problem.theta(bench.model, "decoupled")
    K_b = kernel_matrix(KERNEL, theta, problem.Z, problem.Z)
    K_bg = kernel_matrix(KERNEL, theta, problem.Z, problem.gamma)
    explained: Floats = np.asarray(np.linalg.solve(K_b, K_bg), dtype=np.float64)
    K_g = kernel_matrix(KERNEL, theta, problem.gamma, problem.gamma)
    return K_g - K_bg.T @ explained, explained


def _fisher(problem: SmallProblem) -> Iterator[Row | Check]:
    """Check the block TᵀC⁻¹R of q's metric between the two parts of the mean, at γ ∪ β and a random S."""
    for basis, check in (("ORTH", "Fisher's blocks"), ("HYBRID", "Fisher's blocks, HYBRID")):
        surface = Surface(basis, "gaussian", problem, jitter=0.0)
        M_g, M_b = surface.lengths
        L = surface.unpacked(surface.random_points(np.random.default_rng(0), 1))[-1]
        units = np.eye(M_g + M_b)
        state = surface.state((units[:, :M_g], units[:, M_g:], np.tile(L, (M_g + M_b, 1, 1))))
        points = np.concatenate([problem.gamma, problem.Z])
        mean = _marginals_at(surface, state, points)[0].T  # [M_γ + M_β, parameters]
        K = kernel_matrix(KERNEL, problem.theta(surface.model, "decoupled"), points, points)
        R = K[:, M_g:] @ np.linalg.inv(K[M_g:, M_g:])
        C = K + R @ (L[0] @ L[0].T - K[M_g:, M_g:]) @ R.T
        F = mean.T @ np.linalg.solve(C, mean)
        cross = float(np.max(np.abs(F[:M_g, M_g:])) / np.max(np.abs(F)))
        yield check, cross


def _steps(problem: SmallProblem) -> Iterator[Row | Check]:
    """Compare steps with Eqs. 16b, c and 16a by dense slopes of the bound; γ moves at β's new marginals."""
    for likelihood in LOG_CONCAVE:
        orth, row = _orth(likelihood, problem), {"likelihood": likelihood}
        state = _general_state(orth)
        a, m, S = _parts(orth, state)
        u = union_of(orth)
        parts = TwoPart(u, orthogonal=True)
        d_m, d_S = u.slopes(*parts.q(a, m, S))
        d_m, d_S = d_m @ parts.R, parts.R.T @ d_S @ parts.R
        j_beta = np.linalg.solve(S, m) + RATE * (d_m - 2.0 * d_S @ m)
        Theta = 0.5 * np.linalg.inv(S) - RATE * d_S
        S_new: Floats = np.asarray(0.5 * np.linalg.inv(Theta), dtype=np.float64)
        new_a, new_m, new_S = _parts(orth, orth.e_step(state, orth.full, RATE))
        residual = worst_of([new_m, new_S], [S_new @ j_beta, S_new])
        yield row | {"check": "β's rule", "residual": residual}
        slope = u.slopes(*parts.q(a, new_m, new_S))[0] @ parts.T
        D = parts.T.T @ u.K_inv @ parts.T
        expected = a + RATE * np.linalg.solve(D, slope)
        yield row | {"check": "γ's rule", "residual": difference(new_a, expected)}


def _residue_steps(problem: SmallProblem) -> Iterator[Row | Check]:
    """Check that the residue r at γ moves to (1 − τ)r + τ Σ_i α_i k_⊥(γ, x_i), and stays 0 at β."""
    orth = _orth("gaussian", problem, jitter=0.0)
    state = _general_state(orth)
    end = orth.e_step(state, orth.full, RATE)
    half = state._replace(coupled=end.coupled)  # the state from which γ moves
    theta = problem.theta(orth.model, "decoupled")
    mu = orth.marginals(half)[0][0]
    alpha = (problem.y - mu) / float(theta.likelihood.noise_variance)
    _, explained = _residual_kernel(orth)
    K_x = kernel_matrix(KERNEL, theta, problem.gamma, problem.X)
    K_x = K_x - explained.T @ kernel_matrix(KERNEL, theta, problem.Z, problem.X)
    before, after = (_residue(orth, x, problem.gamma) for x in (half, end))
    residual = difference(after, (1.0 - RATE) * before + RATE * K_x @ alpha)
    yield "functional gradient", residual
    at_beta = float(np.max(np.abs(_residue(orth, end, problem.Z))) / np.max(np.abs(after)))
    yield "off span(Ψ_β)", at_beta


def _residue(orth: Bench, state: Tree, points: Floats) -> Floats:
    """Return γ's part of the mean at points."""
    without = state._replace(a=0.0 * state.a)
    mean, mean_of_beta = (_marginals_at(orth, x, points)[0] for x in (state, without))
    return np.asarray(mean[0] - mean_of_beta[0])


def _coupled_steps(problem: SmallProblem) -> Iterator[Row | Check]:
    """Compare β's step with COUPLED's, on the data less γ's mean and on the data themselves."""
    orth = _orth("gaussian", problem)
    state = _general_state(orth)
    expected = orth.posterior(orth.e_step(state, orth.full, RATE))[:2]
    shift = _residue(orth, state, problem.X)
    for check, y in (
        ("COUPLED's step beside γ", problem.y - shift),
        ("COUPLED's step", problem.y),
    ):
        coupled = bench_of("q-svgp natgrad", "gaussian", replace(problem, y=y))
        computed = coupled.posterior(coupled.e_step(state.coupled, coupled.full, RATE))[:2]
        yield check, worst_of(computed, expected)


def _orth(likelihood: str, problem: SmallProblem, jitter: float = 1e-6) -> Bench:
    return bench_of(build_method("orth", NATURAL), likelihood, problem, jitter=jitter)


def _general_state(orth: Bench) -> Tree:
    """Return the state after two E-steps, in which no part is zero."""
    return orth.e_step(orth.e_step(orth.start, orth.full, RATE), orth.full, RATE)


def _parts(orth: Bench, state: Tree) -> tuple[Floats, Floats, Floats]:
    """Return a_γ, m_β and S."""
    m, S, _ = orth.posterior(state)
    return np.asarray(state.a[0]), m[0], S[0]


def _marginals_at(bench: Bench, state: Tree, points: Floats) -> tuple[Floats, Floats]:
    """Return the method's mean and variance [P, k] at k points."""
    mean, variance = replace(bench.session, q=state).marginals(points)
    return np.asarray(mean), np.asarray(variance)
