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


def times(A: Any, x: Any) -> Any:
    """Return the products of A [..., k, n] and x [..., n]."""
    return (A @ x[..., None])[..., 0]


def diagonal(g: Any) -> Any:
    """Return the matrices diag g [P, M, M]."""
    return g[:, :, None] * np.eye(g.shape[-1])


def kl_of_means(m: Any, K_inv: Any) -> Any:
    """Return ½mᵀK⁻¹m, summed over latents."""
    return 0.5 * anp.sum((m @ K_inv) * m)


def kl_of_covariances(S: Any, K: Any, K_inv: Any) -> Any:
    """Return ½(tr K⁻¹S − M + log|K| − log|S|), summed over latents."""
    log_ratio = len(S) * anp.linalg.slogdet(K)[1] - anp.sum(anp.linalg.slogdet(S)[1])
    return 0.5 * (anp.sum(K_inv * S) - S.shape[0] * S.shape[1] + log_ratio)


def damped(A: Floats, change: Floats, rate: float) -> tuple[float, int]:
    """Halve ρ until A + ρ·change [P, M, M] is positive definite; return ρ and the number of halvings."""
    halvings = 0
    while halvings < 40:  # where ρ is 1e-12 of the rate, what fails is not the rate
        try:
            np.linalg.cholesky(A + rate * change)
        except np.linalg.LinAlgError:
            rate, halvings = rate / 2.0, halvings + 1
        else:
            break
    return rate, halvings


class Family:
    """A form of q(f), by dense algebra. A state has q's coordinates `x`, and what the E-step needs.

    A subclass says `q`, `marginals` and `kl`. Its E-step is Adam's and its M-step holds x, if it says
    nothing else.
    """

    needs_all_data = False
    collapsed = False
    subset = 0

    def __init__(self, kernel: Kernel, likelihood: Likelihood) -> None:
        self.kernel, self.likelihood = kernel, likelihood

    def start(self, theta: Table, n: int) -> Table:
        """Return the first state."""
        raise NotImplementedError

    def q(self, theta: Table, x: Any) -> Any:
        """Return what marginals and KL need."""
        return x

    def marginals(self, theta: Table, q: Any, X: Any) -> tuple[Any, Any]:
        """Return mean and variance of f at X, each [P, b]."""
        raise NotImplementedError

    def kl(self, theta: Table, q: Any, columns: Any = None) -> Any:
        """Return KL[q ‖ p], or its estimate from some columns of the mean's K."""
        raise NotImplementedError

    def e_step(self, theta: Table, state: Table, batch: Batch, rate: float, scale: float) -> Table:
        """Return the state after one E-step."""
        return self.moved(theta, state, self.gradient(theta, state["x"], batch, scale), rate)

    def moved(self, theta: Table, state: Table, gradient: Any, rate: float) -> Table:
        """Return the state after a step along a gradient in x."""
        return {**state, "x": state["adam"].step(state["x"], gradient, rate)}

    def hold(self, theta: Table, x: Any) -> Any:
        """Return what the M-step keeps."""
        return x

    def tie(self, theta: Table, held: Any) -> Any:
        """Return the coordinates at another θ."""
        return held

    def bound_at(self, theta: Table, x: Any, batch: Batch, scale: float) -> Any:
        """Return S Σ V − KL at coordinates x (Hensman et al. 2013, Eq. 3)."""
        q = self.q(theta, x)
        mu, v = self.marginals(theta, q, batch.X)
        V = anp.sum(self.likelihood.V(theta, batch.y, mu, v, batch.noise))
        return scale * V - self.kl(theta, q, batch.columns)

    def slopes(self, theta: Table, x: Any, batch: Batch) -> tuple[Floats, Floats, Floats]:
        """Return μ, α and β [P, b] at coordinates x."""
        mu, v = self.marginals(theta, self.q(theta, x), batch.X)
        alpha, beta = self.likelihood.gradients(theta, batch.y, mu, v, batch.noise)
        return mu, alpha, beta

    def gradient(self, theta: Table, x: Any, batch: Batch, scale: float) -> Any:
        """Return the gradient of the bound in x, with V by α and β: that of s Σ(αμ − ½βv) − KL."""
        _, alpha, beta = self.slopes(theta, x, batch)

        def linearised(x: Any) -> Any:
            q = self.q(theta, x)
            mu, v = self.marginals(theta, q, batch.X)
            return scale * anp.sum(alpha * mu - 0.5 * beta * v) - self.kl(theta, q, batch.columns)

        return grad(linearised)(x)


class OfSites(Family):
    """A family whose coordinates are a site (λ₁ᵢ, βᵢ) for every datum, which the M-step holds.

    Sites of Gaussian noise are held per unit of 1/σ² (Adam et al. 2021, Eq. 15).
    """

    def __init__(self, kernel: Kernel, likelihood: Likelihood, X: Floats) -> None:
        super().__init__(kernel, likelihood)
        self.X = X

    def start(self, theta: Table, n: int) -> Table:
        P = self.likelihood.latents
        return {"x": (np.zeros((P, n)), np.zeros((P, n)))}

    def moves(self, theta: Table, x: Any, batch: Batch, scale: float) -> tuple[Floats, Floats]:
        """Return the changes of (λ₁, β) in a step of rate 1; sites outside the batch decay to 0."""
        mu, alpha, beta = self.slopes(theta, x, batch)
        lambda1, precision = -x[0], -x[1]
        lambda1[:, batch.index] += scale * (beta * mu + alpha)
        precision[:, batch.index] += scale * beta
        return lambda1, precision

    def e_step(self, theta: Table, state: Table, batch: Batch, rate: float, scale: float) -> Table:
        """Move the sites (Adam et al. 2021, Eqs. 12–13)."""
        x = state["x"]
        moves = self.moves(theta, x, batch, scale)
        return {**state, "x": (x[0] + rate * moves[0], x[1] + rate * moves[1])}

    def hold(self, theta: Table, x: Any) -> Any:
        unit = theta.get("noise_variance", 1.0)
        return x[0] * unit, x[1] * unit

    def tie(self, theta: Table, held: Any) -> Any:
        unit = theta.get("noise_variance", 1.0)
        return held[0] / unit, held[1] / unit
