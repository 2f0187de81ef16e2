"""Kernels and Gaussians of inducing variables in plain NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from svgpbench.checks.cases import COMPOUND_KERNELS, MatrixCase
from svgpbench.checks.dense.expectations import expectations
from svgpbench.checks.evaluate import Arrays
from svgpbench.kernels import Theta

Floats = npt.NDArray[np.float64]
JITTER = 1e-6
"""Jitter on K(Z, Z) in the check's models."""
NO_NOISE: Floats = np.zeros((0, 0))


# no floor under the roots: only their slopes are infinite at 0, and nothing here is differentiated
KERNELS: dict[str, Callable[[Floats], Floats]] = {
    "se": lambda d2: np.asarray(np.exp(-d2 / 2)),
    "matern32": lambda d2: np.asarray((1 + np.sqrt(3 * d2)) * np.exp(-np.sqrt(3 * d2))),
    "matern52": lambda d2: np.asarray(
        (1 + np.sqrt(5 * d2) + np.sqrt(5 * d2) ** 2 / 3) * np.exp(-np.sqrt(5 * d2))
    ),
}
"""Correlation at squared scaled distance."""


def kernel_matrix(name: str, theta: Theta, A: Floats, B: Floats) -> Floats:
    """Return k(A, B) [n, m] from pairwise differences."""
    return _kernel(name, theta.kernel, A[:, None] - B[None])


def kernel_at_a_point(name: str, theta: Theta) -> float:
    """Return k(x, x)."""
    return float(_kernel(name, theta.kernel, np.zeros(1)))


def _kernel(name: str, p: Any, differences: Floats) -> Floats:
    """Return the covariances at differences [..., D] for hyperparameters `p`."""
    if name in COMPOUND_KERNELS:
        join = np.sum if name == "sum" else np.prod
        pairs = zip(COMPOUND_KERNELS[name], p, strict=True)
        return np.asarray(
            join([_kernel(part, parameters, differences) for part, parameters in pairs], axis=0)
        )
    d2 = np.sum((differences / np.asarray(p.lengthscales)[0]) ** 2, axis=-1)
    return np.asarray(float(np.asarray(p.variance)[0]) * KERNELS[name](d2))


def sgpr_bound(
    theta: Theta, kernel: str, X: Floats, y: Floats, jitter: float, residual: str = "prior"
) -> float:
    """Return log N(y | 0, Q_ff + σ²I) − tr(K_ff − Q_ff)/(2σ²) by dense algebra (Titsias 2009).

    The trace is Σ d_i. With one residual variance, its term becomes −½n log(1 + Σd_i/(nσ²)). With one
    residual variance per datum, it becomes −½Σ log(1 + d_i/σ²) (Titsias 2025).
    """
    Z, s2 = np.asarray(theta.inducing), float(theta.likelihood.noise_variance)
    Kuu = kernel_matrix(kernel, theta, Z, Z) + jitter * np.eye(len(Z))
    Kuf = kernel_matrix(kernel, theta, Z, X)
    Q = Kuf.T @ np.linalg.solve(Kuu, Kuf)
    x = (kernel_at_a_point(kernel, theta) - np.diag(Q)) / s2
    penalty = {
        "prior": np.sum(x),
        "scalar": len(X) * np.log(1 + np.mean(x)),
        "diagonal": np.sum(np.log(1 + x)),
    }
    return log_normal(y, Q + s2 * np.eye(len(X))) - 0.5 * float(penalty[residual])


def log_normal(y: Floats, covariance: Floats) -> float:
    """Return the log density of N(y | 0, covariance)."""
    sign, log_det = np.linalg.slogdet(covariance)
    quadratic = y @ np.linalg.solve(covariance, y)
    return float(sign * -0.5 * (len(y) * np.log(2 * np.pi) + log_det + quadratic))


