"""Coupled families: one q(u) = N(m, S) on Z for mean and covariance.

q-SVGP (Hensman et al. 2013; Salimbeni et al. 2018a), t-SVGP (Adam et al. 2021) and diagonal precision
(Kobe 2021, Ch. 3).
"""

from __future__ import annotations

from typing import Any

import autograd.numpy as anp
import numpy as np

from program.adam import Adam
from program.draws import Batch
from program.gaussians import (
    Family,
    OfSites,
    damped,
    diagonal,
    kl_of_covariances,
    kl_of_means,
    times,
    transposed,
)
from program.kernels import Kernel
from program.likelihoods import Likelihood
from program.parameters import Table


def basis_of(theta: Table, name: str = "Z") -> Any:
    """Return a basis: points, or centres and widths."""
    return (theta[name], theta[f"{name}_widths"]) if f"{name}_widths" in theta else theta[name]


class Coupled(Family):
    """Marginals and KL of N(m, S)."""

    def K(self, theta: Table) -> Any:  # noqa: N802
        return self.kernel.square(theta, basis_of(theta))

    def A(self, theta: Table, X: Any) -> Any:  # noqa: N802
        """Return K⁻¹K_ub."""
        return anp.linalg.inv(self.K(theta)) @ self.kernel.cross(theta, basis_of(theta), X)

    def moments(self, theta: Table, first: Any, second: Any) -> tuple[Any, Any]:
        """Return (m, S) where S⁻¹m is `first` [P, M] and S⁻¹ − K⁻¹ is `second` [P, M, M]."""
        S = anp.linalg.inv(anp.linalg.inv(self.K(theta)) + second)
        return times(S, first), S

    def marginals(self, theta: Table, q: Any, X: Any) -> tuple[Any, Any]:
        m, S = q
        A = self.A(theta, X)
        v = theta["variance"] - anp.sum(A * ((self.K(theta) - S) @ A), axis=-2)
        return m @ A, v

    def kl(self, theta: Table, q: Any, columns: Any = None) -> Any:
        m, S = q
        K = self.K(theta)
        K_inv = anp.linalg.inv(K)
        return kl_of_means(m, K_inv) + kl_of_covariances(S, K, K_inv)


class Natural(Coupled):
    """The coordinates are (m, S) themselves, and an E-step is a natural gradient.

    `held` is what the M-step keeps: `own` (m, S); `whitened`, L⁻¹m and L⁻¹SL⁻ᵀ; `projected`, S⁻¹m and
    S⁻¹ − K⁻¹; `tied`, λ̄₁ = KS⁻¹m and Λ̄₂ = K(S⁻¹ − K⁻¹)K (Adam et al. 2021, Eqs. 14, 15, 21).
    """

    def __init__(self, kernel: Kernel, likelihood: Likelihood, held: str) -> None:
        super().__init__(kernel, likelihood)
        self.held = held

    def start(self, theta: Table, n: int) -> Table:
        K, P = self.K(theta), self.likelihood.latents
        return {"x": (np.zeros((P, len(K))), np.stack([K] * P)), "halvings": 0}

    def moved(self, theta: Table, state: Table, gradient: Any, rate: float) -> Table:
        """Add ρ∂/∂(m, S + mmᵀ) = ρ(∂_m − 2∂_S m, ∂_S) to (S⁻¹m, −½S⁻¹) (Salimbeni et al. 2018a, Eq. 10)."""
        (m, S), (d_m, d_S) = state["x"], gradient
        d_S = 0.5 * (d_S + transposed(d_S))
        precision = np.linalg.inv(S)
        rate, halvings = damped(precision, -2.0 * d_S, rate)
        theta1 = times(precision, m) + rate * (d_m - 2.0 * times(d_S, m))
        S = np.linalg.inv(precision - 2.0 * rate * d_S)
        S = 0.5 * (S + transposed(S))
        return {"x": (times(S, theta1), S), "halvings": state["halvings"] + halvings}

    def hold(self, theta: Table, x: Any) -> Any:
        if self.held == "own":
            return x
        (m, S), K = x, self.K(theta)
        if self.held == "whitened":
            L_inv = np.linalg.inv(np.linalg.cholesky(K))
            return m @ L_inv.T, L_inv @ S @ L_inv.T
        precision = np.linalg.inv(S)
        natural, extra = times(precision, m), precision - np.linalg.inv(K)
        if self.held == "tied":
            return natural @ K, K @ extra @ K
        assert self.held == "projected"
        return natural, extra

    def tie(self, theta: Table, held: Any) -> Any:
        if self.held == "own":
            return held
        (first, second), K = held, self.K(theta)
        if self.held == "whitened":
            L = anp.linalg.cholesky(K)
            return first @ L.T, L @ second @ L.T
        if self.held == "tied":
            K_inv = anp.linalg.inv(K)
            first, second = first @ K_inv, K_inv @ second @ K_inv
        return self.moments(theta, first, second)

    def grown(self, theta: Table, state: Table) -> Table:
        """Return the same q(f) on a basis [Z, Z⁺]: pad S⁻¹m and S⁻¹ − K⁻¹ with zeros."""
        m, S = state["x"]
        (P, old), K = m.shape, self.K(theta)
        first, second = np.zeros((P, len(K))), np.zeros((P, *K.shape))
        S_inv, K_inv = np.linalg.inv(S), np.linalg.inv(K[:old, :old])
        first[:, :old], second[:, :old, :old] = times(S_inv, m), S_inv - K_inv
        return {**state, "x": self.moments(theta, first, second)}


