"""The diagonal-precision family by dense algebra, with natural gradients by the whole Fisher matrix."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from svgpbench.checks.cases import MatrixCase, SmallProblem
from svgpbench.checks.dense.gaussians import Dense, adam_move, float_arrays, times
from svgpbench.checks.evaluate import ADAM_RATE, RATE, Arrays
from svgpbench.kernels import Theta

Floats = npt.NDArray[np.float64]


def diagonals(g: Floats) -> Floats:
    """Return the matrices diag g [P, M, M]."""
    return g[..., None] * np.eye(g.shape[-1])


def moments(K: Floats, mu: Floats, g: Floats) -> tuple[Floats, Floats]:
    """Return means Kμ [P, M] and covariances (K⁻¹ + diag g)⁻¹ [P, M, M]."""
    return mu @ K, np.asarray(np.linalg.inv(np.linalg.inv(K) + diagonals(g)), dtype=np.float64)


def slope(dense: Dense, mu: Floats, g: Floats) -> tuple[Floats, Floats]:
    """Return ∂ELBO/∂μ and ∂ELBO/∂g, each [P, M], by ∂m = K ∂μ and ∂S/∂g_k = −S e_k e_kᵀ S."""
    m, S = moments(dense.K, mu, g)
    d_m, d_S = dense.slopes(m, S)
    return d_m @ dense.K, -np.diagonal(S @ d_S @ S, axis1=-2, axis2=-1)


def natural_direction(dense: Dense, mu: Floats, g: Floats) -> tuple[Floats, Floats]:
    """Return F⁻¹∇ in (θ₁ = S⁻¹m, g), each [P, M], from each latent's whole Fisher matrix in (μ, g).

    F_ij = ∂_imᵀS⁻¹∂_jm + ½tr(S⁻¹∂_iS S⁻¹∂_jS).
    """
    means, covariances = moments(dense.K, mu, g)
    pairs = []
    for m, S, *slopes in zip(means, covariances, *slope(dense, mu, g), strict=True):
        M, precision = len(m), np.linalg.inv(S)
        dm = np.hstack([dense.K, np.zeros((M, M))])
        dS = np.concatenate([np.zeros((M, M, M)), -np.einsum("ik,kj->kij", S, S)])
        turned = precision @ dS
        fisher = dm.T @ precision @ dm + 0.5 * np.einsum("aij,bji->ab", turned, turned)
        d_mu, d_g = np.split(np.linalg.solve(fisher, np.concatenate(slopes)), 2)
        # θ₁ = S⁻¹Kμ with S⁻¹ = K⁻¹ + diag g: dθ₁ = S⁻¹K dμ + dg ∘ Kμ
        pairs.append((precision @ dense.K @ d_mu + d_g * m, d_g))
    d_theta1, d_g = (np.stack(x) for x in zip(*pairs, strict=True))
    return d_theta1, d_g


def next_moments(
    case: MatrixCase, dense: Dense, mu: Floats, g: Floats, numbers: Arrays
) -> tuple[Floats, Floats]:
    """Return mean and covariance after one E-step; its rate is halved while S⁻¹ is indefinite."""
    m, S = moments(dense.K, mu, g)
    if case.method.endswith("adam"):
        return moments(dense.K, *adam_step(dense, mu, g, numbers))
    d_m, d_S = dense.slopes(m, S)
    if " exact" in case.method:
        d_theta1, d_g = natural_direction(dense, mu, g)
    else:  # the natural gradient of a full Gaussian, of which the diagonal is used
        d_theta1 = d_m - 2 * times(d_S, m)
        d_g = -2 * np.diagonal(d_S, axis1=-2, axis2=-1)
    rate = RATE
    while np.linalg.eigvalsh(dense.K_inv + diagonals(g + rate * d_g)).min() <= 0:
        rate = 0.5 * rate
    covariance: Floats = np.asarray(np.linalg.inv(dense.K_inv + diagonals(g + rate * d_g)))
    if case.method.endswith("projected-b"):
        return m + rate * times(covariance, d_m), covariance
    theta1 = times(np.asarray(np.linalg.inv(S)), m)
    return times(covariance, theta1 + rate * d_theta1), covariance


def adam_step(dense: Dense, mu: Floats, g: Floats, numbers: Arrays) -> tuple[Floats, Floats]:
    """Return (μ, g) after Adam's next step on (μ, log(eᵍ − 1))."""
    d_mu, d_g = slope(dense, mu, g)
    # g = log(1 + eˣ) has the slope 1 − e⁻ᵍ; expm1 keeps its digits at small g
    move_mu, move_x = (
        adam_move(numbers, name, gradient, ADAM_RATE, "state/adam.moments")
        for name, gradient in ((".mu", d_mu), (".g", d_g * -np.expm1(-g)))
    )
    return mu + move_mu, np.log1p(np.exp(np.log(np.expm1(g)) + move_x))


def diagonal_arrays(case: MatrixCase, problem: SmallProblem, numbers: Arrays) -> Arrays:
    """Return the dense arrays at the (μ, g) that the numpy backend reached."""
    model, _ = case.build()
    y, n = problem.targets(model.likelihood.support), len(problem.X)

    def dense(theta: Theta, rows: npt.NDArray[np.int64]) -> Dense:
        noise = problem.noise(model, rows)
        return Dense(case, theta, problem.X[rows], y[rows], n / len(rows), noise)

    theta, theta_moved = problem.theta(model), problem.theta(model, moved=True)
    mu, g = numbers["state/mu"], numbers["state/g"]
    at_first, step = (dense(theta, problem.batches[i]) for i in (0, 2))
    m, S = moments(at_first.K, mu, g)
    mean, variance = at_first.marginals(m, S)
    next_mean, next_covariance = next_moments(case, step, mu, g, numbers)
    new = dense(theta_moved, np.arange(n))
    new_moments = moments(new.K, mu, g)
    if case.method.endswith("tied-projected"):  # S⁻¹m and g are held
        theta1 = times(np.asarray(np.linalg.inv(S)), m)
        new_moments = (
            times(np.asarray(np.linalg.inv(new.K_inv + diagonals(g))), theta1),
            new_moments[1],
        )
    out: dict[str, npt.ArrayLike] = {
        "values/elbo": at_first.elbo(m, S),
        "values/kl": at_first.kl(m, S),
        "values/mu": mean,
        "values/v": variance,
        "values/q_mean": m,
        "values/q_cov": S,
        "e_step/q_mean": next_mean,
        "e_step/q_cov": next_covariance,
        "gradients/objective": new.elbo(*new_moments),
    }
    return float_arrays(out)
