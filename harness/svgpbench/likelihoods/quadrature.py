"""Expectations by Gauss–Hermite quadrature, sufficient for most likelihoods of one latent."""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from jaxtyping import Float
from pydantic import Field

from svgpbench.likelihoods.best_constant import best_constant
from svgpbench.likelihoods.centred import (
    Centre,
    LogDensityAlongQ,
    Rule,
    bend_of,
    expectation_rule,
    predictive_rule,
)
from svgpbench.likelihoods.likelihood import Expectations, Likelihood, PerDatum, PerLatent
from svgpbench.numerics.gaussian import LOG_2PI
from svgpbench.ops import Array, Ops, Tree
from svgpbench.tree import leaves

NodeCount = Annotated[int, Field(ge=2, le=400)]
"""Number of quadrature nodes."""


@functools.cache
def gauss_hermite(nodes: int) -> tuple[Float[Array, "S"], Float[Array, "S"]]:
    """Return the nodes and weights of expectations under N(0, 1)."""
    t, w = np.polynomial.hermite_e.hermegauss(nodes)
    return t, w / math.sqrt(2.0 * math.pi)


def rule(ops: Ops, nodes: int) -> tuple[Float[Array, "S"], Float[Array, "S"]]:
    """Return the nodes and weights on the device."""
    t, w = gauss_hermite(nodes)
    return ops.asarray(t), ops.asarray(w)


def with_known_slopes(
    ops: Ops,
    values: Callable[[Array, Array], tuple[Array, Array, Array]],
    mu: PerLatent,
    v: PerLatent,
) -> PerDatum:
    """Return V from `values(μ, v)` = (V, α, β), with α and −β/2 as its autodiff in μ and v.

    The result has a first-order expansion at the point itself. Its value is zero and its derivatives are
    the known ones, so autodiff does not pass through the nodes.
    """
    mu0, v0 = ops.stop_gradient(mu), ops.stop_gradient(v)
    V, alpha, beta = values(mu0, v0)
    alpha, beta = ops.stop_gradient(alpha), ops.stop_gradient(beta)
    return V + ops.sum(alpha * (mu - mu0) - 0.5 * beta * (v - v0), axis=0)


def log_sum_exp(ops: Ops, x: Array, *, axis: int, weights: Array | float = 1.0) -> Array:
    """Compute log Σ w exp(x) along an axis, for weights that broadcast against x; differentiable in x."""
    # the shift cancels in the gradient, and `max` has no derivative in `Ops`
    top = ops.max(ops.stop_gradient(x), axis=axis, keepdims=True)
    total = ops.sum(weights * ops.exp(x - top), axis=axis)
    return ops.sum(top, axis=axis) + ops.log(total)  # the sum only drops the axis


