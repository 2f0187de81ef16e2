"""Two bases: decoupled (Cheng and Boots 2017), orthogonal and hybrid (Salimbeni et al. 2018b).

Where a method samples r columns R of the mean's K, K a is estimated by (M/r)K[:, R]a_R; the jitter is
never sampled.
"""

from __future__ import annotations

from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd import grad

from program.adam import Adam
from program.coupled import Coupled
from program.draws import Batch
from program.gaussians import Family, transposed
from program.kernels import Kernel
from program.likelihoods import Likelihood
from program.parameters import Table

START = 1e-3  # of the decoupled covariance's factor, and of its new entries on a larger basis


def bases_of(theta: Table) -> tuple[Any, Any]:
    """Return the bases of mean and covariance."""
    if "Z_widths" in theta:
        return (theta["gamma"], theta["gamma_widths"]), (theta["Z"], theta["Z_widths"])
    return theta["gamma"], theta["Z"]


def product(kernel: Kernel, theta: Table, basis: Any, a: Any, columns: Any) -> Any:
    """Return (K + jitter·I)a [P, M], or its estimate from columns of K."""
    if columns is None:
        return a @ kernel.square(theta, basis)
    some = tuple(x[columns] for x in basis) if isinstance(basis, tuple) else basis[columns]
    K = kernel.cross(theta, basis, some)
    return K.shape[0] / K.shape[1] * (a[:, columns] @ K.T) + kernel.jitter * a


class Decoupled(Family):
    """m(x) = k_xα a, v(x) = κ − k_xβ(B⁻¹ + K_β)⁻¹k_βx with B = L_B L_Bᵀ; coordinates (a, L_B)."""

    def __init__(
        self, kernel: Kernel, likelihood: Likelihood, *, subset: int, adam: bool = True
    ) -> None:
        super().__init__(kernel, likelihood)
        self.subset, self.adam = subset, adam

    def start(self, theta: Table, n: int) -> Table:
        P, M = self.likelihood.latents, len(theta["Z"])
        x = {"a": np.zeros((P, len(theta["gamma"]))), "L_B": np.stack([START * np.eye(M)] * P)}
        return {"x": x, "adam": Adam(x)}

    def q(self, theta: Table, x: Any) -> Any:
        """Return a, C = L_B H⁻¹L_Bᵀ and H = I + L_BᵀK_βL_B."""
        L_B = anp.tril(x["L_B"])
        K = self.kernel.square(theta, bases_of(theta)[1])
        H = np.eye(len(K)) + transposed(L_B) @ K @ L_B
        return x["a"], L_B @ anp.linalg.inv(H) @ transposed(L_B), H

    def marginals(self, theta: Table, q: Any, X: Any) -> tuple[Any, Any]:
        a, C, _ = q
        alpha, beta = (self.kernel.cross(theta, basis, X) for basis in bases_of(theta))
        return a @ alpha, theta["variance"] - anp.sum(beta * (C @ beta), axis=-2)

    def kl(self, theta: Table, q: Any, columns: Any = None) -> Any:
        """Return ½aᵀK_αa + ½log|H| − ½tr(K_βC) (Cheng and Boots 2017, Eq. 9)."""
        a = q[0]
        estimate = product(self.kernel, theta, bases_of(theta)[0], a, columns)
        return 0.5 * anp.sum(a * estimate) + self._kl_of_covariance(theta, q)

    def _kl_of_covariance(self, theta: Table, q: Any) -> Any:
        _, C, H = q
        K = self.kernel.square(theta, bases_of(theta)[1])
        return 0.5 * (anp.sum(anp.linalg.slogdet(H)[1]) - anp.sum(K * C))

    def gradient(self, theta: Table, x: Any, batch: Batch, scale: float) -> Any:
        """Return the bound's gradient, in which the estimate of K_αa is itself that of ½aᵀK_αa."""
        _, alpha, beta = self.slopes(theta, x, batch)
        pull = product(self.kernel, theta, bases_of(theta)[0], x["a"], batch.columns)

        def linearised(x: Any) -> Any:
            q = self.q(theta, x)
            mu, v = self.marginals(theta, q, batch.X)
            kl = anp.sum(x["a"] * pull) + self._kl_of_covariance(theta, q)
            return scale * anp.sum(alpha * mu - 0.5 * beta * v) - kl

        return grad(linearised)(x)

    def e_step(self, theta: Table, state: Table, batch: Batch, rate: float, scale: float) -> Table:
        if self.adam:
            return super().e_step(theta, state, batch, rate, scale)
        x, gradient = state["x"], self.gradient(theta, state["x"], batch, scale)
        return {**state, "x": {name: x[name] + rate * gradient[name] for name in x}}

    def grown(self, theta: Table, state: Table) -> Table:
        """Pad a with 0 and L_B's diagonal with a small number; at 0 its gradient would be 0."""
        a, L_B = state["x"]["a"], state["x"]["L_B"]
        P, M, old = len(a), len(theta["Z"]), L_B.shape[-1]
        larger = {"a": np.zeros((P, len(theta["gamma"]))), "L_B": np.zeros((P, M, M))}
        larger["a"][:, : a.shape[1]], larger["L_B"][:, :old, :old] = a, L_B
        larger["L_B"][:, range(old, M), range(old, M)] = START
        state["adam"].grow(larger)
        return {**state, "x": larger}


