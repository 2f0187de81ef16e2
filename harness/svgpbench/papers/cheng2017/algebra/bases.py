"""Cheng and Boots 2017, Secs. 3.3-3.4: Eqs. 7-10 as printed, coupled q in them, and separability."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from svgpbench.checks.bench import Bench, bound_kl_and_marginals, worst_of
from svgpbench.checks.cases import small_problem
from svgpbench.checks.dense.gaussians import kernel_matrix
from svgpbench.checks.matrix import difference
from svgpbench.kernels import constrain, unconstrain
from svgpbench.kernels.bases import Decoupled
from svgpbench.methods.mean_covariance import MeanCholesky
from svgpbench.papers.algebra.random_problems import LOG_CONCAVE, Floats, bench_of
from svgpbench.papers.cheng2017.algebra.drawn import (
    Checks,
    for_every_case,
    gradients,
    lower_factor,
    random_parameters,
    random_q,
    state_of,
)
from svgpbench.papers.cheng2017.algebra.functions import functions_gap

STEP = 1e-20
"""Size of the complex step; its error is of the order of its square."""


# --- cheng2017-01 ----------------------------------------------------------------------------------


@for_every_case
def as_printed(likelihood: str, seed: int) -> Checks:
    """Check Eqs. 7-10, the gradient of the KL in B, and α = β with S ⪯ K and with any S."""
    yield from _equations(likelihood, seed)
    yield "inducing functions", functions_gap(likelihood, seed)
    yield "alpha = beta, S below K", _coupled_gap(likelihood, seed, inside=True)
    yield "alpha = beta, any S", _coupled_gap(likelihood, seed, inside=False)
    if likelihood in LOG_CONCAVE:
        yield "best coupled S, log-concave", _excess_over_prior(likelihood, seed)


def _equations(likelihood: str, seed: int) -> Checks:
    d = random_q(small_problem(M=4, seed=seed), likelihood, seed)
    b, u = d.bench, d.dense
    m, S = u.decoupled(d.a, d.L_B)
    yield "mean and variance", worst_of(b.marginals(d.state), [*u.marginals(m, S)])
    yield "KL", difference(b.kl(d.state), u.kl(m, S))
    yield "bound", difference(b.ops.to_numpy(b.bound(d.state, b.full)), u.elbo(m, S))
    K, B = u.K[u.size :, u.size :], d.L_B[0] @ d.L_B[0].T
    G = printed_gradient(K, B)
    g_L = gradients(b, d.state, b.full, 0.0).L_B[0]
    error = difference(g_L, -np.tril(2 * G @ d.L_B[0]))
    E = d.rng.standard_normal(K.shape)
    E = E + E.T
    yield "gradient of the KL in B", max(error, difference(np.sum(G * E), kl_slope(K, B, E)))


def printed_gradient(K: Floats, B: Floats) -> Floats:
    """Return ½(I + KB)⁻¹ K B K (I + BK)⁻¹, the printed gradient of the KL in B (Sec. 3.4)."""
    eye = np.eye(len(K))
    return np.asarray(0.5 * np.linalg.inv(eye + K @ B) @ K @ B @ K @ np.linalg.inv(eye + B @ K))


def kl_slope(K: Floats, B: Floats, direction: Floats) -> float:
    """Return the slope of KL[N(0, (K⁻¹ + B)⁻¹) ‖ N(0, K)] along a direction of B, by a complex step."""
    precision = np.linalg.inv(K) + B + 1j * STEP * direction
    trace = np.trace(np.linalg.inv(K) @ np.linalg.inv(precision))
    return float((0.5 * (trace + np.log(np.linalg.det(precision)))).imag / STEP)


def _coupled_gap(likelihood: str, seed: int, *, inside: bool) -> float:
    """Return the difference of q-SVGP at a random (m, S) and DECOUPLED with the same q.

    DECOUPLED has α = β, a = K⁻¹m and B = S⁻¹ − K⁻¹. Unless S ⪯ K, B has negative eigenvalues; then the
    nearest LLᵀ is used.
    """
    problem = small_problem(M=6, seed=seed)
    d = random_q(replace(problem, gamma=problem.Z), likelihood, seed)
    coupled = bench_of("q-svgp natgrad unwhitened", likelihood, problem)
    K = coupled.prior.Kuu[0]
    S = np.linalg.inv(np.linalg.inv(K) + d.L_B[0] @ d.L_B[0].T)
    if not inside:  # S is wider than the prior in one direction
        wide = d.rng.standard_normal(len(K))
        S = S + 3 * np.outer(wide, wide)
    B = np.linalg.inv(S) - np.linalg.inv(K)
    size, axes = np.linalg.eigh(0.5 * (B + B.T))
    L_B = lower_factor(axes * np.sqrt(np.maximum(size, 1e-12)))
    q = MeanCholesky(d.a @ K, np.linalg.cholesky(S)[None])
    return worst_of(
        bound_kl_and_marginals(d.bench, state_of(d.a, L_B[None])),
        bound_kl_and_marginals(coupled, coupled.start._replace(q=q)),
    )


def _excess_over_prior(likelihood: str, seed: int) -> float:
    """Return by how much t-SVGP's S after 30 E-steps violates S ⪯ K; 0 if it does not.

    It is the most negative eigenvalue of S⁻¹ − K⁻¹, relative to the largest.
    """
    b = bench_of("t-svgp tied-projected", likelihood, small_problem(M=6, seed=seed))
    state = b.start
    for _ in range(30):
        state = b.e_step(state, b.full, 1.0 if likelihood == "gaussian" else 0.5)
    _, S, _ = b.posterior(state)
    size = np.linalg.eigvalsh(np.linalg.inv(S[0]) - np.linalg.inv(b.prior.Kuu[0]))
    return max(0.0, -float(size.min() / size.max()))


# --- cheng2017-03 ----------------------------------------------------------------------------------


@for_every_case
def splits(likelihood: str, seed: int) -> Checks:
    """Return mixed differences of the bound in (a, α) and (B, β), and checks of the case without β."""
    if likelihood != "gaussian":
        yield "other likelihoods", _mixed_difference(likelihood, seed)
        return
    yield "Gaussian", _mixed_difference(likelihood, seed)
    yield "Gaussian, noise learned", _mixed_difference(likelihood, seed, learned=True)
    yield from _without_covariance(seed)


def _mixed_difference(likelihood: str, seed: int, *, learned: bool = False) -> float:
    """Return |L(1,1) − L(0,1) − L(1,0) + L(0,0)| of the bound in the parts of mean and covariance.

    It is relative to the larger difference in one part alone.
    """
    problem = small_problem(M=4, seed=seed)
    d = random_q(problem, likelihood, seed)
    a, L_B = random_parameters(d.rng, len(problem.gamma), len(problem.Z))
    means = ((d.a, problem.gamma), (3 * a, problem.gamma + 0.3))
    covariances = ((d.L_B, problem.Z), (0.5 * L_B, problem.Z - 0.3))
    L = np.array(
        [[_bound(d.bench, x, y, learned=learned) for y in covariances] for x in means], float
    )
    mixed = abs(L[1, 1] - L[0, 1] - L[1, 0] + L[0, 0])
    return float(mixed / max(abs(L[1, 0] - L[0, 0]), abs(L[0, 1] - L[0, 0])))


def _bound(
    b: Bench, mean: tuple[Floats, Floats], covariance: tuple[Floats, Floats], *, learned: bool
) -> float:
    """Return the bound at (a, α) and (L_B, β); if `learned`, at the best noise variance."""
    (a, alpha), (L_B, beta) = mean, covariance
    raw, state = b.raw._replace(inducing=Decoupled(alpha, beta)), state_of(a, L_B)
    f = b.steps.factor(raw, b.steps.prior(raw), b.full)
    if learned:
        mu, v = b.method.marginals(b.ops, f, b.method.factorise(b.ops, f, state))
        theta = constrain(b.ops, raw)
        noise = theta.likelihood._replace(noise_variance=np.mean((b.y - mu) ** 2 + v))
        raw = unconstrain(theta._replace(likelihood=noise))
    return float(b.steps.bound(raw, f, b.full, state, b.one))


def _without_covariance(seed: int) -> Checks:
    """Check B = 0 (that is M_β = 0) at α = X against the prior's variance and ridge regression."""
    problem = small_problem(seed=seed)
    problem = replace(problem, gamma=problem.X, Z=problem.Z[:1])
    b = bench_of("decoupled adam", "gaussian", problem, jitter=0.0)
    theta = problem.theta(b.model, "decoupled")
    K = kernel_matrix("matern52", theta, problem.X, problem.X)
    s2 = float(theta.likelihood.noise_variance)
    best: Floats = np.asarray(np.linalg.solve(K + s2 * np.eye(b.n), b.y), dtype=np.float64)
    a: Floats = best + 0.3 * np.random.default_rng(seed).standard_normal(b.n)
    at_best, at_a = (state_of(x[None], np.zeros((1, 1, 1))) for x in (best, a))
    _, v = b.marginals(at_a)
    yield "no beta: the prior's variance", difference(v[0], np.diag(K))
    gain = float(b.bound(at_best, b.full) - b.bound(at_a, b.full))
    ridge = [np.sum((b.y - K @ x) ** 2) + s2 * x @ K @ x for x in (a, best)]
    error = difference(gain, (ridge[0] - ridge[1]) / (2 * s2))
    yield "no beta: ridge regression's objective", error
    slope = gradients(b, at_best, b.full, 1.0).a
    yield "no beta: its solution", float(np.max(np.abs(slope)) / np.max(np.abs(K @ best)))
