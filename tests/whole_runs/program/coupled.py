"""Coupled families: one q(u) = N(m, S) on Z for mean and covariance.

q-SVGP (Hensman et al. 2013; Salimbeni et al. 2018a), t-SVGP (Adam et al. 2021) and diagonal precision
(Kobe 2021, Ch. 3). Each may be told of a mean that is modelled beside it: `shift` is added to its own, and
`pull` [P, M] is the gradient in m of what that adds to the KL.
"""

from __future__ import annotations

from typing import Any

import autograd.numpy as anp
import numpy as np

from program.adam import Adam
from program.draws import Batch
from program.gaussians import (
    Family,
    is_positive_definite,
    kl_of_covariances,
    kl_of_means,
    natural_step,
    transposed,
)
from program.kernels import Kernel
from program.likelihoods import Likelihood
from program.parameters import Floats, Table


def basis_of(theta: Table) -> Any:
    """Z, or centres and widths."""
    return (theta["Z"], theta["Z_widths"]) if "Z_widths" in theta else theta["Z"]


class Coupled(Family):
    """Marginals and KL of N(m, S)."""

    shift: Any = 0.0
    pull: Any = 0.0

    def K(self, theta: Table) -> Any:  # noqa: N802
        return self.kernel.square(theta, basis_of(theta))

    def A(self, theta: Table, X: Any) -> Any:  # noqa: N802
        """K⁻¹K_ub."""
        return anp.linalg.inv(self.K(theta)) @ self.kernel.cross(theta, basis_of(theta), X)

    def own_mean(self, theta: Table, m: Any, X: Any) -> Any:
        return m @ self.A(theta, X)

    def marginals(self, theta: Table, q: Any, X: Any) -> tuple[Any, Any]:
        m, S = q
        A = self.A(theta, X)
        v = theta["variance"] - anp.sum(A * ((self.K(theta) - S) @ A), axis=-2)
        return m @ A + self.shift, v

    def kl(self, theta: Table, q: Any, columns: Any = None) -> Any:
        m, S = q
        K = self.K(theta)
        K_inv = anp.linalg.inv(K)
        more = anp.sum(m * self.pull)
        return kl_of_means(m, K_inv) + kl_of_covariances(S, K, K_inv) + more

    def moments(self, theta: Table, state: Table) -> tuple[Floats, Floats]:
        """m and S of a state."""
        return self.q(theta, self.coordinates(theta, state))  # type: ignore[no-any-return]


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
        return {"m": np.zeros((P, len(K))), "S": np.stack([K] * P), "halvings": 0}

    def q(self, theta: Table, x: Any) -> Any:
        return x

    def coordinates(self, theta: Table, state: Table) -> Any:
        return state["m"], state["S"]

    def e_step(self, theta: Table, state: Table, batch: Batch, rate: float, scale: float) -> Table:
        d_m, d_S = self.gradient(theta, (state["m"], state["S"]), batch, scale)
        d_S = 0.5 * (d_S + transposed(d_S))
        damps = self.likelihood.damps
        m, S, halvings = natural_step(state["m"], state["S"], d_m, d_S, rate, damps=damps)
        return {**state, "m": m, "S": S, "halvings": state["halvings"] + halvings}

    def hold(self, theta: Table, state: Table) -> Any:
        m, S, K = state["m"], state["S"], self.K(theta)
        precision = np.linalg.inv(S)
        natural, extra = (precision @ m[..., None])[..., 0], precision - np.linalg.inv(K)
        if self.held == "own":
            return m, S
        if self.held == "whitened":
            L_inv = np.linalg.inv(np.linalg.cholesky(K))
            return m @ L_inv.T, L_inv @ S @ L_inv.T
        if self.held == "tied":
            return natural @ K, K @ extra @ K
        assert self.held == "projected"
        return natural, extra

    def tie(self, theta: Table, held: Any, X: Any) -> Any:
        first, second = held
        if self.held == "own":
            return held
        K = self.K(theta)
        K_inv = anp.linalg.inv(K)
        if self.held == "whitened":
            L = anp.linalg.cholesky(K)
            return first @ L.T, L @ second @ L.T
        if self.held == "tied":
            first, second = first @ K_inv, K_inv @ second @ K_inv
        S = anp.linalg.inv(K_inv + second)
        return (S @ first[..., None])[..., 0], S

    def retied(self, theta: Table, held: Any, X: Any, state: Table) -> Table:
        m, S = self.tie(theta, held, X)
        return {**state, "m": m, "S": S}

    def grown(self, theta: Table, state: Table) -> Table:
        """The same q(f) on a basis [Z, Z⁺]: S⁻¹m and S⁻¹ − K⁻¹ are padded with zeros."""
        old = len(state["m"][0])
        K = self.K(theta)
        S_inv, K_inv = np.linalg.inv(state["S"]), np.linalg.inv(K[:old, :old])
        P, M = len(S_inv), len(K)
        first, second = np.zeros((P, M)), np.zeros((P, M, M))
        first[:, :old] = (S_inv @ state["m"][..., None])[..., 0]
        second[:, :old, :old] = S_inv - K_inv
        S = np.linalg.inv(np.linalg.inv(K) + second)
        return {**state, "m": (S @ first[..., None])[..., 0], "S": S}


