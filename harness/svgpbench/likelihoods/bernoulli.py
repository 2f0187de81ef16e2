"""Binary labels y ∈ {0, 1}: probit (exact or squashed) and logit links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from scipy.special import ndtri

from svgpbench.likelihoods.likelihood import Squash, Support
from svgpbench.likelihoods.quadrature import QuadratureLikelihood
from svgpbench.numerics.normal import squashed_log_ndtr
from svgpbench.ops import Array, Ops, Tree


@dataclass(frozen=True)
class BernoulliProbit(QuadratureLikelihood):
    """p(y = 1 | f) = ε + (1 − 2ε) Φ(f).

    `squash` ε is 0 for the exact probit; 1e-3 is GPflow's, which is not log-concave.
    """

    squash: Squash = 0.0
    name: ClassVar[str] = "bernoulli-probit"
    task: ClassVar[Literal["regression", "classification"]] = "classification"
    support: ClassVar[Support] = "binary"

    @property
    def log_concave(self) -> bool:
        return not self.squash

    def log_density(self, ops: Ops, p: Tree, y: Array, f: Array) -> tuple[Array, Array]:
        sign = 2.0 * y - 1.0
        value, slope = squashed_log_ndtr(ops, sign * f, self.squash)
        return value, sign * slope

    def bend(self, ops: Ops, p: Tree, y: Array) -> tuple[Array, Array]:
        if not self.squash:
            return 0.0 * y, 0.0 * y + 1.0
        return (2.0 * y - 1.0) * float(ndtri(self.squash)), 0.0 * y + 0.3  # where Φ is ε

    def log_predictive_density(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> Array:
        # ∫ Φ(f) N(f; μ, v) df = Φ(μ/√(1 + v)) (Rasmussen and Williams 2006, Sec. 3.9), and the
        # squashed probit is affine in Φ
        margin = (2.0 * y - 1.0) * mu / ops.sqrt(1.0 + v)
        return ops.sum(squashed_log_ndtr(ops, margin, self.squash)[0], axis=0)

    def predict(self, ops: Ops, p: Tree, mu: Array, v: Array) -> Array:
        return ops.exp(self.log_predictive_density(ops, p, mu[0, ...] * 0.0 + 1.0, mu, v))


@dataclass(frozen=True)
class BernoulliLogit(QuadratureLikelihood):
    """p(y = 1 | f) = 1/(1 + e⁻ᶠ)."""

    name: ClassVar[str] = "bernoulli-logit"
    task: ClassVar[Literal["regression", "classification"]] = "classification"
    support: ClassVar[Support] = "binary"

    def log_density(self, ops: Ops, p: Tree, y: Array, f: Array) -> tuple[Array, Array]:
        margin = (2.0 * y - 1.0) * f
        # the logistic function σ has d log σ(m)/dm = 1 − σ(m), and exp(value) is σ(m)
        value = -ops.softplus(-margin)
        return value, (2.0 * y - 1.0) * (1.0 - ops.exp(value))

    def bend(self, ops: Ops, p: Tree, y: Array) -> tuple[Array, Array]:
        return 0.0 * y, 0.0 * y + 1.0

    def predict(self, ops: Ops, p: Tree, mu: Array, v: Array) -> Array:
        return ops.exp(self.log_predictive_density(ops, p, mu[0, ...] * 0.0 + 1.0, mu, v))