class Dense:
    """Dense matrices at one θ on one batch, with functions of q(u_p) = N(m_p, S_p).

    m is [P, M], or [M] for a single latent.
    """

    def __init__(
        self,
        case: MatrixCase,
        theta: Theta,
        X: Floats,
        y: Floats,
        scale: float,
        noise: Floats = NO_NOISE,
        jitter: float = JITTER,
    ) -> None:
        self.case, self.theta, self.y, self.scale, self.noise = case, theta, y, scale, noise
        self.likelihood = case.build()[0].likelihood
        Z = np.asarray(theta.inducing)
        self.K = kernel_matrix(case.kernel, theta, Z, Z) + jitter * np.eye(len(Z))
        self.K_inv = np.linalg.inv(self.K)
        self.A: Floats = self.K_inv @ kernel_matrix(case.kernel, theta, Z, X)  # [M, b]
        self.Kuf = self.K @ self.A
        self.kff: Floats = np.full(len(X), kernel_at_a_point(case.kernel, theta))
        self.d: Floats = self.kff - np.sum(self.A * self.Kuf, axis=0)
        self.width: Floats = np.ones(())  # variance of q(f|u) over p(f|u); [P, b] or [P, 1]

    def reduce_variance(self, numbers: Arrays, prefix: str = "state/") -> Self:
        """Set the width of q(f|u) from the case's method and its state, and return self."""
        residual = getattr(self.case.build()[1], "residual_variance", "prior")
        if residual == "scalar":
            self.width = 1.0 / numbers[f"{prefix}residual"][:, None]
        if residual == "diagonal":
            self.width = 1.0 / (1.0 + self.d[None] / float(self.theta.likelihood.noise_variance))
        return self

    def next_width(self, m: Floats, S: Floats, rate: float) -> Floats:
        """Return 1/v [P] after a step towards 1 + the mean of βd over the batch, which is (s/n)Σ."""
        _, _, beta = self.expectations(m, S)
        # negative β would make v > 1, a q(f|u) wider than p(f|u)
        best = 1.0 + np.maximum(np.mean(beta * self.d, axis=-1), 0.0)
        return np.asarray((1.0 - rate) / self.width[:, 0] + rate * best)

    def marginals(self, m: Floats, S: Floats) -> tuple[Floats, Floats]:
        """Return μ = Aᵀm and v = κ − diag Aᵀ(K − S)A."""
        return m @ self.A, self.kff - np.sum(self.A * ((self.K - S) @ self.A), axis=-2)

    def kl(self, m: Floats, S: Floats) -> float:
        """Return KL[N(m, S) ‖ N(0, K)], summed over latents."""
        log_ratio = np.linalg.slogdet(self.K)[1] - np.linalg.slogdet(S)[1]
        trace = np.trace(self.K_inv @ S, axis1=-2, axis2=-1)
        distance = np.sum((m @ self.K_inv) * m, axis=-1)
        return float(np.sum(0.5 * (trace + distance - m.shape[-1] + log_ratio)))

    def expectations(
        self, m: Floats, S: Floats, *, pathwise: bool = False
    ) -> tuple[Floats, Floats, Floats]:
        """Return (V, α, β) under q, including the width of q(f|u)."""
        mu, v = self.marginals(m, S)
        # var f = v·d + wᵀB⁻¹w, of which the marginals have the usual 1·d (Titsias 2025)
        v = v - (1.0 - self.width) * self.d
        parameters = self.theta.likelihood
        return expectations(
            self.likelihood, parameters, self.y, mu, v, self.noise, pathwise=pathwise
        )

    def elbo(self, m: Floats, S: Floats) -> float:
        """Return the bound s ΣV − KL, where the KL is that of u and of f given u."""
        V, _, _ = self.expectations(m, S)
        # widths of shape [] and [P, 1] count once for every datum and latent too
        ones = np.ones((len(m) if m.ndim > 1 else 1, len(self.y)))
        # ½(tr V − n − log|V|), the KL of f given u with (K − Q)^½ V (K − Q)^½ for its covariance
        kl_of_f = 0.5 * np.sum((self.width - 1.0 - np.log(self.width)) * ones)
        return float(self.scale * (V.sum() - kl_of_f) - self.kl(m, S))

    def weighted(self, beta: Floats) -> Floats:
        """Return A diag(β) Aᵀ [..., M, M]."""
        return np.asarray((self.A * beta[..., None, :]) @ self.A.T)

    def slopes(self, m: Floats, S: Floats, *, pathwise: bool = False) -> tuple[Floats, Floats]:
        """Return ∂ELBO/∂m and ∂ELBO/∂S."""
        # Bonnet and Price: ∂V/∂μ = α and ∂V/∂v = −½β; then ∂μ/∂m = a and ∂v/∂S = aaᵀ
        _, alpha, beta = self.expectations(m, S, pathwise=pathwise)
        d_m = self.scale * alpha @ self.A.T - m @ self.K_inv
        return d_m, 0.5 * (np.linalg.inv(S) - self.K_inv - self.scale * self.weighted(beta))

    def natural_step(
        self, m: Floats, S: Floats, rate: float, *, pathwise: bool = False
    ) -> tuple[Floats, Floats]:
        """Return (m, S) after a natural-gradient step."""
        return natural_gradient_step(m, S, *self.slopes(m, S, pathwise=pathwise), rate)


def natural_gradient_step(
    m: Floats, S: Floats, d_m: Floats, d_S: Floats, rate: float
) -> tuple[Floats, Floats]:
    """Return (m, S) after adding ρ ∂ELBO/∂(m, S + mmᵀ) to (S⁻¹m, −½S⁻¹).

    ρ is halved until every new S⁻¹ has positive eigenvalues.
    """
    precision: Floats = np.asarray(np.linalg.inv(S), dtype=np.float64)
    # before θ₁ moves: both parameters take the halved rate, or the step leaves the direction F⁻¹∇
    while np.linalg.eigvalsh(precision - 2 * rate * d_S).min() <= 0:
        rate = 0.5 * rate
    # with S + mmᵀ fixed S falls by m dmᵀ + dm mᵀ as m moves: hence −2(∂S)m
    theta1 = times(precision, m) + rate * (d_m - 2 * times(d_S, m))
    covariance: Floats = np.asarray(np.linalg.inv(precision - 2 * rate * d_S))
    return times(covariance, theta1), covariance


def adam_move(
    numbers: Arrays, name: str, g: Floats, rate: float, moments: str = "state/adam"
) -> Floats:
    """Return the change of a parameter by Adam's third step, from its moments after two.

    The moments are `{moments}.mean{name}` and `{moments}.square{name}`.
    """
    mean = 0.9 * numbers[f"{moments}.mean{name}"] + 0.1 * g
    square = 0.999 * numbers[f"{moments}.square{name}"] + 0.001 * g**2
    spread = np.sqrt(square / (1 - 0.999**3)) + 1e-8
    return np.asarray(rate * mean / (1 - 0.9**3) / spread)


def float_arrays(values: Mapping[str, npt.ArrayLike]) -> Arrays:
    """Return values as float64 arrays, by the same names."""
    return {name: np.asarray(x, dtype=np.float64) for name, x in values.items()}


def times(a: Floats, x: Floats) -> Floats:
    """Return A [..., k, n] times x [..., n]."""
    return np.asarray(np.einsum("...kn,...n->...k", a, x))