@dataclass(frozen=True)
class QuadratureLikelihood(Likelihood):
    """A factorised likelihood of one latent, by Gauss–Hermite quadrature with `nodes` nodes.

    Predictive densities have nodes of their own (`centred`), exact to 1e-6 if p(y | f) has one mode in f.

    β is the quadrature of t·∇log p, which is exactly −2 ∂V̂/∂v of the discretised V̂; the quadrature
    of −∇²log p is not, and it would break the equivalence of the natural-gradient steps. Adaptive nodes
    move with μ and v: there β differs from −2 ∂V̂/∂v by the error of the rule, which is below 1e-8.
    """

    nodes: NodeCount = 20

    @abstractmethod
    def log_density(
        self, ops: Ops, p: Tree, y: Float[Array, "b 1"], f: Float[Array, "P b S"]
    ) -> tuple[Float[Array, "P b S"], Float[Array, "P b S"]]:
        """Return log p(y | f) and ∇_f log p(y | f)."""

    def latent_mean(self, ops: Ops, p: Tree, y: PerDatum) -> Float[Array, "P"]:
        """Return the constant f that maximises Σ log p(y_i | f): log ȳ for Poisson counts.

        With one class the maximum is at infinity; see `best_constant`.
        """
        if self.support == "real":
            return super().latent_mean(ops, p, y)
        values, counts = np.unique(y, return_counts=True)

        def log_likelihood(f: float) -> tuple[float, float]:
            at_f = np.full((1, len(values), 1), f)
            log_density, slope = self.log_density(ops, p, values[:, None], at_f)
            return float(counts @ log_density[0, :, 0]), float(counts @ slope[0, :, 0])

        return np.full(self.latents, best_constant(log_likelihood))

    def value_and_slopes(
        self, ops: Ops, p: Tree, y: PerDatum, mu: PerLatent, v: PerLatent
    ) -> tuple[PerDatum, PerLatent, PerLatent]:
        """Return (V, α, β) from one pass over the nodes; a likelihood with a closed V overrides it."""
        sd = ops.sqrt(v)[..., None]
        if self.integrals == "adaptive":
            # nodes are constants of the gradient: an exact integral does not depend on where they
            # lie
            t, w = self._moving_nodes(ops, *ops.stop_gradient((p, y, mu, v)))
        else:
            t, w = rule(ops, self.nodes)
        value, slope = self.log_density(ops, p, y[:, None], mu[..., None] + sd * t)
        V = ops.sum(w * value, axis=(0, -1))
        alpha = ops.sum(w * slope, axis=-1)
        # by Stein's lemma E[t ∇log p] = √v E[∇² log p]: no second derivative of log p is needed
        beta = -ops.sum((w * t) * slope, axis=-1) / sd[..., 0]
        return V, alpha, beta

    def bend(self, ops: Ops, p: Tree, y: PerDatum) -> tuple[Array, Array] | tuple[()]:
        """Return f where log p(y | f) is most curved and the width of that place, if they are known.

        By default, adaptive integrals find them by bisection, which takes longer than the integral.
        """
        return ()

    def _moving_nodes(self, ops: Ops, p: Tree, y: PerDatum, mu: PerLatent, v: PerLatent) -> Rule:
        """Return nodes t and their weights that are dense where log p(y | f) is most curved."""
        sd = ops.sqrt(v)
        if known := self.bend(ops, p, y):
            f, width = known
            place = Centre((f - mu) / sd, width / sd)
        else:
            place = bend_of(ops, self._along_q(ops, p, y, mu, v), mu)
        return expectation_rule(ops, place, sd)

    def gradients(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> tuple[Array, Array]:
        _, alpha, beta = self.value_and_slopes(ops, p, y, mu, v)
        return alpha, beta

    def variational_expectations(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> Array:
        return with_known_slopes(ops, lambda m, s: self.value_and_slopes(ops, p, y, m, s), mu, v)

    def expectations(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> Expectations:
        if leaves(p):
            return super().expectations(ops, p, y, mu, v)
        V, alpha, beta = self.value_and_slopes(ops, p, y, mu, v)
        return Expectations(ops.sum(V), p, alpha, beta)

    def log_predictive_density(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> Array:
        log_p = self._along_q(ops, p, y, mu, v)
        t, weights = predictive_rule(ops, log_p, mu)
        log_product = log_p(t)[0] - 0.5 * (t * t + LOG_2PI)
        return ops.sum(log_sum_exp(ops, log_product, axis=-1, weights=weights), axis=0)

    def _along_q(
        self, ops: Ops, p: Tree, y: PerDatum, mu: PerLatent, v: PerLatent
    ) -> LogDensityAlongQ:
        """Return t → log p(y | f) and its derivative in t, where f = μ + √v t."""
        centre, sd, targets = mu[..., None], ops.sqrt(v)[..., None], y[:, None]

        def log_p(t: Float[Array, "P b S"]) -> tuple[Array, Array]:
            with np.errstate(all="ignore"):  # NumPy warns where exp(f) is infinite, far from q
                value, slope = self.log_density(ops, p, targets, centre + sd * t)
            return value, sd * slope

        return log_p
