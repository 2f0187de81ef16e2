"""Gaussians of inducing variables, dense: KLs, marginals, gradients and natural-gradient steps."""

from __future__ import annotations

from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd import grad

from program.draws import Batch
from program.kernels import Kernel
from program.likelihoods import Likelihood
from program.parameters import Floats, Table


def transposed(A: Any) -> Any:
    return anp.swapaxes(A, -1, -2)


def kl_of_means(m: Any, K_inv: Any) -> Any:
    """½mᵀK⁻¹m, summed over latents."""
    return 0.5 * anp.sum((m @ K_inv) * m)


def kl_of_covariances(S: Any, K: Any, K_inv: Any) -> Any:
    """½(tr K⁻¹S − M + log|K| − log|S|), summed over latents."""
    log_ratio = len(S) * anp.linalg.slogdet(K)[1] - anp.sum(anp.linalg.slogdet(S)[1])
    return 0.5 * (anp.sum(K_inv * S) - S.shape[0] * S.shape[1] + log_ratio)


def is_positive_definite(A: Floats) -> bool:
    """Whether every matrix of a stack has a Cholesky factor."""
    try:
        np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return False
    return True


def natural_step(
    m: Floats, S: Floats, d_m: Floats, d_S: Floats, rate: float, *, damps: bool
) -> tuple[Floats, Floats, int]:
    """(S⁻¹m, −½S⁻¹) ← + ρ∂/∂(m, S + mmᵀ); where `damps`, ρ is halved while S⁻¹ is not positive definite.

    Source: Salimbeni et al. 2018a, Eq. 10; ∂/∂(m, S + mmᵀ) = (∂_m − 2∂_S m, ∂_S).
    """
    precision, halvings = np.linalg.inv(S), 0
    while True:
        new = precision - 2.0 * rate * d_S
        if not damps or halvings == 40 or is_positive_definite(new):
            break
        rate, halvings = rate / 2.0, halvings + 1
    theta1 = _times(precision, m) + rate * (d_m - 2.0 * _times(d_S, m))
    covariance = np.linalg.inv(new)
    covariance = 0.5 * (covariance + transposed(covariance))
    return _times(covariance, theta1), covariance, halvings


def _times(A: Floats, x: Floats) -> Floats:
    return np.asarray((A @ x[..., None])[..., 0])


class Family:
    """A form of q(f), by dense algebra.

    A subclass says `q` (what marginals and KL need, from its coordinates at a θ), `marginals`, `kl`, how
    its E-step moves, and what its M-step holds.
    """

    needs_all_data = False
    collapsed = False
    subset = 0

    def __init__(self, kernel: Kernel, likelihood: Likelihood) -> None:
        self.kernel, self.likelihood = kernel, likelihood

    def start(self, theta: Table, n: int) -> Table:
        """The first state."""
        raise NotImplementedError

    def q(self, theta: Table, x: Any) -> Any:
        """What marginals and KL need, from coordinates x."""
        raise NotImplementedError

    def marginals(self, theta: Table, q: Any, X: Any) -> tuple[Any, Any]:
        """Mean and variance of f at X, each [P, b]."""
        raise NotImplementedError

    def kl(self, theta: Table, q: Any, columns: Any = None) -> Any:
        """KL[q ‖ p], or its estimate from some columns of the mean's K."""
        raise NotImplementedError

    def e_step(self, theta: Table, state: Table, batch: Batch, rate: float, scale: float) -> Table:
        """The state after one E-step."""
        raise NotImplementedError

    def coordinates(self, theta: Table, state: Table) -> Any:
        """The coordinates x of a state."""
        raise NotImplementedError

    def hold(self, theta: Table, state: Table) -> Any:
        """What the M-step keeps."""
        raise NotImplementedError

    def tie(self, theta: Table, held: Any, X: Any) -> Any:
        """The coordinates at another θ."""
        raise NotImplementedError

    def retied(self, theta: Table, held: Any, X: Any, state: Table) -> Table:
        """The state at another θ."""
        raise NotImplementedError

    def basis_size(self, theta: Table) -> int:
        """Points among which a batch samples."""
        return 0

    def bound_at(self, theta: Table, x: Any, batch: Batch, scale: float) -> Any:
        """S Σ V − KL at coordinates x (Hensman et al. 2013, Eq. 3)."""
        q = self.q(theta, x)
        mu, v = self.marginals(theta, q, batch.X)
        V = anp.sum(self.likelihood.V(theta, batch.y, mu, v, batch.noise))
        return scale * V - self.kl(theta, q, batch.columns)

    def slopes(self, theta: Table, x: Any, batch: Batch) -> tuple[Floats, Floats, Floats]:
        """μ, α and β [P, b] at coordinates x."""
        mu, v = self.marginals(theta, self.q(theta, x), batch.X)
        alpha, beta = self.likelihood.gradients(theta, batch.y, mu, v, batch.noise)
        return mu, alpha, beta

    def gradient(self, theta: Table, x: Any, batch: Batch, scale: float) -> Any:
        """Gradient of the bound in the coordinates, V entering by α and β: Σ(αμ − ½βv) s − KL."""
        _, alpha, beta = self.slopes(theta, x, batch)

        def linearised(x: Any) -> Any:
            q = self.q(theta, x)
            mu, v = self.marginals(theta, q, batch.X)
            return scale * anp.sum(alpha * mu - 0.5 * beta * v) - self.kl(theta, q, batch.columns)

        return grad(linearised)(x)
