"""R-SVGP by dense algebra; its steps on B by the whole Fisher matrix of N(0, BBᵀ)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from svgpbench.checks.cases import VARIANTS, MatrixCase, SmallProblem
from svgpbench.checks.dense.diagonal import diagonals
from svgpbench.checks.dense.gaussians import Dense, adam_move, float_arrays, times
from svgpbench.checks.evaluate import ADAM_RATE, Arrays
from svgpbench.kernels import Theta

Floats = npt.NDArray[np.float64]


class Relaxed:
    """The bound and its slopes at one θ and batch, for parameters a and s, and a matrix T held."""

    def __init__(self, dense: Dense, precondition: bool, a: Floats, s: Floats, T: Floats) -> None:
        self.dense, self.precondition, self.a, self.s, self.T = dense, precondition, a, s, T
        self.K_s: Floats = dense.K + diagonals(s)
        self.R: Floats = 2.0 * T - T @ self.K_s @ T
        self.mu = times(self.R, a) if precondition else a
        self.m = self.mu @ dense.K
        self.S: Floats = dense.K - dense.K @ self.R @ dense.K

    def kl(self) -> float:
        """Return ½(μᵀKμ − tr RK + tr K̃T − M − log|T| − Σ log s), summed over latents."""
        traces = np.sum(self.K_s * self.T) - np.sum(self.R * self.dense.K) - self.a.size
        logs = np.sum(np.linalg.slogdet(self.T)[1]) + np.sum(np.log(self.s))
        return float(0.5 * (np.sum(self.m * self.mu) + traces - logs))

    def bound(self) -> float:
        """Return s ΣV less `kl`."""
        own = self.dense.kl(self.m, self.S)
        return self.dense.elbo(self.m, self.S) + own - self.kl()

    def slopes(self) -> tuple[Floats, Floats]:
        """Return the bound's slopes in a and s, each [P, M], with T held."""
        K, K_inv, T = self.dense.K, self.dense.K_inv, self.T
        d_m, d_S = self.dense.slopes(self.m, self.S)
        # of the data term alone: less the slopes of −KL[N(m, S) ‖ N(0, K)]
        d_m, d_S = d_m + self.m @ K_inv, d_S - 0.5 * (np.linalg.inv(self.S) - K_inv)
        d_mu = d_m @ K - self.m  # in μ, where m = Kμ and the divergence has ½μᵀKμ
        # ∂R/∂s_k = −T e_k e_kᵀ T, so that ∂S/∂s_k = K T e_k e_kᵀ T K
        of_S = np.diagonal(T @ K @ d_S @ K @ T, axis1=-2, axis2=-1)
        of_traces = np.diagonal(T @ K @ T + T, axis1=-2, axis2=-1)
        d_s = of_S - 0.5 * (of_traces - 1.0 / self.s)
        if self.precondition:
            d_s = d_s - times(T, self.a) * times(T, d_mu)
            d_mu = times(self.R, d_mu)
        return d_mu, d_s


def natural_direction(A: Floats, B: Floats) -> Floats:
    """Return F⁻¹∇ in the lower triangle of B [M, M], of KL[N(0, BBᵀ) ‖ N(0, A⁻¹)].

    F_ij = ½tr(Σ⁻¹∂_iΣ Σ⁻¹∂_jΣ) with Σ = BBᵀ; the gradient is the lower triangle of AB − B⁻ᵀ.
    """
    M = len(A)
    rows, columns = np.tril_indices(M)
    moves = np.zeros((len(rows), M, M))
    moves[np.arange(len(rows)), rows, columns] = 1.0
    turned = np.linalg.inv(B @ B.T) @ (moves @ B.T + B @ np.swapaxes(moves, -1, -2))
    fisher = 0.5 * np.einsum("aij,bji->ab", turned, turned)
    direction = np.zeros((M, M))
    gradient = (A @ B - np.linalg.inv(B).T)[rows, columns]
    direction[rows, columns] = np.linalg.solve(fisher, gradient)
    return direction


def found_factor(case: MatrixCase, K_s: Floats, B: Floats) -> Floats:
    """Return B [P, M, M] after an E-step's steps on it, or the factor of the inverse."""
    options = VARIANTS[case.method][1]
    if options.get("inverse") == "cholesky":
        return np.asarray(np.linalg.cholesky(np.linalg.inv(K_s)))
    tolerance, M = options.get("tolerance", 1e-3), B.shape[-1]
    rising = np.logspace(-5.0, 0.0, 10) if options.get("schedule") == "log-linear" else np.ones(1)
    for step in range(100):
        errors = np.swapaxes(B, -1, -2) @ K_s @ B - np.eye(M)
        if np.max(np.sum(errors**2, axis=(-2, -1))) <= M * tolerance**2:
            break
        rate = rising[min(step, len(rising) - 1)]
        B = np.stack([b - rate * natural_direction(A, b) for A, b in zip(K_s, B, strict=True)])
    return B


def relaxed_arrays(case: MatrixCase, problem: SmallProblem, numbers: Arrays) -> Arrays:
    """Return the dense arrays at the state that the numpy backend reached."""
    model, _ = case.build()
    y, n = problem.targets(model.likelihood.support), len(problem.X)
    precondition = VARIANTS[case.method][1].get("precondition", True)
    a, raw_s, B = (numbers[f"state/{x}"] for x in ("moved.a", "moved.raw_s", "B"))
    s = np.logaddexp(0.0, raw_s)

    def dense(theta: Theta, rows: npt.NDArray[np.int64]) -> Dense:
        noise = problem.noise(model, rows)
        return Dense(case, theta, problem.X[rows], y[rows], n / len(rows), noise)

    def relaxed(dense: Dense, B: Floats, a: Floats = a, s: Floats = s) -> Relaxed:
        return Relaxed(dense, precondition, a, s, B @ np.swapaxes(B, -1, -2))

    theta, theta_moved = problem.theta(model), problem.theta(model, moved=True)
    now = relaxed(dense(theta, problem.batches[0]), B)
    found = found_factor(case, now.K_s, B)
    step = relaxed(dense(theta, problem.batches[2]), found)
    d_a, d_s = step.slopes()
    new_a = a + adam_move(numbers, ".a", d_a, ADAM_RATE)
    # softplus has the slope 1 − e⁻ˢ; expm1 keeps its digits at small s
    new_raw = raw_s + adam_move(numbers, ".raw_s", d_s * -np.expm1(-s), ADAM_RATE)
    after = relaxed(step.dense, found, new_a, np.logaddexp(0.0, new_raw))
    # an M-step finds T at the old θ
    new = relaxed(dense(theta_moved, np.arange(n)), found)
    mean, variance = now.dense.marginals(now.m, now.S)
    out: dict[str, npt.ArrayLike] = {
        "values/elbo": now.bound(),
        "values/kl": now.kl(),
        "values/mu": mean,
        "values/v": variance,
        "values/q_mean": now.m,
        "values/q_cov": now.S,
        "e_step/q_mean": after.m,
        "e_step/q_cov": after.S,
        "gradients/objective": new.bound(),
    }
    return float_arrays(out)