class Sites(OfSites, Coupled):
    """t-SVGP with a site for every datum (Adam et al. 2021, Eq. 15): sums over sites are built anew for q."""

    needs_all_data = True

    def start(self, theta: Table, n: int) -> Table:
        return {**super().start(theta, n), "halvings": 0}

    def weighted(self, theta: Table, beta: Any) -> Any:
        """Return A diag(β) Aᵀ [P, M, M]."""
        A = self.A(theta, self.X)
        return (A * beta[:, None, :]) @ A.T

    def q(self, theta: Table, x: Any) -> Any:
        return self.moments(theta, x[0] @ self.A(theta, self.X).T, self.weighted(theta, x[1]))

    def e_step(self, theta: Table, state: Table, batch: Batch, rate: float, scale: float) -> Table:
        x = state["x"]
        change = self.weighted(theta, self.moves(theta, x, batch, scale)[1])
        precision = np.linalg.inv(self.K(theta)) + self.weighted(theta, x[1])
        rate, halvings = damped(precision, change, rate)
        halved = {**state, "halvings": state["halvings"] + halvings}
        return super().e_step(theta, halved, batch, rate, scale)


class AdamOnCholesky(Coupled):
    """q-SVGP whose E-step is Adam on mean and factor, of u or of v where u = Lv."""

    def __init__(self, kernel: Kernel, likelihood: Likelihood, *, whiten: bool) -> None:
        super().__init__(kernel, likelihood)
        self.whiten = whiten

    def start(self, theta: Table, n: int) -> Table:
        K, P = self.K(theta), self.likelihood.latents
        chol = np.eye(len(K)) if self.whiten else np.linalg.cholesky(K)
        x = {"mean": np.zeros((P, len(K))), "chol": np.stack([chol] * P)}
        return {"x": x, "adam": Adam(x), "halvings": 0}

    def q(self, theta: Table, x: Any) -> Any:
        mean, chol = x["mean"], anp.tril(x["chol"])
        if self.whiten:
            L = anp.linalg.cholesky(self.K(theta))
            mean, chol = mean @ L.T, L @ chol
        return mean, chol @ transposed(chol)

    def grown(self, theta: Table, state: Table) -> Table:
        """Return the same q(f): pad v's mean with 0 and its factor with I; u⁺ has its prior given u."""
        mean, chol = state["x"]["mean"], state["x"]["chol"]
        (P, old), K = mean.shape, self.K(theta)
        M = len(K)
        larger = {"mean": np.zeros((P, M)), "chol": np.zeros((P, M, M))}
        larger["mean"][:, :old], larger["chol"][:, :old, :old] = mean, chol
        larger["chol"][:, range(old, M), range(old, M)] = 1.0
        if not self.whiten:
            to_new = K[old:, :old] @ np.linalg.inv(K[:old, :old])
            left = np.linalg.cholesky(K[old:, old:] - to_new @ K[:old, old:])
            larger["mean"][:, old:] = mean @ to_new.T
            larger["chol"][:, old:, :old], larger["chol"][:, old:, old:] = to_new @ chol, left
        state["adam"].grow(larger)
        return {**state, "x": larger}


