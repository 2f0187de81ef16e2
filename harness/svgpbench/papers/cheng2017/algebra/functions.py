"""Cheng and Boots 2017, Eqs. 8-9 and Sec. 4: bases of inducing functions, with averages by quadrature."""

from __future__ import annotations

import numpy as np

from svgpbench.checks.bench import worst_of
from svgpbench.checks.cases import SmallProblem, small_problem
from svgpbench.kernels import Theta
from svgpbench.kernels.bases import Decoupled, Features
from svgpbench.papers.algebra.random_problems import Floats, bench_of
from svgpbench.papers.cheng2017.algebra.drawn import random_parameters, state_of

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
    """Return covariances [n, m] of averages of f under the squared exponential.

    Each average is scaled to the variance of f.
    """
    size_A, size_B = (_average(theta, 0.0 * x.centres, 2.0 * x.widths**2) for x in (A, B))
    gap, spread = A.centres[:, None] - B.centres, A.widths[:, None] ** 2 + B.widths**2
    scale = np.sqrt(size_A[:, None] * size_B)
    return np.asarray(theta.kernel.variance[0] * _average(theta, gap, spread) / scale)


def _average(theta: Theta, gap: Floats, spread: Floats) -> Floats:
    """Return E exp(−½Σu²/l²) [...] for u ~ N(gap, spread) in each dimension; gap and spread are [..., D]."""
    t, w = np.polynomial.hermite_e.hermegauss(NODES)
    u = (gap[..., None] + np.sqrt(spread)[..., None] * t) / theta.kernel.lengthscales[0][:, None]
    return np.asarray(np.prod(np.exp(-0.5 * u**2) @ w / np.sqrt(2 * np.pi), axis=-1))