class Sites(Coupled):
    """t-SVGP with a site (λ₁ᵢ, βᵢ) for every datum, which the M-step holds (Adam et al. 2021, Eq. 15).

    The coordinates are the sites; a minibatch's E-step lets all of them decay. The sums over sites are
    built anew wherever q is asked for. Of Gaussian noise they are held per unit of 1/σ².
    """

    needs_all_data = True

    def __init__(self, kernel: Kernel, likelihood: Likelihood, X: Floats) -> None:
        super().__init__(kernel, likelihood)
        self.X = X

    def start(self, theta: Table, n: int) -> Table:
        P = self.likelihood.latents
        return {"lambda1": np.zeros((P, n)), "beta": np.zeros((P, n)), "halvings": 0}

    def q(self, theta: Table, x: Any) -> Any:
        lambda1, beta = x
        A = self.A(theta, self.X)
        second = (A * beta[:, None, :]) @ A.T
        S = anp.linalg.inv(anp.linalg.inv(self.K(theta)) + second)
        return (S @ (lambda1 @ A.T)[..., None])[..., 0], S

    def coordinates(self, theta: Table, state: Table) -> Any:
        return state["lambda1"], state["beta"]

    def e_step(self, theta: Table, state: Table, batch: Batch, rate: float, scale: float) -> Table:
        mu, alpha, beta = self.slopes(theta, self.coordinates(theta, state), batch)
        halvings = state["halvings"]
        while True:
            sites = {key: (1 - rate) * state[key] for key in ("lambda1", "beta")}
            sites["lambda1"][:, batch.index] += rate * scale * (beta * mu + alpha)
            sites["beta"][:, batch.index] += rate * scale * beta
            A = self.A(theta, self.X)
            precision = np.linalg.inv(self.K(theta)) + (A * sites["beta"][:, None, :]) @ A.T
            if not self.likelihood.damps or is_positive_definite(precision):
                return {**sites, "halvings": halvings}
            rate, halvings = rate / 2, halvings + 1

    def _unit(self, theta: Table) -> Any:
        return 1.0 / theta["noise_variance"] if "noise_variance" in theta else 1.0

    def hold(self, theta: Table, state: Table) -> Any:
        unit = self._unit(theta)
        return state["lambda1"] / unit, state["beta"] / unit

    def tie(self, theta: Table, held: Any, X: Any) -> Any:
        unit = self._unit(theta)
        return held[0] * unit, held[1] * unit

    def retied(self, theta: Table, held: Any, X: Any, state: Table) -> Table:
        lambda1, beta = self.tie(theta, held, X)
        return {**state, "lambda1": lambda1, "beta": beta}


class AdamOnCholesky(Coupled):
    """q-SVGP whose E-step is Adam on mean and factor, of u or of v where u = Lv."""

    def __init__(self, kernel: Kernel, likelihood: Likelihood, *, whiten: bool) -> None:
        super().__init__(kernel, likelihood)
        self.whiten = whiten

    def start(self, theta: Table, n: int) -> Table:
        K, P = self.K(theta), self.likelihood.latents
        chol = np.eye(len(K)) if self.whiten else np.linalg.cholesky(K)
        at = {"mean": np.zeros((P, len(K))), "chol": np.stack([chol] * P)}
        return {"at": at, "adam": Adam(at), "halvings": 0}

    def q(self, theta: Table, x: Any) -> Any:
        mean, chol = x["mean"], anp.tril(x["chol"])
        if self.whiten:
            L = anp.linalg.cholesky(self.K(theta))
            mean, chol = mean @ L.T, L @ chol
        return mean, chol @ transposed(chol)

    def coordinates(self, theta: Table, state: Table) -> Any:
        return state["at"]

    def e_step(self, theta: Table, state: Table, batch: Batch, rate: float, scale: float) -> Table:
        gradient = self.gradient(theta, state["at"], batch, scale)
        return {**state, "at": state["adam"].step(state["at"], gradient, rate)}

    def hold(self, theta: Table, state: Table) -> Any:
        return state["at"]

    def tie(self, theta: Table, held: Any, X: Any) -> Any:
        return held

    def retied(self, theta: Table, held: Any, X: Any, state: Table) -> Table:
        return state

    def grown(self, theta: Table, state: Table) -> Table:
        """The same q(f): v's mean is padded with 0 and its factor with I; u⁺ has its prior given u."""
        mean, chol = state["at"]["mean"], state["at"]["chol"]
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
        return {**state, "at": larger}


