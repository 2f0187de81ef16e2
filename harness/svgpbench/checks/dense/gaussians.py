"""Kernels, expectations and Gaussians of inducing variables in plain NumPy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit, log_ndtr

from svgpbench.checks.cases import Case
from svgpbench.model import Theta

Floats = npt.NDArray[np.float64]


def kernel_matrix(name: str, theta: Theta, A: Floats, B: Floats) -> Floats:
    """k(A, B) [n, m] from pairwise differences."""
    lengthscales = np.asarray(theta.kernel.lengthscales)[0]
    d2 = np.sum(((A[:, None] - B[None]) / lengthscales) ** 2, axis=-1)
    variance = float(np.asarray(theta.kernel.variance)[0])
    if name == "se":
        return np.asarray(variance * np.exp(-d2 / 2))
    if name == "matern32":
        r = np.sqrt(3 * d2)
        return np.asarray(variance * (1 + r) * np.exp(-r))
    r = np.sqrt(5 * d2)
    return np.asarray(variance * (1 + r + r**2 / 3) * np.exp(-r))


def expectations(
    likelihood: str, theta: Theta, y: Floats, mu: Floats, v: Floats, nodes: int = 20
) -> tuple[Floats, Floats, Floats]:
    """(V, α, β), each [b], with SciPy's own distribution functions."""
    if likelihood == "gaussian":
        s2 = float(theta.likelihood.noise_variance)
        V = -0.5 * np.log(2 * np.pi * s2) - ((y - mu) ** 2 + v) / (2 * s2)
        return V, (y - mu) / s2, np.full_like(mu, 1 / s2)
    t, w = np.polynomial.hermite_e.hermegauss(nodes)
    w = w / np.sqrt(2 * np.pi)
    sign = (2 * y - 1)[:, None]
    f = mu[:, None] + np.sqrt(v)[:, None] * t
    if likelihood == "bernoulli-probit":
        value = log_ndtr(sign * f)
        slope = sign * np.exp(-(f**2) / 2 - value) / np.sqrt(2 * np.pi)
    else:
        value = log_expit(sign * f)
        slope = sign * expit(-sign * f)
    return value @ w, slope @ w, -(slope * t) @ w / np.sqrt(v)


def sgpr_bound(theta: Theta, kernel: str, X: Floats, y: Floats, jitter: float) -> float:
    """Titsias (2009): log N(y | 0, Q_ff + σ²I) − tr(K_ff − Q_ff)/(2σ²), dense."""
    Z, s2 = np.asarray(theta.inducing), float(theta.likelihood.noise_variance)
    Kuu = kernel_matrix(kernel, theta, Z, Z) + jitter * np.eye(len(Z))
    Kuf = kernel_matrix(kernel, theta, Z, X)
    Q = Kuf.T @ np.linalg.solve(Kuu, Kuf)
    residual = len(X) * float(np.asarray(theta.kernel.variance)[0]) - np.trace(Q)
    return log_normal(y, Q + s2 * np.eye(len(X))) - float(residual) / (2 * s2)


def log_normal(y: Floats, covariance: Floats) -> float:
    """Log density of N(y | 0, covariance)."""
    sign, log_det = np.linalg.slogdet(covariance)
    quadratic = y @ np.linalg.solve(covariance, y)
    return float(sign * -0.5 * (len(y) * np.log(2 * np.pi) + log_det + quadratic))


class Dense:
    """q(u) = N(m, S) at a θ, on a batch, all dense."""

    def __init__(self, case: Case, theta: Theta, X: Floats, y: Floats, scale: float) -> None:
        self.case, self.theta, self.y, self.scale = case, theta, y, scale
        Z = np.asarray(theta.inducing)
        self.K = kernel_matrix(case.kernel, theta, Z, Z) + 1e-6 * np.eye(len(Z))
        self.K_inv = np.linalg.inv(self.K)
        self.A: Floats = self.K_inv @ kernel_matrix(case.kernel, theta, Z, X)  # [M, b]
        self.Kuf = self.K @ self.A
        self.kff: Floats = np.full(len(X), float(np.asarray(theta.kernel.variance)[0]))

    def marginals(self, m: Floats, S: Floats) -> tuple[Floats, Floats]:
        """μ = Aᵀm, v = κ − diag Aᵀ(K − S)A."""
        return self.A.T @ m, self.kff - np.sum(self.A * ((self.K - S) @ self.A), axis=0)

    def kl(self, m: Floats, S: Floats) -> float:
        """KL[N(m, S) ‖ N(0, K)]."""
        log_ratio = np.linalg.slogdet(self.K)[1] - np.linalg.slogdet(S)[1]
        return float(0.5 * (np.trace(self.K_inv @ S) + m @ self.K_inv @ m - len(m) + log_ratio))

    def elbo(self, m: Floats, S: Floats) -> float:
        """The bound, s ΣV − KL."""
        V, _, _ = expectations(self.case.likelihood, self.theta, self.y, *self.marginals(m, S))
        return float(self.scale * V.sum() - self.kl(m, S))

    def slopes(self, m: Floats, S: Floats) -> tuple[Floats, Floats]:
        """∂ELBO/∂m [M] and ∂ELBO/∂S [M, M]."""
        _, alpha, beta = expectations(
            self.case.likelihood, self.theta, self.y, *self.marginals(m, S)
        )
        d_m = self.scale * self.A @ alpha - self.K_inv @ m
        return d_m, 0.5 * (np.linalg.inv(S) - self.K_inv - self.scale * (self.A * beta) @ self.A.T)

    def natural_step(self, m: Floats, S: Floats, rate: float) -> tuple[Floats, Floats]:
        """(S⁻¹m, −½S⁻¹) ← + ρ ∂ELBO/∂(m, S + mmᵀ), term by term."""
        d_m, d_S = self.slopes(m, S)
        precision: Floats = np.asarray(np.linalg.inv(S), dtype=np.float64)
        theta1 = precision @ m + rate * (d_m - 2 * d_S @ m)
        covariance: Floats = np.asarray(np.linalg.inv(precision - 2 * rate * d_S))
        return covariance @ theta1, covariance
