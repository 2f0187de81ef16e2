"""Binary labels y ∈ {0, 1}: probit (exact or squashed) and logit links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from svgpbench.likelihoods.likelihood import QuadratureLikelihood
from svgpbench.normal import log_ndtr, log_ndtr_and_slope
from svgpbench.ops import Array, Ops, Tree


@dataclass(frozen=True)
class BernoulliProbit(QuadratureLikelihood):
    """p(y = 1 | f) = ε + (1 − 2ε) Φ(f).

    `squash` ε is 0 for the exact probit; 1e-3 is GPflow's, which is not log-concave.
    """

    squash: float = 0.0
    name: ClassVar[str] = "bernoulli-probit"
    task: ClassVar[Literal["regression", "classification"]] = "classification"
    support: ClassVar[Literal["real", "binary", "classes", "counts"]] = "binary"

    def log_density(self, ops: Ops, p: Tree, y: Array, f: Array) -> tuple[Array, Array]:
        sign = 2.0 * y - 1.0
        value, slope = log_ndtr_and_slope(ops, sign * f)
        if self.squash:
            density = (1.0 - 2.0 * self.squash) * ops.exp(value)  # compiled away where ε is 0
            value = ops.log(self.squash + density)
            slope = slope * density / (self.squash + density)
        return value, sign * slope

    def log_predictive_density(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> Array:
        value = log_ndtr(ops, (2.0 * y - 1.0) * mu / ops.sqrt(1.0 + v))
        if self.squash:
            value = ops.log(self.squash + (1.0 - 2.0 * self.squash) * ops.exp(value))
        return ops.sum(value, axis=0)

    def predict(self, ops: Ops, p: Tree, mu: Array, v: Array) -> Array:
        return ops.exp(self.log_predictive_density(ops, p, mu[0] * 0.0 + 1.0, mu, v))


@dataclass(frozen=True)
class BernoulliLogit(QuadratureLikelihood):
    """p(y = 1 | f) = 1/(1 + e⁻ᶠ)."""

    name: ClassVar[str] = "bernoulli-logit"
    task: ClassVar[Literal["regression", "classification"]] = "classification"
    support: ClassVar[Literal["real", "binary", "classes", "counts"]] = "binary"

    def log_density(self, ops: Ops, p: Tree, y: Array, f: Array) -> tuple[Array, Array]:
        margin = (2.0 * y - 1.0) * f
        value = -ops.softplus(-margin)
        return value, (2.0 * y - 1.0) * (1.0 - ops.exp(value))

    def predict(self, ops: Ops, p: Tree, mu: Array, v: Array) -> Array:
        return ops.exp(self.log_predictive_density(ops, p, mu[0] * 0.0 + 1.0, mu, v))
