"""ORTH and HYBRID, as dense Gaussians on the union of both bases."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from svgpbench.checks.cases import MatrixCase, SmallProblem
from svgpbench.checks.dense.coupled import tied
from svgpbench.checks.dense.decoupled import Union, at_batches, values
from svgpbench.checks.dense.gaussians import Dense, adam_move, natural_gradient_step
from svgpbench.checks.evaluate import RATE, Arrays
from svgpbench.methods.orthogonal import OrthogonalSVGP

Floats = npt.NDArray[np.float64]


class TwoPart:
    """Linear maps of both parts into the union: mean T a + R m_β, covariance K + R(S − K_β)Rᵀ."""

    def __init__(self, union: Union, *, orthogonal: bool) -> None:
        self.union, size = union, union.size
        self.K_beta = union.K[size:, size:]
        self.R: Floats = union.K[:, size:] @ np.linalg.inv(self.K_beta)  # [M_γ + M_β, M_β]
        self.T: Floats = union.K[:, :size].copy()  # [M_γ + M_β, M_γ]
        if orthogonal:
            self.T -= self.R @ union.K[size:, :size]

    def q(self, a: Floats, m: Floats, S: Floats) -> tuple[Floats, Floats]:
        """Return mean and covariance on the union."""
        return a @ self.T.T + m @ self.R.T, self.union.K + self.R @ (S - self.K_beta) @ self.R.T

    def beta_step(self, a: Floats, m: Floats, S: Floats) -> tuple[Floats, Floats]:
        """Return (m_β, S) after a natural-gradient step with a fixed."""
        d_m, d_S = self.union.slopes(*self.q(a, m, S))
        return natural_gradient_step(m, S, d_m @ self.R, self.R.T @ d_S @ self.R, RATE)

    def gamma_step(
        self, method: OrthogonalSVGP, numbers: Arrays, a: Floats, m: Floats, S: Floats
    ) -> Floats:
        """Return the new a, from the gradient and the curvature of the bound in a."""
        u, q = self.union, self.q(a, m, S)
        g = u.slopes(*q)[0] @ self.T - u.sampled_excess(a)
        rate = method.gamma_rate or RATE
        # the quadratic of the KL in a: D_γ for ORTH, K_γ for HYBRID
        D = self.T.T @ u.K_inv @ self.T
        if method.gamma_step == "adam":
            return a + adam_move(numbers, "", g, rate)
        if method.gamma_step == "scaled":
            return np.asarray(a + rate * g / np.diag(D))
        if method.gamma_step == "newton":
            # negative β could make the curvature indefinite, and the step go downhill
            _, _, beta = u.expectations(*q)
            D = D + u.scale * self.T.T @ u.weighted(np.maximum(beta, 0.0)) @ self.T
        return np.asarray(a + rate * np.linalg.solve(D, g[..., None])[..., 0])


def two_part_arrays(case: MatrixCase, problem: SmallProblem, numbers: Arrays) -> Arrays:
    """Return the state's values, a step if β moves by a natural gradient, and the bound at another θ."""
    model, method = case.build()
    assert isinstance(method, OrthogonalSVGP)
    orthogonal = method.name == "orth"
    first, third, all_moved = (
        union.reduce_variance(numbers, "state/coupled.") for union in at_batches(case, problem)
    )
    at_first, step, new = (TwoPart(u, orthogonal=orthogonal) for u in (first, third, all_moved))
    a, m, S = (numbers[k] for k in ("state/a", "values/q_mean", "values/q_cov"))
    if not orthogonal:  # the mean at β is not m_β
        m = m - a @ first.K[: first.size, first.size :]
    out = values(first, a, *at_first.q(a, m, S))
    if "q-svgp adam" not in method.coupled:
        m1, S1 = step.beta_step(a, m, S)
        if "state/coupled.residual" in numbers:  # γ moves after the width
            step.union.width = 1.0 / step.union.next_width(*step.q(a, m, S), RATE)[:, None]
        mean, cov = at_first.q(step.gamma_step(method, numbers, a, m1, S1), m1, S1)
        mu, v = first.marginals(mean, cov)
        out |= {"e_step/mu": mu, "e_step/v": v, "e_step/q_mean": mean[:, first.size :]}
    old_beta, new_beta = (
        Dense(case, t._replace(inducing=t.inducing.beta), problem.X, all_moved.y, 1.0)
        for t in (problem.theta(model, method.basis), all_moved.bases)
    )
    coupled = MatrixCase(method.coupled, case.likelihood, case.kernel)
    fixed = {**numbers, "values/q_mean": m}
    q = new.q(a, *tied(coupled, old_beta, new_beta, fixed))
    out["gradients/objective"] = np.asarray(all_moved.sampled_elbo(a, *q))
    return out
