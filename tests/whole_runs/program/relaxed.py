"""Diagonal precision with a matrix T in place of an inverse (Cortinovis et al. 2026).

T is a dense inverse where the package's steps end within 1e-13 of one. Slopes are autograd's.
"""

from __future__ import annotations

from typing import Any

import autograd.numpy as anp
import numpy as np

from program.adam import Adam
from program.coupled import Coupled
from program.draws import Batch
from program.gaussians import diagonal, times
from program.kernels import Kernel
from program.likelihoods import Likelihood
from program.parameters import Table


class Relaxed(Coupled):
    """μ = Ra or a, and S = K − KRK, with R = 2T − T(K + diag s)T; the KL is its bound in T."""

    def __init__(
        self, kernel: Kernel, likelihood: Likelihood, *, first_s: float, precondition: bool
    ) -> None:
        super().__init__(kernel, likelihood)
        self.first_s, self.precondition = first_s, precondition

    def start(self, theta: Table, n: int) -> Table:
        shape = (self.likelihood.latents, len(theta["Z"]))
        moved = {"a": np.zeros(shape), "raw_s": np.full(shape, np.log(np.expm1(self.first_s)))}
        return {"x": self.hold(theta, moved), "adam": Adam(moved)}

    def hold(self, theta: Table, x: Any) -> Any:
        """Return the coordinates with T = (K + diag s)⁻¹."""
        return {**x, "T": np.linalg.inv(self.K(theta) + diagonal(np.logaddexp(0.0, x["raw_s"])))}

    def q(self, theta: Table, x: Any) -> Any:
        K, T, s = self.K(theta), x["T"], anp.logaddexp(0.0, x["raw_s"])
        K_s = K + diagonal(s)
        R = 2.0 * T - T @ K_s @ T
        mu = times(R, x["a"]) if self.precondition else x["a"]
        return mu @ K, K - K @ R @ K, (mu, s, T, K_s, R)

    def marginals(self, theta: Table, q: Any, X: Any) -> tuple[Any, Any]:
        return super().marginals(theta, q[:2], X)

    def kl(self, theta: Table, q: Any, columns: Any = None) -> Any:
        mu, s, T, K_s, R = q[2]
        K = self.K(theta)
        log_of_T = anp.sum(anp.linalg.slogdet(T)[1])
        traces = anp.sum(K_s * T) - anp.sum(R * K) - mu.shape[0] * mu.shape[1]
        return 0.5 * (anp.sum((mu @ K) * mu) + traces - log_of_T - anp.sum(anp.log(s)))

    def e_step(self, theta: Table, state: Table, batch: Batch, rate: float, scale: float) -> Table:
        held = {**state, "x": self.hold(theta, state["x"])}
        return super().e_step(theta, held, batch, rate, scale)
