"""The families with two bases, as dense Gaussians on the union of all basis points."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from svgpbench.backends import load_backend
from svgpbench.checks.cases import MatrixCase, SmallProblem
from svgpbench.checks.dense.gaussians import NO_NOISE, Dense, adam_move, float_arrays
from svgpbench.checks.evaluate import ADAM_RATE, Arrays
from svgpbench.kernels import Theta

Floats = npt.NDArray[np.float64]


class Union(Dense):
    """A dense q of the variables at γ, then β, with a quadratic at γ that may be sampled.

    `basis_points` are the sampled points of γ; None means all.
    """

    def __init__(
        self,
        case: MatrixCase,
        theta: Theta,
        X: Floats,
        y: Floats,
        scale: float,
        noise: Floats = NO_NOISE,
        basis_points: npt.NDArray[np.int64] | None = None,
    ) -> None:
        points = np.concatenate([theta.inducing.gamma, theta.inducing.beta])
        super().__init__(case, theta._replace(inducing=points), X, y, scale, noise)
        self.size = len(theta.inducing.gamma)  # number of points of γ
        self.bases, self.basis_points = theta, basis_points
        K_bx = self.Kuf[self.size :]  # variance of f_i given β; γ affects the mean alone
        K_beta = self.K[self.size :, self.size :]
        self.d = self.kff - np.sum(K_bx * np.linalg.solve(K_beta, K_bx), axis=0)

    def decoupled(self, a: Floats, L_B: Floats) -> tuple[Floats, Floats]:
        """Return mean K_·α a and covariance (K⁻¹ + B at β)⁻¹ (Cheng and Boots 2017, Eq. 7)."""
        # given u_β the rest keeps the prior's conditional: only β's block of the precision changes
        precision = np.tile(self.K_inv, (len(a), 1, 1))
        precision[:, self.size :, self.size :] += L_B @ np.swapaxes(L_B, -1, -2)
        return a @ self.K[: self.size], np.asarray(np.linalg.inv(precision))

    def sampled_excess(self, a: Floats) -> Floats:
        """Return the sampled estimate of K_γ a minus K_γ a; the jitter is not sampled."""
        if self.basis_points is None:
            return np.zeros_like(a)
        plain = self.K[: self.size, : self.size] - 1e-6 * np.eye(self.size)
        # (M/r)K[:, R]a_R − Ka as one product; the sampled points are distinct, so += counts each
        weights = np.full(self.size, -1.0)
        weights[self.basis_points] += self.size / len(self.basis_points)
        return np.asarray((weights * a) @ plain)

    def sampled_elbo(self, a: Floats, m: Floats, S: Floats) -> float:
        """Return the bound with the sampled estimate of γ's quadratic."""
        return self.elbo(m, S) - 0.5 * float(np.sum(a * self.sampled_excess(a)))


def at_batches(case: MatrixCase, problem: SmallProblem) -> tuple[Union, Union, Union]:
    """Return the unions of the first and third minibatches at θ, and of all rows at the moved θ."""
    model, method = case.build()
    y, n = problem.targets(model.likelihood.support), len(problem.X)

    def union(rows: npt.NDArray[np.int64], theta: Theta) -> Union:
        inputs = problem.random_inputs(load_backend("numpy"), model, method, rows)
        noise, points = inputs.get("noise", NO_NOISE), inputs.get("basis_points")
        return Union(case, theta, problem.X[rows], y[rows], n / len(rows), noise, points)

    theta_now = problem.theta(model, method.basis)
    theta_moved = problem.theta(model, method.basis, moved=True)
    first, third = problem.batches[0], problem.batches[2]
    return union(first, theta_now), union(third, theta_now), union(np.arange(n), theta_moved)


def decoupled_arrays(case: MatrixCase, problem: SmallProblem, numbers: Arrays) -> Arrays:
    """Return DECOUPLED's values, a step, and the bound at another θ with a and B fixed."""
    at_first, step, new = at_batches(case, problem)
    a, L_B = numbers["state/q.a"], numbers["state/q.L_B"]
    out = values(at_first, a, *at_first.decoupled(a, L_B))
    m, S = step.decoupled(a, L_B)
    d_m, d_S = step.slopes(m, S)
    # m = K_·γ a, and ∂m has the KL's exact quadratic, in whose place the sampled one comes
    g_a = d_m @ step.K[:, : step.size] - step.sampled_excess(a)
    # dS = −S dB S at β, and B = L_B L_Bᵀ, so that ∂L_B = 2 ∂B L_B
    g_L = np.tril(-2.0 * (S @ d_S @ S)[:, step.size :, step.size :] @ L_B)
    if case.method.endswith("sgd"):
        move_a, move_L = ADAM_RATE * g_a, ADAM_RATE * g_L
    else:
        move_a = adam_move(numbers, ".a", g_a, ADAM_RATE)
        move_L = adam_move(numbers, ".L_B", g_L, ADAM_RATE)
    m, S = step.decoupled(a + move_a, L_B + move_L)
    out |= {"e_step/q_mean": m[:, step.size :]}
    out |= {"e_step/q_cov": S[:, step.size :, step.size :]}
    out["gradients/objective"] = np.asarray(new.sampled_elbo(a, *new.decoupled(a, L_B)))
    return out


def values(union: Union, a: Floats, m: Floats, S: Floats) -> Arrays:
    """Return the bound, the KL, the marginals and q at β."""
    mu, v = union.marginals(m, S)
    arrays: dict[str, npt.ArrayLike] = {
        "values/elbo": union.sampled_elbo(a, m, S),
        "values/kl": union.kl(m, S) + 0.5 * float(np.sum(a * union.sampled_excess(a))),
        "values/mu": mu,
        "values/v": v,
        "values/q_mean": m[:, union.size :],
        "values/q_cov": S[:, union.size :, union.size :],
    }
    return float_arrays(arrays)