class Diagonal(Coupled):
    """m = Kμ, S = (K⁻¹ + diag g)⁻¹ (Kobe 2021, Eq. 3.5); E-steps exact, projected-a, projected-b, adam.

    `exact` solves against the family's own Fisher information, block diagonal in (m, g):
    F_mm = S⁻¹, F_gg = ½S∘S. `projected` keeps the diagonal of all Gaussians' natural gradient.
    """

    def __init__(
        self, kernel: Kernel, likelihood: Likelihood, *, step: str, unit: bool, held: str
    ) -> None:
        super().__init__(kernel, likelihood)
        self.step, self.unit, self.held = step, unit, held

    def start(self, theta: Table, n: int) -> Table:
        shape = (self.likelihood.latents, len(theta["Z"]))
        at = {"mu": np.zeros(shape), "g": np.full(shape, 1.0 if self.unit else 0.0)}
        if self.step != "adam":
            return {**at, "halvings": 0}
        raw = {"mu": at["mu"], "raw_g": np.log(np.expm1(at["g"]))}
        return {**at, "raw": raw, "adam": Adam(raw), "halvings": 0}

    def q(self, theta: Table, x: Any) -> Any:
        mu, g = (x["mu"], x["g"]) if "g" in x else (x["mu"], anp.logaddexp(0.0, x["raw_g"]))
        K = self.K(theta)
        S = anp.linalg.inv(anp.linalg.inv(K) + g[:, :, None] * np.eye(len(K)))
        return mu @ K, S

    def coordinates(self, theta: Table, state: Table) -> Any:
        return {"mu": state["mu"], "g": state["g"]}

    def e_step(self, theta: Table, state: Table, batch: Batch, rate: float, scale: float) -> Table:
        if self.step == "adam":
            raw = state["raw"]
            gradient = self.gradient(theta, raw, batch, scale)
            raw = state["adam"].step(raw, gradient, rate)
            g = np.logaddexp(0.0, raw["raw_g"])
            return {**state, "mu": raw["mu"], "g": g, "raw": raw}
        x = self.coordinates(theta, state)
        m, S = self.q(theta, x)
        own_mean, alpha, beta = self.slopes(theta, x, batch)
        A, K = self.A(theta, batch.X), self.K(theta)
        K_inv = np.linalg.inv(K)
        data = scale * (A * beta[:, None, :]) @ A.T
        if self.step == "exact":
            SA = S @ A
            target = np.linalg.solve(S * S, ((SA * SA) @ (scale * beta)[..., None]))[..., 0]
        else:
            target = np.diagonal(data, axis1=-2, axis2=-1)
        d_m = scale * alpha @ A.T - m @ K_inv
        S_inv = np.linalg.inv(S)
        theta1 = (S_inv @ m[..., None])[..., 0]
        halvings = state["halvings"]
        while True:
            g = (1 - rate) * state["g"] + rate * target
            new = K_inv + g[:, :, None] * np.eye(len(K))
            if is_positive_definite(new):
                break
            rate, halvings = rate / 2, halvings + 1
        S = np.linalg.inv(new)
        if self.step == "projected-a":
            wanted = scale * (beta * own_mean + alpha) @ A.T
            m = (S @ ((1 - rate) * theta1 + rate * wanted)[..., None])[..., 0]
        elif self.step == "projected-b":
            m = m + rate * (S @ d_m[..., None])[..., 0]
        else:
            wanted = scale * alpha @ A.T + target * m
            m = (S @ ((1 - rate) * theta1 + rate * wanted)[..., None])[..., 0]
        return {**state, "mu": m @ K_inv, "g": g, "halvings": halvings}

    def hold(self, theta: Table, state: Table) -> Any:
        if self.held == "weights":
            return {"mu": state["mu"], "g": state["g"]}
        m, S = self.moments(theta, state)
        return {"theta1": np.linalg.solve(S, m[..., None])[..., 0], "g": state["g"]}

    def tie(self, theta: Table, held: Any, X: Any) -> Any:
        if self.held == "weights":
            return held
        K = self.K(theta)
        K_inv, g = anp.linalg.inv(K), held["g"]
        S = anp.linalg.inv(K_inv + g[:, :, None] * np.eye(len(K)))
        return {"mu": (S @ held["theta1"][..., None])[..., 0] @ K_inv, "g": g}

    def retied(self, theta: Table, held: Any, X: Any, state: Table) -> Table:
        tied = self.tie(theta, held, X)
        return {**state, "mu": tied["mu"], "g": tied["g"]}
