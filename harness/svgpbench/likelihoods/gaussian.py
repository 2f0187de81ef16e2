"""Gaussian noise: everything in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from jaxtyping import Float
from scipy.special import ndtri

from svgpbench.config import Positive
from svgpbench.likelihoods.likelihood import Expectations, Likelihood, Support
from svgpbench.likelihoods.spread import checked_levels
from svgpbench.numerics.gaussian import LOG_2PI
from svgpbench.ops import Array, Ops, Tree


class GaussianParameters(NamedTuple):
    """Parameters of Gaussian noise."""

    noise_variance: Float[Array, ""] | float


@dataclass(frozen=True)
class GaussianLikelihood(Likelihood):
    """y = f + N(0, σ²)."""

    noise_variance: Positive = 1.0
    name: ClassVar[str] = "gaussian"
    task: ClassVar[Literal["regression", "classification"]] = "regression"
    support: ClassVar[Support] = "real"
    closed_form: ClassVar[bool] = True
    mean_is_f: ClassVar[bool] = True

    def initial_parameters(self) -> Tree:
        return GaussianParameters(self.noise_variance)

    def variational_expectations(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> Array:
        s2 = p.noise_variance
        error = y - mu
        V = -0.5 * (LOG_2PI + ops.log(s2)) - (error * error + v) / (2.0 * s2)
        return ops.sum(V, axis=0)

    def gradients(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> tuple[Array, Array]:
        precision = 1.0 / p.noise_variance
        return (y - mu) * precision, ops.broadcast_to(precision, mu.shape)

    def expectations(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> Expectations:
        s2 = p.noise_variance
        V = self.variational_expectations(ops, p, y, mu, v)
        alpha, beta = self.gradients(ops, p, y, mu, v)
        error = y - mu
        slope = ops.sum((error * error + v) / s2 - 1.0) / (2.0 * s2)
        return Expectations(ops.sum(V), GaussianParameters(slope), alpha, beta)

    def log_predictive_density(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> Array:
        total = v + p.noise_variance
        error = y - mu
        return ops.sum(-0.5 * (LOG_2PI + ops.log(total) + error * error / total), axis=0)

    def predict(self, ops: Ops, p: Tree, mu: Array, v: Array) -> Array:
        return mu[0, ...]

    def predictive_variance(self, ops: Ops, p: Tree, mu: Array, v: Array) -> Array | tuple[()]:
        return v[0, ...] + p.noise_variance

    def predictive_sd(self, ops: Ops, p: Tree, mu: Array, v: Array) -> Array:
        return ops.sqrt(v[0, ...] + p.noise_variance)

    def predictive_quantiles(
        self, ops: Ops, p: Tree, levels: Sequence[float], mu: Array, v: Array
    ) -> Array:
        standard = ops.asarray(ndtri(checked_levels(levels)))
        return mu + standard[:, None] * self.predictive_sd(ops, p, mu, v)

    def site_precision(self, ops: Ops, p: Tree) -> Array:
        return 1.0 / p.noise_variance
