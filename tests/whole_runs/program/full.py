"""q on all data, and bounds in which q is the best there is.

t-VGP's sites (Adam et al. 2021, Sec. 3; Opper and Archambeau 2009), exact regression, and Titsias (2009).
"""

from __future__ import annotations

from typing import Any

import autograd.numpy as anp
import numpy as np

from program.draws import Batch
from program.gaussians import Family, kl_of_means
from program.kernels import Kernel
from program.likelihoods import Likelihood
from program.parameters import Floats, Table


class SitesOnData(Family):
    """S = (K⁻¹ + D)⁻¹ and m = Sλ₁ with D = diag β, K without jitter and not inverted."""

    def __init__(self, kernel: Kernel, likelihood: Likelihood, X: Floats) -> None:
        super().__init__(kernel, likelihood)
        self.X = X

    def start(self, theta: Table, n: int) -> Table:
        P = self.likelihood.latents
        return {"lambda1": np.zeros((P, n)), "beta": np.zeros((P, n))}

    def coordinates(self, theta: Table, state: Table) -> Any:
        return state["lambda1"], state["beta"]

    def q(self, theta: Table, x: Any) -> Any:
        """K, λ₁ − Dm = K⁻¹m, D, and I + KD."""
        lambda1, beta = x
        K = self.kernel.cross(theta, self.X, self.X)
        inside = np.eye(len(K)) + K * beta[:, None, :]
        m = anp.linalg.solve(inside, (lambda1 @ K)[..., None])[..., 0]
        return K, lambda1 - beta * m, beta, inside

    def marginals(self, theta: Table, q: Any, X: Any) -> tuple[Any, Any]:
        _, weights, beta, inside = q
        k = self.kernel.cross(theta, self.X, X)
        # k*ᵀD(I + KD)⁻¹k*
        explained = beta[:, :, None] * anp.linalg.solve(inside, anp.stack([k] * len(beta)))
        return weights @ k, theta["variance"] - anp.sum(k * explained, axis=-2)

    def kl(self, theta: Table, q: Any, columns: Any = None) -> Any:
        """½(tr (I + KD)⁻¹ − n + mᵀK⁻¹m + log|I + KD|)."""
        K, weights, _, inside = q
        trace = anp.sum(anp.linalg.inv(inside) * np.eye(len(K)))
        size = inside.shape[0] * inside.shape[1]
        logs = anp.sum(anp.linalg.slogdet(inside)[1])
        return 0.5 * (trace - size + logs) + kl_of_means(weights, K)

    def e_step(self, theta: Table, state: Table, batch: Batch, rate: float, scale: float) -> Table:
        """Adam et al. 2021, Eqs. 12–13."""
        mu, alpha, beta = self.slopes(theta, self.coordinates(theta, state), batch)
        new = {key: (1 - rate) * state[key] for key in ("lambda1", "beta")}
        new["lambda1"][:, batch.index] += rate * scale * (beta * mu + alpha)
        new["beta"][:, batch.index] += rate * scale * beta
        return new

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
        return {"lambda1": lambda1, "beta": beta}


def log_normal(y: Floats, covariance: Any) -> Any:
    """Log N(y | 0, covariance)."""
    log_det = anp.linalg.slogdet(covariance)[1]
    return -0.5 * (len(y) * np.log(2 * np.pi) + log_det + y @ anp.linalg.solve(covariance, y))


class Collapsed(Family):
    """A bound of θ alone: exact regression where Z is the data, else Titsias (2009), Eq. 9."""

    collapsed = True

    def __init__(self, kernel: Kernel, likelihood: Likelihood, X: Floats, *, exact: bool) -> None:
        super().__init__(kernel, likelihood)
        self.X, self.exact = X, exact

    def start(self, theta: Table, n: int) -> Table:
        return {}

    def e_step(self, theta: Table, state: Table, batch: Batch, rate: float, scale: float) -> Table:
        """Keep the targets, from which q follows at every θ."""
        return {"y": batch.y} if self.exact else {"y": batch.y, "halvings": 0}

    def coordinates(self, theta: Table, state: Table) -> Any:
        return state["y"]

    def _explained(self, theta: Table, X: Any) -> Any:
        """What the basis knows of the covariances of the data and X, Q_fX."""
        if self.exact:
            return self.kernel.cross(theta, self.X, X)
        K = self.kernel.square(theta, theta["Z"])
        k, K_uf = (self.kernel.cross(theta, theta["Z"], B) for B in (X, self.X))
        return K_uf.T @ anp.linalg.solve(K, k)

    def bound_at(self, theta: Table, x: Any, batch: Batch, scale: float) -> Any:
        s2, Q = theta["noise_variance"], self._explained(theta, self.X)
        value = log_normal(batch.y, Q + s2 * np.eye(len(batch.y)))
        if self.exact:
            return value
        left = len(batch.y) * theta["variance"] - anp.sum(Q * np.eye(len(batch.y)))
        return value - left / (2 * s2)

    def q(self, theta: Table, x: Any) -> Any:
        return x

    def marginals(self, theta: Table, q: Any, X: Any) -> tuple[Any, Any]:
        noisy = self._explained(theta, self.X) + theta["noise_variance"] * np.eye(len(self.X))
        across = self._explained(theta, X)
        mu = across.T @ np.linalg.solve(noisy, q)
        v = theta["variance"] - np.sum(across * np.linalg.solve(noisy, across), axis=0)
        return mu[None], v[None]

    def hold(self, theta: Table, state: Table) -> Any:
        return state["y"]

    def tie(self, theta: Table, held: Any, X: Any) -> Any:
        return held

    def retied(self, theta: Table, held: Any, X: Any, state: Table) -> Table:
        return state
