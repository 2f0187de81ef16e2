"""The coupled families, t-SVGP and q-SVGP, and their full-n counterparts, by dense algebra."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from svgpbench.checks.cases import MatrixCase, SmallProblem
from svgpbench.checks.dense.gaussians import JITTER, Dense, float_arrays, times
from svgpbench.checks.evaluate import RATE, Arrays
from svgpbench.kernels import Theta

Floats = npt.NDArray[np.float64]


def tied(case: MatrixCase, old: Dense, new: Dense, numbers: Arrays) -> tuple[Floats, Floats]:
    """Return q(u) at the new θ, with the quantities fixed that the case's tying holds.

    The means are [P, M] and the covariances [P, M, M].
    """
    m, S = numbers["values/q_mean"], numbers["values/q_cov"]
    precision: Floats = np.asarray(np.linalg.inv(S), dtype=np.float64)
    # a difference of inverses loses the digits of cond K, one or two in the check's problem
    T1, T2 = times(precision, m), precision - old.K_inv
    tying = case.method.removeprefix("t-svgp ")
    if (sites := sites_of(numbers)) is not None:
        lambda1, beta = sites
        if case.likelihood == "gaussian":  # sites are held per unit of noise precision
            ratio = float(old.theta.likelihood.noise_variance) / float(
                new.theta.likelihood.noise_variance
            )
            lambda1, beta = lambda1 * ratio, beta * ratio
        T1, T2 = lambda1 @ new.A.T, new.weighted(beta)
    # λ̄₁ and Λ̄₂ are held: T₁ = K⁻¹λ̄₁ and T₂ = K⁻¹Λ̄₂K⁻¹ follow the new K
    elif tying == "tied":
        T1 = T1 @ old.K @ new.K_inv
        T2 = new.K_inv @ old.K @ T2 @ old.K @ new.K_inv
    elif tying == "standard" or "unwhitened" in case.method:
        return m, S
    # v = L⁻¹u is held, so that u = Lv turns by L_new L_old⁻¹
    elif tying == "whitened" or case.method.startswith(("q-svgp", "q-vgp")):
        turn = np.linalg.cholesky(new.K) @ np.linalg.inv(np.linalg.cholesky(old.K))
        return m @ turn.T, turn @ S @ turn.T
    covariance: Floats = np.linalg.inv(new.K_inv + T2)
    return times(covariance, T1), covariance


def sites_of(numbers: Arrays) -> tuple[Floats, Floats] | None:
    """Return (λ₁, β) of every datum, or None if the state does not keep them."""
    for prefix in ("state/sites.", "state/"):  # t-SVGP untied, t-VGP
        if f"{prefix}beta" in numbers:
            return numbers[f"{prefix}lambda1"], numbers[f"{prefix}beta"]
    return None


def coupled_arrays(case: MatrixCase, problem: SmallProblem, numbers: Arrays) -> Arrays:
    """Return the dense arrays at the state that the numpy backend reached."""
    model, method = case.build()
    # t-VGP factorises I + D^½KD^½ alone, which needs none; q-VGP factorises K
    jitter = 0.0 if case.method.startswith("t-vgp") else JITTER
    y, n = problem.targets(model.likelihood.support), len(problem.X)

    def dense(theta: Theta, rows: npt.NDArray[np.int64]) -> Dense:
        noise = problem.noise(model, rows)
        gaussian = Dense(case, theta, problem.X[rows], y[rows], n / len(rows), noise, jitter)
        return gaussian.reduce_variance(numbers)

    theta, theta_moved = (problem.theta(model, method.basis, moved=x) for x in (False, True))
    first, third, all_rows = problem.batches[0], problem.batches[2], np.arange(n)
    at_first = dense(theta, first)
    m, S = numbers["values/q_mean"], numbers["values/q_cov"]
    mu, v = at_first.marginals(m, S)
    out: dict[str, npt.ArrayLike] = {
        "values/elbo": at_first.elbo(m, S),
        "values/kl": at_first.kl(m, S),
        "values/mu": mu,
        "values/v": v,
    }
    if "adam" not in case.method:
        # autodiff of a sampled V̂ takes its own slope in v, so its step differs from the closed form
        pathwise = "autodiff" in case.method
        step = dense(theta, third)
        mean, covariance = step.natural_step(m, S, RATE, pathwise=pathwise)
        out |= {"e_step/q_mean": mean, "e_step/q_cov": covariance}
        if "state/residual" in numbers:
            next_residual = {"state/residual": step.next_width(m, S, RATE)}
            out["e_step/elbo"] = (
                dense(theta, first).reduce_variance(next_residual).elbo(mean, covariance)
            )
    old = dense(theta, all_rows)
    if (sites := sites_of(numbers)) is not None:  # q(u) follows from the sums over all sites
        lambda1, beta = sites
        q_cov: Floats = np.asarray(np.linalg.inv(old.K_inv + old.weighted(beta)), np.float64)
        out |= {"values/q_mean": times(q_cov, lambda1 @ old.A.T), "values/q_cov": q_cov}
    new = dense(theta_moved, all_rows)
    out["gradients/objective"] = new.elbo(*tied(case, old, new, numbers))
    return float_arrays(out)
