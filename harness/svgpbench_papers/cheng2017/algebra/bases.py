"""Cheng and Boots 2017, Secs. 3.3-4: Eqs. 7-10 as printed, inducing functions, coupled q, separability."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from svgpbench.checks.bench import Bench, bound_kl_and_marginals, worst_of
from svgpbench.checks.cases import SmallProblem, small_problem
from svgpbench.checks.dense.gaussians import kernel_matrix
from svgpbench.checks.matrix import difference
from svgpbench.kernels import Theta, constrain, unconstrain
from svgpbench.kernels.bases import Decoupled, Features
from svgpbench.methods.mean_covariance import MeanCholesky
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
from svgpbench_papers.cheng2017.algebra.drawn import (
    gradients,
    lower_factor,
    random_parameters,
    random_q,
    state_of,
)

STEP = 1e-20
"""Size of the complex step; its error is of the order of its square."""


@frame_over(likelihood=LIKELIHOODS, seed=SEEDS)
def as_printed(likelihood: str, seed: int) -> Iterator[Check]:
    """Check Eqs. 7-10, the gradient of the KL in B, and α = β with S ⪯ K and with any S."""
    yield from _equations(likelihood, seed)
    yield "inducing functions", functions_gap(likelihood, seed)
    yield "alpha = beta, S below K", _coupled_gap(likelihood, seed, inside=True)
    yield "alpha = beta, any S", _coupled_gap(likelihood, seed, inside=False)
    if likelihood in LOG_CONCAVE:  # t-SVGP's S ⪯ K after 30 E-steps
        b = bench_of("t-svgp tied-projected", likelihood, small_problem(M=6, seed=seed))
        state = b.start
        for _ in range(30):
            state = b.e_step(state, b.full, 1.0 if likelihood == "gaussian" else 0.5)
        _, S, _ = b.posterior(state)
        size = np.linalg.eigvalsh(np.linalg.inv(S[0]) - np.linalg.inv(b.prior.Kuu[0]))
        yield "best coupled S, log-concave", positive_part(-float(size.min() / size.max()))


def _equations(likelihood: str, seed: int) -> Iterator[Check]:
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
    # not slogdet: of a complex matrix it returns log|det|, without the imaginary part
    return float((0.5 * (trace + np.log(np.linalg.det(precision)))).imag / STEP)


def _coupled_gap(likelihood: str, seed: int, *, inside: bool) -> float:
    """Return the difference of q-SVGP at a random (m, S) and DECOUPLED with α = β and the same q."""
    problem = small_problem(M=6, seed=seed)
    d = random_q(replace(problem, gamma=problem.Z), likelihood, seed)
    coupled = bench_of("q-svgp natgrad unwhitened", likelihood, problem)
    K = coupled.prior.Kuu[0]
    S = np.linalg.inv(np.linalg.inv(K) + d.L_B[0] @ d.L_B[0].T)
    if not inside:  # S is wider than the prior in one direction
        # then S⁻¹ − K⁻¹ has a negative eigenvalue, which B = L_B L_Bᵀ cannot have
        wide = d.rng.standard_normal(len(K))
        S = S + 3 * np.outer(wide, wide)
    B = np.linalg.inv(S) - np.linalg.inv(K)  # unless S ⪯ K, the nearest LLᵀ is used
    size, axes = np.linalg.eigh(0.5 * (B + B.T))
    L_B = lower_factor(axes * np.sqrt(np.maximum(size, 1e-12)))
    q = MeanCholesky(d.a @ K, np.linalg.cholesky(S)[None])
    return worst_of(
        bound_kl_and_marginals(d.bench, state_of(d.a, L_B[None])),
        bound_kl_and_marginals(coupled, coupled.start._replace(q=q)),
    )


@frame_over(likelihood=LIKELIHOODS, seed=SEEDS)
def splits(likelihood: str, seed: int) -> Iterator[Check]:
    """Return mixed differences of the bound in (a, α) and (B, β), and checks of the case without β."""
    if likelihood != "gaussian":
        yield "other likelihoods", _mixed_difference(likelihood, seed)
    else:
        yield "Gaussian", _mixed_difference(likelihood, seed)
        yield "Gaussian, noise learned", _mixed_difference(likelihood, seed, learned=True)
        yield from _without_covariance(seed)


def _mixed_difference(likelihood: str, seed: int, *, learned: bool = False) -> float:
    """Return |L(1,1) − L(0,1) − L(1,0) + L(0,0)| in mean and covariance, over the larger change by one."""
    problem = small_problem(M=4, seed=seed)
    d = random_q(problem, likelihood, seed)
    a, L_B = random_parameters(d.rng, len(problem.gamma), len(problem.Z))
    means = ((d.a, problem.gamma), (3 * a, problem.gamma + 0.3))
    covariances = ((d.L_B, problem.Z), (0.5 * L_B, problem.Z - 0.3))
    L = np.array(
        [[_bound(d.bench, x, y, learned=learned) for y in covariances] for x in means], float
    )
    # 0 for every sum of a function of (a, α) and one of (B, β)
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
        # the root of the bound's slope in σ², −n/(2σ²) + Σ((y − μ)² + v)/(2σ⁴)
        noise = theta.likelihood._replace(noise_variance=np.mean((b.y - mu) ** 2 + v))
        raw = unconstrain(theta._replace(likelihood=noise))
    return float(b.steps.bound(raw, f, b.full, state, b.one))


def _without_covariance(seed: int) -> Iterator[Check]:
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
    # −1/(2σ²) of this is all of the bound that the mean enters; variances cancel in the gain
    ridge = [np.sum((b.y - K @ x) ** 2) + s2 * x @ K @ x for x in (a, best)]
    error = difference(gain, (ridge[0] - ridge[1]) / (2 * s2))
    yield "no beta: ridge regression's objective", error
    slope = gradients(b, at_best, b.full, 1.0).a
    yield "no beta: its solution", float(np.max(np.abs(slope)) / np.max(np.abs(K @ best)))


NODES = 60


class Windowed(SmallProblem):
    """A problem with a Gaussian window around every point of both bases."""

    def inducing(self, basis: str) -> Decoupled:
        return Decoupled(*(Features(x, 0.2 + 0.2 * np.abs(x)) for x in (self.gamma, self.Z)))


def functions_gap(likelihood: str, seed: int) -> float:
    """Return the largest difference of mean, variance and KL from Eqs. 8 and 9 with explicit inverses."""
    problem = Windowed(**vars(small_problem(M=4, seed=seed)))
    b = bench_of("decoupled adam", likelihood, problem, kernel="se")
    a, L_B = random_parameters(np.random.default_rng(seed), len(problem.gamma), len(problem.Z))
    theta = problem.theta(b.model, "decoupled")
    (alpha, beta), X = theta.inducing, Features(problem.X, np.zeros_like(problem.X))
    K_a, K_b = (
        covariance(theta, x, x) + b.model.jitter * np.eye(len(x.centres)) for x in (alpha, beta)
    )
    K_bx, B = covariance(theta, beta, X), L_B[0] @ L_B[0].T
    C = np.linalg.inv(np.linalg.inv(B) + K_b)
    variance = float(theta.kernel.variance[0]) - np.sum(K_bx * (C @ K_bx), axis=0)
    log_det = np.linalg.slogdet(np.eye(len(B)) + K_b @ B)[1]
    kl = 0.5 * (float(a[0] @ K_a @ a[0]) + log_det - np.trace(K_b @ C))
    printed = [a @ covariance(theta, alpha, X), variance[None], np.asarray(kl)]
    state = state_of(a, L_B)
    return worst_of([*b.marginals(state), np.asarray(b.kl(state))], printed)


def covariance(theta: Theta, A: Features, B: Features) -> Floats:
    """Return covariances [n, m] of averages of f under the SE kernel, each scaled to the variance of f."""
    size_A, size_B = (_average(theta, 0.0 * x.centres, 2.0 * x.widths**2) for x in (A, B))
    gap, spread = A.centres[:, None] - B.centres, A.widths[:, None] ** 2 + B.widths**2
    scale = np.sqrt(size_A[:, None] * size_B)
    return np.asarray(theta.kernel.variance[0] * _average(theta, gap, spread) / scale)


def _average(theta: Theta, gap: Floats, spread: Floats) -> Floats:
    """Return E exp(−½Σu²/l²) [...] for u ~ N(gap, spread) in each dimension; gap and spread are [..., D]."""
    t, w = np.polynomial.hermite_e.hermegauss(NODES)
    u = (gap[..., None] + np.sqrt(spread)[..., None] * t) / theta.kernel.lengthscales[0][:, None]
    return np.asarray(np.prod(np.exp(-0.5 * u**2) @ w / np.sqrt(2 * np.pi), axis=-1))
