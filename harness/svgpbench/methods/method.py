"""What a method states: a parameterization of q(u), its E-step, and what its M-step holds fixed.

A method is a frozen value object of pure functions over `Ops`. It sees the factor (L, W, κ) of the
kernel's blocks and the likelihood bound to its parameters, never θ; it keeps its state in NamedTuples
of arrays with a leading latent axis P.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from svgpbench.gaussian import Factor, Prior
from svgpbench.likelihoods import Conditional
from svgpbench.ops import Array, Ops, Tree


@dataclass(frozen=True)
class Method(ABC):
    """A sparse variational method on M inducing variables u ~ N(0, K)."""

    name: ClassVar[str]
    version: ClassVar[int]  # raised whenever the numbers change
    needs_all_data: ClassVar[bool] = False

    @abstractmethod
    def initial_state(self, ops: Ops, p: Prior, latents: int, n: int) -> Tree:
        """The state of q(u) = p(u), for n data."""

    @abstractmethod
    def e_step(
        self,
        ops: Ops,
        f: Factor,
        likelihood: Conditional,
        y: Array,
        index: Array,
        state: Tree,
        rate: Array,
        scale: Array,
    ) -> Tree:
        """One step on q at fixed θ from the batch `y` [b], rows `index` [b] of the data.

        `scale` [] is n/b.
        """

    @abstractmethod
    def factorise(self, ops: Ops, L: Array, state: Tree) -> Tree:
        """What marginals, KL and q(u) share, from L = chol K [Q, M, M]: computed once a state."""

    @abstractmethod
    def marginals(self, ops: Ops, f: Factor, q: Tree) -> tuple[Array, Array]:
        """Mean and variance of q(f_i), each [P, b], from a factorised state."""

    @abstractmethod
    def kl(self, ops: Ops, q: Tree) -> Array:
        """KL[q(u) ‖ p(u)] [], summed over latents, from a factorised state."""

    @abstractmethod
    def posterior(self, ops: Ops, L: Array, q: Tree) -> tuple[Array, Array]:
        """Mean [P, M] and covariance [P, M, M] of q(u), from a factorised state."""

    def hold(self, ops: Ops, L: Array, likelihood: Conditional, state: Tree) -> Tree:
        """What the M-step keeps fixed while θ moves; the state itself unless a method says more."""
        return state

    def tie(self, ops: Ops, f: Factor, likelihood: Conditional, held: Tree) -> Tree:
        """The state at another θ from what is held fixed."""
        return held


def elbo(
    ops: Ops,
    method: Method,
    f: Factor,
    likelihood: Conditional,
    y: Array,
    state: Tree,
    scale: Array,
) -> Array:
    """S Σ_i V_i − KL[q(u) ‖ p(u)] []; an unbiased estimate of the bound for s = n/b.

    Source: Hensman et al. 2013, Eq. 3; Adam et al. 2021, Eq. 8.
    """
    q = method.factorise(ops, f.L, state)
    mu, v = method.marginals(ops, f, q)
    V = likelihood.variational_expectations(ops, y, mu, v)
    return scale * ops.sum(V) - method.kl(ops, q)
