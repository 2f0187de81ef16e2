"""Two bases: decoupled (Cheng and Boots 2017), orthogonal and hybrid (Salimbeni et al. 2018b).

Where a method samples r columns R of the mean's K, Ka is estimated by (M/r)K[:, R]a_R; the jitter is
never sampled.
"""

from __future__ import annotations

from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd.extend import defvjp, primitive

from program.adam import Adam
from program.coupled import Coupled, basis_of
from program.draws import Batch
from program.gaussians import Family, times, transposed
from program.kernels import Kernel
from program.likelihoods import Likelihood
from program.parameters import Table

START = 1e-3  # of the decoupled covariance's factor, and of its new entries on a larger basis


def estimated(kernel: Kernel, theta: Table, basis: Any, columns: Any) -> Any:
    """Return K + jitter·I [M, M], or its estimate from r columns: M/r times these, and 0 elsewhere."""
    K = kernel.cross(theta, basis, basis)
    weights = np.ones(len(K))
    if columns is not None:
        weights = np.zeros(len(K))
        weights[columns] = len(K) / len(columns)
    return K * weights + kernel.jitter * np.eye(len(K))


@primitive
def half_square(a: Any, K: Any) -> Any:
    """Return ½aᵀKa, summed over latents."""
    return 0.5 * np.sum(a * (a @ K.T))


# the slope in a is Ka also of an estimate K, which is not symmetric: that is what the methods step along
defvjp(
    half_square,
    lambda _, a, K: lambda g: g * (a @ K.T),
    lambda _, a, K: lambda g: 0.5 * g * (a.T @ a),
)


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
        K = self.kernel.square(theta, basis_of(theta))
        H = np.eye(len(K)) + transposed(L_B) @ K @ L_B
        return x["a"], L_B @ anp.linalg.inv(H) @ transposed(L_B), H

    def marginals(self, theta: Table, q: Any, X: Any) -> tuple[Any, Any]:
        a, C, _ = q
        alpha, beta = (self.kernel.cross(theta, basis_of(theta, b), X) for b in ("gamma", "Z"))
        return a @ alpha, theta["variance"] - anp.sum(beta * (C @ beta), axis=-2)

    def kl(self, theta: Table, q: Any, columns: Any = None) -> Any:
        """Return ½aᵀK_αa + ½log|H| − ½tr(K_βC) (Cheng and Boots 2017, Eq. 9)."""
        a, C, H = q
        square = half_square(a, estimated(self.kernel, theta, basis_of(theta, "gamma"), columns))
        trace = anp.sum(self.kernel.square(theta, basis_of(theta)) * C)
        return square + 0.5 * (anp.sum(anp.linalg.slogdet(H)[1]) - trace)

    def moved(self, theta: Table, state: Table, gradient: Any, rate: float) -> Table:
        if self.adam:
            return super().moved(theta, state, gradient, rate)
        return {**state, "x": {name: x + rate * gradient[name] for name, x in state["x"].items()}}

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
        return k if self.hybrid else k - self._explained(theta, X)

    def _explained(self, theta: Table, X: Any) -> Any:
        """Return K_γβK_β⁻¹k_βX."""
        return self.kernel.cross(theta, theta["gamma"], theta["Z"]) @ self.part.A(theta, X)

    def _curvature(self, theta: Table, columns: Any = None) -> Any:
        """Return D_γ = K_γ − K_γβK_β⁻¹K_βγ of ORTH, K_γ of HYBRID, or its estimate."""
        K = estimated(self.kernel, theta, theta["gamma"], columns)
        return K if self.hybrid else K - self._explained(theta, theta["gamma"])

    def q(self, theta: Table, x: Any) -> Any:
        return self.part.q(theta, x[0]), x[1]

    def marginals(self, theta: Table, q: Any, X: Any) -> tuple[Any, Any]:
        mu, v = self.part.marginals(theta, q[0], X)
        return mu + q[1] @ self._residue(theta, X), v

    def kl(self, theta: Table, q: Any, columns: Any = None) -> Any:
        """Add ½aᵀD_γa to the KL of β, in HYBRID also aᵀK_γβK_β⁻¹m."""
        (m, _), a = q
        kl = self.part.kl(theta, q[0]) + half_square(a, self._curvature(theta, columns))
        return kl + anp.sum(a * (m @ self.part.A(theta, theta["gamma"]))) if self.hybrid else kl

    def e_step(self, theta: Table, state: Table, batch: Batch, rate: float, scale: float) -> Table:
        x, a = state["x"]
        gradient, _ = self.gradient(theta, (x, a), batch, scale)
        part = self.part.moved(theta, {**state["part"], "x": x}, gradient, rate)
        x, rate = part["x"], self.rate or rate
        _, gradient = self.gradient(theta, (x, a), batch, scale)
        if self.step == "adam":
            a = state["adam"].step({"a": a}, {"a": gradient}, rate)["a"]
        else:
            a = a + rate * self._solved(theta, (x, a), gradient, batch, scale)
        return {**state, "x": (x, a), "part": part, "halvings": part["halvings"]}

    def _solved(self, theta: Table, x: Any, gradient: Any, batch: Batch, scale: float) -> Any:
        """Return the gradient over the curvature that the step divides by."""
        D = self._curvature(theta)
        if self.step == "scaled":
            return gradient / np.diagonal(D)
        if self.step == "newton":
            (_, _, beta), K_x = self.slopes(theta, x, batch), self._residue(theta, batch.X)
            D = D + scale * (K_x * np.maximum(beta, 0.0)[:, None, :]) @ K_x.T
        return times(np.linalg.inv(D), gradient)

    def hold(self, theta: Table, x: Any) -> Any:
        return self.part.hold(theta, x[0]), x[1]

    def tie(self, theta: Table, held: Any) -> Any:
        return self.part.tie(theta, held[0]), held[1]
