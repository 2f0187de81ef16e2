"""The diagonal-precision family by dense algebra: its natural gradient from the whole Fisher matrix."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from svgpbench.checks.cases import Case, Problem
from svgpbench.checks.dense.gaussians import Dense
from svgpbench.checks.evaluate import ADAM_RATE, RATE, Arrays

Floats = npt.NDArray[np.float64]


def moments(K: Floats, mu: Floats, g: Floats) -> tuple[Floats, Floats]:
    """Mean Kμ and covariance (K⁻¹ + diag g)⁻¹."""
    return K @ mu, np.asarray(np.linalg.inv(np.linalg.inv(K) + np.diag(g)), dtype=np.float64)


def jacobian(K: Floats, S: Floats) -> tuple[Floats, Floats]:
    """∂m [M, 2M] and ∂S [2M, M, M] in (μ, g): ∂S/∂g_k = −S e_k e_kᵀ S."""
    zeros = np.zeros((len(K), len(K), len(K)))
    return np.hstack([K, 0 * K]), np.concatenate([zeros, -np.einsum("ik,kj->kij", S, S)])


def slope(at: Dense, mu: Floats, g: Floats) -> Floats:
    """∂ELBO/∂(μ, g) [2M], by the chain rule from ∂m and ∂S."""
    m, S = moments(at.K, mu, g)
    (d_m, d_S), (dm, dS) = at.slopes(m, S), jacobian(at.K, S)
    return np.asarray(dm.T @ d_m + np.einsum("kij,ij->k", dS, d_S))


def natural_direction(at: Dense, mu: Floats, g: Floats) -> tuple[Floats, Floats]:
    """F⁻¹∇ in (θ₁ = S⁻¹m, g), each [M], from F_ij = ∂_imᵀS⁻¹∂_jm + ½tr(S⁻¹∂_iS S⁻¹∂_jS) in (μ, g)."""
    m, S = moments(at.K, mu, g)
    precision, (dm, dS) = np.linalg.inv(S), jacobian(at.K, S)
    turned = precision @ dS
    fisher = dm.T @ precision @ dm + 0.5 * np.einsum("aij,bji->ab", turned, turned)
    d_mu, d_g = np.split(np.linalg.solve(fisher, slope(at, mu, g)), 2)
    return precision @ at.K @ d_mu + d_g * m, d_g


def next_moments(
    case: Case, at: Dense, mu: Floats, g: Floats, numbers: Arrays
) -> tuple[Floats, Floats]:
    """Mean and covariance after one E-step at the checks' own rate."""
    m, S = moments(at.K, mu, g)
    if case.method.endswith("adam"):
        return moments(at.K, *adam_step(at, mu, g, numbers))
    if " exact" in case.method:
        d_theta1, d_g = natural_direction(at, mu, g)
        covariance = np.linalg.inv(at.K_inv + np.diag(g + RATE * d_g))
        return covariance @ (np.linalg.solve(S, m) + RATE * d_theta1), covariance
    mean, full = at.natural_step(m, S, RATE)  # of all Gaussians
    precision = np.linalg.inv(full)
    covariance = np.linalg.inv(at.K_inv + np.diag(np.diag(precision - at.K_inv)))
    if case.method.endswith("projected-a"):
        return covariance @ precision @ mean, covariance
    return m + RATE * covariance @ at.slopes(m, S)[0], covariance


def adam_step(at: Dense, mu: Floats, g: Floats, numbers: Arrays) -> tuple[Floats, Floats]:
    """(μ, g) after Adam's next step on (μ, log(eᵍ − 1))."""

    def stored(name: str) -> Floats:
        pair = [numbers[f"state/adam.moments.{name}.{part}"][0] for part in ("mu", "g")]
        return np.concatenate(pair)

    chain = np.concatenate([np.ones_like(mu), -np.expm1(-g)])
    gradient = slope(at, mu, g) * chain
    mean, square = 0.9 * stored("mean") + 0.1 * gradient, 0.999 * stored("square")
    square = square + 0.001 * gradient**2
    step = mean / (1 - 0.9**3) / (np.sqrt(square / (1 - 0.999**3)) + 1e-8)
    d_mu, d_raw = np.split(ADAM_RATE * step, 2)
    return mu + d_mu, np.log1p(np.exp(np.log(np.expm1(g)) + d_raw))


def diagonal_arrays(case: Case, problem: Problem, numbers: Arrays) -> Arrays:
    """What dense algebra says of the (μ, g) that the numpy backend reached."""
    model, _ = case.build()
    y, n = problem.targets(model.likelihood.support), len(problem.X)
    theta, moved = problem.theta(model), problem.theta(model, moved=True)
    first, third = problem.batches[0], problem.batches[2]
    mu, g = numbers["state/mu"][0], numbers["state/g"][0]
    at = Dense(case, theta, problem.X[first], y[first], n / len(first))
    m, S = moments(at.K, mu, g)
    mean, variance = at.marginals(m, S)
    step = Dense(case, theta, problem.X[third], y[third], n / len(third))
    next_mean, next_covariance = next_moments(case, step, mu, g, numbers)
    new = Dense(case, moved, problem.X, y, 1.0)
    held = moments(new.K, mu, g)
    if case.method.endswith("tied-projected"):  # S⁻¹m and g
        held = np.linalg.inv(new.K_inv + np.diag(g)) @ np.linalg.solve(S, m), held[1]
    out: dict[str, npt.ArrayLike] = {
        "values/elbo": at.elbo(m, S),
        "values/kl": at.kl(m, S),
        "values/mu": mean[None],
        "values/v": variance[None],
        "values/q_mean": m[None],
        "values/q_cov": S[None],
        "e_step/q_mean": next_mean[None],
        "e_step/q_cov": next_covariance[None],
        "gradients/objective": new.elbo(*held),
    }
    return {k: np.asarray(x, dtype=np.float64) for k, x in out.items()}