class Diagonal(Coupled):
    """m = Kμ, S = (K⁻¹ + diag g)⁻¹ (Kobe 2021, Eq. 3.5); E-steps exact, projected-a, projected-b, adam.

    `exact` solves against the family's own Fisher information, block diagonal in (m, g):
    F_mm = S⁻¹, F_gg = ½S∘S. `projected` keeps the diagonal of all Gaussians' natural gradient. `adam`
    moves μ and log(eᵍ − 1). The M-step holds the coordinates, or (S⁻¹m, g) if `held` is `projected`.
    """

    def __init__(
        self, kernel: Kernel, likelihood: Likelihood, *, step: str, unit: bool, held: str
    ) -> None:
        super().__init__(kernel, likelihood)
        self.step, self.unit, self.held = step, unit, held

    def start(self, theta: Table, n: int) -> Table:
        shape = (self.likelihood.latents, len(theta["Z"]))
        x = {"mu": np.zeros(shape), "g": np.full(shape, 1.0 if self.unit else 0.0)}
        if self.step == "adam":
            x = {"mu": x["mu"], "raw_g": np.log(np.expm1(x["g"]))}
        return {"x": x, "adam": Adam(x), "halvings": 0}

    def q(self, theta: Table, x: Any) -> Any:
        g = x["g"] if "g" in x else anp.logaddexp(0.0, x["raw_g"])
        _, S = self.moments(theta, x["mu"], diagonal(g))
        return x["mu"] @ self.K(theta), S

    def e_step(self, theta: Table, state: Table, batch: Batch, rate: float, scale: float) -> Table:
        if self.step == "adam":
            return super().e_step(theta, state, batch, rate, scale)
        x = state["x"]
        m, S = self.q(theta, x)
        mu, alpha, beta = self.slopes(theta, x, batch)
        A, K_inv = self.A(theta, batch.X), np.linalg.inv(self.K(theta))
        d_m = scale * alpha @ A.T
        if self.step == "exact":
            SA = S @ A
            target = np.linalg.solve(S * S, ((SA * SA) @ (scale * beta)[..., None]))[..., 0]
            wanted = d_m + target * m
        else:
            target = scale * beta @ (A * A).T
            wanted = d_m + scale * (beta * mu) @ A.T
        theta1 = times(np.linalg.inv(S), m)
        change = target - x["g"]
        rate, halvings = damped(K_inv + diagonal(x["g"]), diagonal(change), rate)
        g = x["g"] + rate * change
        new, S = self.moments(theta, (1 - rate) * theta1 + rate * wanted, diagonal(g))
        if self.step == "projected-b":
            new = m + rate * times(S, d_m - m @ K_inv)
        return {**state, "x": {"mu": new @ K_inv, "g": g}, "halvings": state["halvings"] + halvings}

    def hold(self, theta: Table, x: Any) -> Any:
        if self.held == "weights":
            return x
        m, S = self.q(theta, x)
        return {"theta1": times(np.linalg.inv(S), m), "g": x["g"]}

    def tie(self, theta: Table, held: Any) -> Any:
        if self.held == "weights":
            return held
        m, _ = self.moments(theta, held["theta1"], diagonal(held["g"]))
        return {"mu": m @ anp.linalg.inv(self.K(theta)), "g": held["g"]}
