"""The coupled families, t-SVGP and q-SVGP, and their full-n counterparts, by dense algebra."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from svgpbench.checks.cases import Case, Problem
from svgpbench.checks.dense.gaussians import JITTER, Dense
from svgpbench.checks.evaluate import RATE, Arrays

Floats = npt.NDArray[np.float64]


def tied(case: Case, old: Dense, new: Dense, numbers: Arrays) -> tuple[Floats, Floats]:
    """q(u) at the new θ with what the case's tying holds fixed."""
    m, S = numbers["values/q_mean"][0], numbers["values/q_cov"][0]
    T1, T2 = np.linalg.solve(S, m), np.linalg.inv(S) - old.K_inv
    tying = case.method.removeprefix("t-svgp ")
    if (sites := sites_of(numbers)) is not None:
        lambda1, beta = sites
        if case.likelihood == "gaussian":  # sites per unit precision
            ratio = float(old.theta.likelihood.noise_variance) / float(
                new.theta.likelihood.noise_variance
            )
            lambda1, beta = lambda1 * ratio, beta * ratio
        T1, T2 = new.A @ lambda1, (new.A * beta) @ new.A.T
    elif tying == "tied":
        T1 = new.K_inv @ old.K @ T1
        T2 = new.K_inv @ old.K @ T2 @ old.K @ new.K_inv
    elif tying == "standard" or "unwhitened" in case.method:
        return m, S
    elif tying == "whitened" or case.method.startswith(("q-svgp", "q-vgp")):
        turn = np.linalg.cholesky(new.K) @ np.linalg.inv(np.linalg.cholesky(old.K))
        return turn @ m, turn @ S @ turn.T
    covariance: Floats = np.linalg.inv(new.K_inv + T2)
    return covariance @ T1, covariance


def sites_of(numbers: Arrays) -> tuple[Floats, Floats] | None:
    """(λ₁, β) of every datum, where the state keeps them."""
    for prefix in ("state/sites.", "state/"):  # t-SVGP untied, t-VGP
        if f"{prefix}beta" in numbers:
            return numbers[f"{prefix}lambda1"][0], numbers[f"{prefix}beta"][0]
    return None


def coupled_arrays(case: Case, problem: Problem, numbers: Arrays) -> Arrays:
    """What dense algebra says of the state that the numpy backend reached."""
    model, method = case.build()
    jitter = 0.0 if case.method.startswith("t-vgp") else JITTER
    y, n = problem.targets(model.likelihood.support), len(problem.X)
    theta, moved = (problem.theta(model, method.basis, moved=x) for x in (False, True))
    first, third = problem.batches[0], problem.batches[2]
    scale = n / len(first)
    at = Dense(case, theta, problem.X[first], y[first], scale, jitter)
    m, S = numbers["values/q_mean"][0], numbers["values/q_cov"][0]
    mu, v = at.marginals(m, S)
    out: dict[str, npt.ArrayLike] = {
        "values/elbo": at.elbo(m, S),
        "values/kl": at.kl(m, S),
        "values/mu": mu[None],
        "values/v": v[None],
    }
    if "adam" not in case.method:
        step = Dense(case, theta, problem.X[third], y[third], scale, jitter)
        mean, covariance = step.natural_step(m, S, RATE)
        out |= {"e_step/q_mean": mean[None], "e_step/q_cov": covariance[None]}
    old = Dense(case, theta, problem.X, y, 1.0, jitter)
    if (sites := sites_of(numbers)) is not None:  # the sums over all sites are the state itself
        lambda1, beta = sites
        covariance = np.asarray(
            np.linalg.inv(old.K_inv + (old.A * beta) @ old.A.T), dtype=np.float64
        )
        out |= {"values/q_mean": (covariance @ old.A @ lambda1)[None]}
        out |= {"values/q_cov": covariance[None]}
    new = Dense(case, moved, problem.X, y, 1.0, jitter)
    out["gradients/objective"] = new.elbo(*tied(case, old, new, numbers))
    return {k: np.asarray(x, dtype=np.float64) for k, x in out.items()}
