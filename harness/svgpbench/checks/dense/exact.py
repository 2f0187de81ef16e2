"""Exact regression and the collapsed bound, by dense Gaussian densities."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from svgpbench.checks.cases import MatrixCase, SmallProblem, residual_variance_of
from svgpbench.checks.dense.gaussians import (
    JITTER,
    Dense,
    float_arrays,
    kernel_matrix,
    log_normal,
    sgpr_bound,
)
from svgpbench.checks.evaluate import Arrays
from svgpbench.kernels import Theta

Floats = npt.NDArray[np.float64]


def gpr_bound(theta: Theta, kernel: str, X: Floats, y: Floats) -> float:
    """Return log N(y | 0, K_ff + σ²I)."""
    noise = float(theta.likelihood.noise_variance) * np.eye(len(y))
    return log_normal(y, kernel_matrix(kernel, theta, X, X) + noise)


def gpr_arrays(case: MatrixCase, problem: SmallProblem, numbers: Arrays) -> Arrays:
    """Return the log marginal likelihood at both θ, and p(f | y) from the joint of f and y."""
    model, _ = case.build()
    theta, theta_moved = (problem.theta(model, "data", moved=x) for x in (False, True))
    X, y = problem.X, problem.y
    bound, s2 = gpr_bound(theta, case.kernel, X, y), float(theta.likelihood.noise_variance)
    K = kernel_matrix(case.kernel, theta, X, X)
    gain = K @ np.linalg.inv(K + s2 * np.eye(len(y)))
    mean, covariance = gain @ y, K - gain @ K
    variance = np.diag(covariance)
    V = -0.5 * np.log(2 * np.pi * s2) - ((y - mean) ** 2 + variance) / (2 * s2)
    return float_arrays(
        {
            "values/elbo": bound,
            "e_step/elbo": bound,
            "values/mu": mean[None],
            "values/v": variance[None],
            "values/q_mean": mean[None],
            "values/q_cov": covariance[None],
            # log p(y) = ΣV − KL at the posterior itself
            "values/kl": float(np.sum(V)) - bound,
            "gradients/objective": gpr_bound(theta_moved, case.kernel, X, y),
        }
    )


def sgpr_arrays(case: MatrixCase, problem: SmallProblem, numbers: Arrays) -> Arrays:
    """Return Titsias's bound at both θ as a dense density, and its optimal q(u)."""
    model, _ = case.build()
    theta, theta_moved = (problem.theta(model, moved=x) for x in (False, True))
    X, y, residual = problem.X, problem.y, residual_variance_of(case.method)
    dense = Dense(case, theta, X, y, 1.0)
    precision = 1.0 / float(theta.likelihood.noise_variance)
    S: Floats = np.asarray(
        np.linalg.inv(dense.K_inv + precision * dense.A @ dense.A.T), dtype=np.float64
    )
    m: Floats = np.asarray(precision * S @ dense.A @ y, dtype=np.float64)
    mu, v = dense.marginals(m, S)
    bound = sgpr_bound(theta, case.kernel, X, y, JITTER, residual)
    return float_arrays(
        {
            "values/elbo": bound,
            # a collapsed method's q is always the best: its E-step changes nothing
            "e_step/elbo": bound,
            "values/kl": dense.kl(m, S),
            "values/mu": mu[None],
            "values/v": v[None],
            "values/q_mean": m[None],
            "values/q_cov": S[None],
            "gradients/objective": sgpr_bound(theta_moved, case.kernel, X, y, JITTER, residual),
        }
    )
