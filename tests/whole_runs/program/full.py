"""q on all data, and bounds in which q is the best there is.

t-VGP's sites (Adam et al. 2021, Sec. 3; Opper and Archambeau 2009), exact regression, and Titsias (2009).
"""

from __future__ import annotations

from typing import Any

import autograd.numpy as anp
import numpy as np

from program.draws import Batch
from program.gaussians import Family, OfSites, kl_of_means
from program.kernels import Kernel
from program.likelihoods import Likelihood
from program.parameters import Floats, Table


class SitesOnData(OfSites):
    """S = (K⁻¹ + D)⁻¹ and m = Sλ₁ with D = diag β, K without jitter and not inverted."""

    def q(self, theta: Table, x: Any) -> Any:
        """Return K, λ₁ − Dm = K⁻¹m, D, and I + KD."""
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
        """Return ½(tr (I + KD)⁻¹ − n + mᵀK⁻¹m + log|I + KD|)."""
        K, weights, _, inside = q
        trace = anp.sum(anp.linalg.inv(inside) * np.eye(len(K)))
        size = inside.shape[0] * inside.shape[1]
        logs = anp.sum(anp.linalg.slogdet(inside)[1])
        return 0.5 * (trace - size + logs) + kl_of_means(weights, K)


class Collapsed(Family):
    """A bound of θ alone: exact regression where Z is the data, else Titsias (2009), Eq. 9.

    The coordinates are the targets, from which q follows at every θ.
    """

    collapsed = True

    def __init__(self, kernel: Kernel, likelihood: Likelihood, X: Floats, *, exact: bool) -> None:
        super().__init__(kernel, likelihood)
        self.X, self.exact = X, exact

    def start(self, theta: Table, n: int) -> Table:
        return {} if self.exact else {"halvings": 0}

    def e_step(self, theta: Table, state: Table, batch: Batch, rate: float, scale: float) -> Table:
        return {**state, "x": batch.y}

    def _explained(self, theta: Table, X: Any) -> Any:
        """Return what the basis knows of the covariances of the data and X, Q_fX."""
        if self.exact:
            return self.kernel.cross(theta, self.X, X)
        K = self.kernel.square(theta, theta["Z"])
        k, K_uf = (self.kernel.cross(theta, theta["Z"], B) for B in (X, self.X))
        return K_uf.T @ anp.linalg.solve(K, k)

    def bound_at(self, theta: Table, x: Any, batch: Batch, scale: float) -> Any:
        """Return log N(y | 0, Q + σ²I), less tr(K − Q)/(2σ²) if Q is not K."""
        y, s2, Q = batch.y, theta["noise_variance"], self._explained(theta, self.X)
        noisy = Q + s2 * np.eye(len(y))
        log_det = anp.linalg.slogdet(noisy)[1]
        value = -0.5 * (len(y) * np.log(2 * np.pi) + log_det + y @ anp.linalg.solve(noisy, y))
        if self.exact:
            return value
        return value - (len(y) * theta["variance"] - anp.sum(Q * np.eye(len(y)))) / (2 * s2)

    def marginals(self, theta: Table, q: Any, X: Any) -> tuple[Any, Any]:
        noisy = self._explained(theta, self.X) + theta["noise_variance"] * np.eye(len(self.X))
        across = self._explained(theta, X)
        mu = across.T @ np.linalg.solve(noisy, q)
        v = theta["variance"] - np.sum(across * np.linalg.solve(noisy, across), axis=0)
        return mu[None], v[None]