class TwoParts(Family):
    """A coupled q on β and a part of the mean on γ, orthogonal to β (ORTH, Eq. 12) or not (HYBRID, Eq. 11).

    An E-step moves β by the coupled family, which sees marginals with γ's mean; then γ at the marginals of
    the new β: up the gradient in a by Adam, divided by diag D_γ (`scaled`, Eq. 17), by D_γ (`natural`,
    Eq. 16a) or by D_γ + sK_⊥ᵀdiag(β)K_⊥ (`newton`).
    """

    def __init__(
        self, part: Coupled, *, step: str, rate: float = 0.0, subset: int = 0, hybrid: bool = False
    ) -> None:
        super().__init__(part.kernel, part.likelihood)
        self.part, self.step, self.rate = part, step, rate
        self.subset, self.hybrid = subset, hybrid

    def start(self, theta: Table, n: int) -> Table:
        a = np.zeros((self.likelihood.latents, len(theta["gamma"])))
        part = self.part.start(theta, n)
        return {"x": (part["x"], a), "part": part, "adam": Adam({"a": a}), "halvings": 0}

    def _residue(self, theta: Table, X: Any) -> Any:
        """Return k_γX − K_γβK_β⁻¹k_βX of ORTH, k_γX of HYBRID."""
        k = self.kernel.cross(theta, theta["gamma"], X)
        if self.hybrid:
            return k
        return k - self.kernel.cross(theta, theta["gamma"], theta["Z"]) @ self.part.A(theta, X)

    def _explained(self, theta: Table) -> Any:
        """Return K_γβK_β⁻¹."""
        K = self.part.K(theta)
        return self.kernel.cross(theta, theta["gamma"], theta["Z"]) @ anp.linalg.inv(K)

    def q(self, theta: Table, x: Any) -> Any:
        return self.part.q(theta, x[0]), x[1]

    def marginals(self, theta: Table, q: Any, X: Any) -> tuple[Any, Any]:
        mu, v = self.part.marginals(theta, q[0], X)
        return mu + q[1] @ self._residue(theta, X), v

    def kl(self, theta: Table, q: Any, columns: Any = None) -> Any:
        return self.part.kl(theta, q[0]) + self._kl_of_gamma(theta, q, columns)

    def _kl_of_gamma(self, theta: Table, q: Any, columns: Any, pull: Any = None) -> Any:
        """Return ½aᵀD_γa, or ½aᵀK_γa + aᵀK_γβK_β⁻¹m; with `pull` for K_γa, aᵀpull in place of ½aᵀK_γa."""
        (m, _), a = q
        if pull is None:
            square = 0.5 * anp.sum(a * product(self.kernel, theta, theta["gamma"], a, columns))
        else:
            square = anp.sum(a * pull)
        known = a @ self._explained(theta)
        if self.hybrid:
            return square + anp.sum(known * m)
        return square - 0.5 * anp.sum((known @ self.part.K(theta)) * known)

    def e_step(self, theta: Table, state: Table, batch: Batch, rate: float, scale: float) -> Table:
        x, a = state["x"]
        self.part.shift = a @ self._residue(theta, batch.X)
        self.part.pull = a @ self._explained(theta) if self.hybrid else 0.0
        part = self.part.e_step(theta, {**state["part"], "x": x}, batch, rate, scale)
        self.part.shift = self.part.pull = 0.0
        gradient, beta = self._gamma_gradient(theta, (part["x"], a), batch, scale)
        rate = self.rate or rate
        if self.step == "adam":
            a = state["adam"].step({"a": a}, {"a": gradient}, rate)["a"]
        else:
            a = a + rate * self._solved(theta, gradient, beta, batch, scale)
        return {**state, "x": (part["x"], a), "part": part, "halvings": part["halvings"]}

    def _gamma_gradient(self, theta: Table, x: Any, batch: Batch, scale: float) -> Any:
        _, alpha, beta = self.slopes(theta, x, batch)
        pull = product(self.kernel, theta, theta["gamma"], x[1], batch.columns)

        def linearised(a: Any) -> Any:
            q = self.q(theta, (x[0], a))
            mu, _ = self.marginals(theta, q, batch.X)
            return scale * anp.sum(alpha * mu) - self._kl_of_gamma(theta, q, None, pull)

        return grad(linearised)(x[1]), beta

    def _solved(self, theta: Table, gradient: Any, beta: Any, batch: Batch, scale: float) -> Any:
        """Return the gradient over the curvature that the step divides by."""
        D = self.kernel.square(theta, theta["gamma"])
        if not self.hybrid:
            D = D - self._explained(theta) @ self.kernel.cross(theta, theta["Z"], theta["gamma"])
        if self.step == "scaled":
            return gradient / np.diagonal(D)
        if self.step == "newton":
            K_x = self._residue(theta, batch.X)
            D = D + scale * (K_x * np.maximum(beta, 0.0)[:, None, :]) @ K_x.T
        return np.linalg.solve(D, gradient[..., None])[..., 0]

    def hold(self, theta: Table, x: Any) -> Any:
        return self.part.hold(theta, x[0]), x[1]

    def tie(self, theta: Table, held: Any) -> Any:
        return self.part.tie(theta, held[0]), held[1]
