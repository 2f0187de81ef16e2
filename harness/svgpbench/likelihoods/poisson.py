"""Counts with a log link: the shortest likelihood, and a template for a new one.

A new likelihood needs `log_density` with its slope in f, the mean of y, an entry point, and a NamedTuple of
parameters if it has any. Quadrature gives V, α, β and the predictive density.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from svgpbench.likelihoods.likelihood import PerDatum, PerLatent, Support
from svgpbench.likelihoods.quadrature import QuadratureLikelihood
from svgpbench.ops import Array, Ops, Tree


@dataclass(frozen=True)
class Poisson(QuadratureLikelihood):
    """Counts y = 0, 1, 2, … with mean exp(f)."""

    name: ClassVar[str] = "poisson"
    task: ClassVar[Literal["regression", "classification"]] = "regression"
    support: ClassVar[Support] = "counts"

    def log_density(self, ops: Ops, p: Tree, y: Array, f: Array) -> tuple[Array, Array]:
        rate = ops.exp(f)
        return y * f - rate - ops.lgamma(y + 1.0), y - rate

    def value_and_slopes(
        self, ops: Ops, p: Tree, y: PerDatum, mu: PerLatent, v: PerLatent
    ) -> tuple[PerDatum, PerLatent, PerLatent]:
        if self.integrals == "fixed":
            return super().value_and_slopes(ops, p, y, mu, v)
        # E exp(f) under N(μ, v); it is also −2∂V/∂v, so that V, α and β all follow from it
        rate = ops.exp(mu + 0.5 * v)
        return ops.sum(y * mu - rate, axis=0) - ops.lgamma(y + 1.0), y - rate, rate

    def predict(self, ops: Ops, p: Tree, mu: Array, v: Array) -> Array:
        return ops.exp(mu + 0.5 * v)[0, ...]

    def predictive_sd(self, ops: Ops, p: Tree, mu: Array, v: Array) -> Array:
        mean = self.predict(ops, p, mu, v)  # E Var(y | f) = mean, Var E(y | f) = mean² (eᵛ − 1)
        return ops.sqrt(mean + mean * mean * (ops.exp(v[0, ...]) - 1.0))
