"""What a likelihood states, and the quadrature that those without closed forms share.

Notation: q(f_i) = N(μ_i, v_i) and V_i = E log p(y_i | f_i). Then α_i = ∂V_i/∂μ_i and
β_i = −2 ∂V_i/∂v_i (Bonnet, Price). Shapes: y [b]; μ, v, α, β [P, b]; V [b].
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from svgpbench.errors import unknown
from svgpbench.ops import Array, Ops, Tree

NEGATIVE_BETA = ("damp", "clip", "raw")
"""Where log p is not concave, β may be negative. `damp` keeps it and halves a natural-gradient step
until the precision is positive definite; `clip` puts it to 0, so that the fixed point is not
stationary in S; `raw` keeps it and takes the step as it is."""


class NoParameters(NamedTuple):
    """The parameters of a likelihood that has none."""


@dataclass(frozen=True)
class Likelihood(ABC):
    """p(y | f), a value object: its parameters are passed in."""

    name: ClassVar[str]
    task: ClassVar[Literal["regression", "classification"]]
    support: ClassVar[Literal["real", "binary", "classes", "counts"]]  # what y holds
    log_concave: ClassVar[bool] = True  # β ≥ 0 everywhere
    samples: ClassVar[int] = 0  # rows of noise that a batch brings, 0 where nothing is sampled

    negative_beta: str = "damp"

    def __post_init__(self) -> None:
        if self.negative_beta not in NEGATIVE_BETA:
            raise unknown("treatment of negative β", self.negative_beta, NEGATIVE_BETA)

    @property
    def latents(self) -> int:
        """Number P of latent functions."""
        return 1

    def bind(self, parameters: Tree, noise: Array | tuple[()]) -> Tree:
        """What V depends on besides y, μ and v: the parameters, and a batch's noise if it samples."""
        return parameters

    def initial_parameters(self) -> Tree:
        """Starting parameters as plain floats in a NamedTuple."""
        return NoParameters()

    @abstractmethod
    def variational_expectations(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> Array:
        """V [b], differentiable in the parameters, μ and v."""

    @abstractmethod
    def gradients(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> tuple[Array, Array]:
        """(α, β), each [P, b]."""

    @abstractmethod
    def log_predictive_density(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> Array:
        """Log ∫ p(y | f) N(f; μ, v) df [b]: the log of the integral, not the integral of the log."""

    @abstractmethod
    def predict(self, ops: Ops, p: Tree, mu: Array, v: Array) -> Array:
        """Mean of y [b], probability of class 1 [b], or probabilities of several classes [C, b]."""

    def site_precision(self, ops: Ops, p: Tree) -> Array:
        """Factor [] of every site that the parameters alone determine: 1/σ² for Gaussian noise."""
        return ops.zeros(()) + 1.0


@dataclass(frozen=True)
class Conditional:
    """A likelihood bound to its parameters: all that a method sees of them."""

    likelihood: Likelihood
    parameters: Any

    @property
    def damps(self) -> bool:
        """Whether natural-gradient steps must watch the precision: raw β that may be negative."""
        return not self.likelihood.log_concave and self.likelihood.negative_beta == "damp"

    def variational_expectations(self, ops: Ops, y: Array, mu: Array, v: Array) -> Array:
        """V [b]."""
        return self.likelihood.variational_expectations(ops, self.parameters, y, mu, v)

    def gradients(self, ops: Ops, y: Array, mu: Array, v: Array) -> tuple[Array, Array]:
        """(α, β), each [P, b]; β at least 0 where negative values are clipped."""
        alpha, beta = self.likelihood.gradients(ops, self.parameters, y, mu, v)
        if self.likelihood.negative_beta == "clip" and not self.likelihood.log_concave:
            beta = ops.maximum(beta, 0.0)
        return alpha, beta

    def log_predictive_density(self, ops: Ops, y: Array, mu: Array, v: Array) -> Array:
        """Log p(y) [b] under q(f)."""
        return self.likelihood.log_predictive_density(ops, self.parameters, y, mu, v)

    def predict(self, ops: Ops, mu: Array, v: Array) -> Array:
        """Point predictions [b]."""
        return self.likelihood.predict(ops, self.parameters, mu, v)

    def site_precision(self, ops: Ops) -> Array:
        """Factor [] of every site."""
        return self.likelihood.site_precision(ops, self.parameters)


def log_sum_exp(ops: Ops, x: Array, weights: Array) -> Array:
    """Log Σ_s w_s exp(x_s) over the last axis, for x ≤ 0 of moderate range."""
    return ops.log(ops.sum(weights * ops.exp(x), axis=-1))


@functools.cache
def gauss_hermite(nodes: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Nodes and weights [nodes] of expectations under N(0, 1)."""
    t, w = np.polynomial.hermite_e.hermegauss(nodes)
    return t, w / math.sqrt(2.0 * math.pi)


@dataclass(frozen=True)
class QuadratureLikelihood(Likelihood):
    """A factorised likelihood of one latent, by Gauss–Hermite quadrature of `nodes` nodes.

    β is the quadrature of t·∇log p, which is exactly −2 ∂V̂/∂v of the discretised V̂; the quadrature
    of −∇²log p is not, and would break the equivalence of the natural-gradient steps.
    """

    nodes: int = 20

    @abstractmethod
    def log_density(self, ops: Ops, p: Tree, y: Array, f: Array) -> tuple[Array, Array]:
        """Log p(y | f) and ∇_f log p(y | f) for f [P, b, S] and y [b, 1]."""

    def _rule(self, ops: Ops) -> tuple[Array, Array]:
        t, w = gauss_hermite(self.nodes)
        return ops.asarray(t), ops.asarray(w)

    def _at_nodes(
        self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array
    ) -> tuple[Array, Array, Array]:
        """(V, α, β), each [P, b], from one pass over the nodes."""
        t, w = self._rule(ops)
        sd = ops.sqrt(v)[..., None]
        value, slope = self.log_density(ops, p, y[:, None], mu[..., None] + sd * t)
        V = ops.sum(w * value, axis=-1)
        alpha = ops.sum(w * slope, axis=-1)
        beta = -ops.sum((w * t) * slope, axis=-1) / sd[..., 0]
        return V, alpha, beta

    def gradients(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> tuple[Array, Array]:
        _, alpha, beta = self._at_nodes(ops, p, y, mu, v)
        return alpha, beta

    def variational_expectations(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> Array:
        mu0, v0 = ops.stop_gradient(mu), ops.stop_gradient(v)
        V, alpha, beta = self._at_nodes(ops, p, y, mu0, v0)
        alpha, beta = ops.stop_gradient(alpha), ops.stop_gradient(beta)
        # a first-order expansion at the point itself: adds zero, and carries the known derivatives,
        # so that no autodiff passes through the nodes
        return ops.sum(V + alpha * (mu - mu0) - 0.5 * beta * (v - v0), axis=0)

    def log_predictive_density(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> Array:
        t, w = self._rule(ops)
        value, _ = self.log_density(ops, p, y[:, None], mu[..., None] + ops.sqrt(v)[..., None] * t)
        return ops.sum(log_sum_exp(ops, value, w), axis=0)
