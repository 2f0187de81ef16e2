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
        at = {"a": np.zeros(shape), "raw_s": np.full(shape, np.log(np.expm1(self.first_s)))}
        return {"at": at, "adam": Adam(at), "T": self.inverse(theta, at)}

    def with_s(self, theta: Table, at: Table) -> tuple[Any, Any]:
        """S, and K + diag s."""
        s, K = anp.logaddexp(0.0, at["raw_s"]), self.K(theta)
        return s, K + s[:, :, None] * np.eye(len(K))

    def inverse(self, theta: Table, at: Table) -> Any:
        return np.linalg.inv(self.with_s(theta, at)[1])

    def q(self, theta: Table, x: Any) -> Any:
        T, (s, K_s) = x["T"], self.with_s(theta, x)
        K, R = self.K(theta), 2.0 * T - T @ K_s @ T
        mu = (R @ x["a"][:, :, None])[:, :, 0] if self.precondition else x["a"]
        return mu @ K, K - K @ R @ K, (mu, s, T, K_s, R)

    def marginals(self, theta: Table, q: Any, X: Any) -> tuple[Any, Any]:
        return super().marginals(theta, q[:2], X)

    def kl(self, theta: Table, q: Any, columns: Any = None) -> Any:
        mu, s, T, K_s, R = q[2]
        K = self.K(theta)
        log_of_T = anp.sum(anp.linalg.slogdet(T)[1])
        traces = anp.sum(K_s * T) - anp.sum(R * K) - mu.shape[0] * mu.shape[1]
        return 0.5 * (anp.sum((mu @ K) * mu) + traces - log_of_T - anp.sum(anp.log(s)))

    def coordinates(self, theta: Table, state: Table) -> Any:
        return {**state["at"], "T": state["T"]}

    def e_step(self, theta: Table, state: Table, batch: Batch, rate: float, scale: float) -> Table:
        T = self.inverse(theta, state["at"])
        slopes = self.gradient(theta, {**state["at"], "T": T}, batch, scale)
        moved = {name: slopes[name] for name in state["at"]}
        return {**state, "at": state["adam"].step(state["at"], moved, rate), "T": T}

    def hold(self, theta: Table, state: Table) -> Any:
        return {**state["at"], "T": self.inverse(theta, state["at"])}

    def tie(self, theta: Table, held: Any, X: Any) -> Any:
        return held

    def retied(self, theta: Table, held: Any, X: Any, state: Table) -> Table:
        return {**state, "T": held["T"]}
