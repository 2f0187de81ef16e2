"""Gaussian noise whose variance depends on the inputs, by a second latent function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from svgpbench.config import Positive
from svgpbench.likelihoods.centred import predictive_rule
from svgpbench.likelihoods.gaussian import GaussianParameters
from svgpbench.likelihoods.likelihood import Expectations, Likelihood, PerDatum, PerLatent, Support
from svgpbench.likelihoods.quadrature import log_sum_exp
from svgpbench.numerics.gaussian import LOG_2PI
from svgpbench.ops import Array, Ops, Tree


@dataclass(frozen=True)
class HeteroskedasticGaussian(Likelihood):
    """y = f₁ + N(0, σ² exp(f₂)); the noise variance σ² where f₂ = 0 is learned.

    q(f₁) and q(f₂) are independent. With ρ = E[exp(−f₂)]/σ² = exp(−μ₂ + v₂/2)/σ² and e = (y − μ₁)² + v₁,
    V = −½ (log 2πσ² + μ₂ + ρe). So β is (ρ, ½ρe), and never negative.

    Source: Lázaro-Gredilla and Titsias 2011 (the bound of an exponential noise variance).
    """

    noise_variance: Positive = 1.0
    name: ClassVar[str] = "heteroskedastic"
    task: ClassVar[Literal["regression", "classification"]] = "regression"
    support: ClassVar[Support] = "real"
    closed_form: ClassVar[bool] = True
    mean_is_f: ClassVar[bool] = True

    @property
    def latents(self) -> int:
        return 2

    def initial_parameters(self) -> Tree:
        return GaussianParameters(self.noise_variance)

    def _precision_and_loss(
        self, ops: Ops, p: Tree, y: PerDatum, mu: PerLatent, v: PerLatent
    ) -> tuple[PerDatum, PerDatum]:
        """Return the expected noise precision ρ, and ρ E(y − f₁)²."""
        error = y - mu[0, ...]
        precision = ops.exp(0.5 * v[1, ...] - mu[1, ...]) / p.noise_variance
        return precision, precision * (error * error + v[0, ...])

    def variational_expectations(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> Array:
        _, loss = self._precision_and_loss(ops, p, y, mu, v)
        return -0.5 * (LOG_2PI + ops.log(p.noise_variance) + mu[1, ...] + loss)

    def gradients(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> tuple[Array, Array]:
        precision, loss = self._precision_and_loss(ops, p, y, mu, v)
        alpha = [precision * (y - mu[0, ...]), 0.5 * (loss - 1.0)]
        beta = [precision, 0.5 * loss]
        both = (ops.concat([x[None, ...] for x in rows], axis=0) for rows in (alpha, beta))
        return next(both), next(both)

    def expectations(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> Expectations:
        V = self.variational_expectations(ops, p, y, mu, v)
        alpha, beta = self.gradients(ops, p, y, mu, v)
        # σ² and exp(f₂) multiply each other: a rise of log σ² is one of f₂ at every datum
        slope = ops.sum(alpha[1, ...]) / p.noise_variance
        return Expectations(ops.sum(V), GaussianParameters(slope), alpha, beta)

    def log_predictive_density(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> Array:
        # given f₂, p(y) is Gaussian: what is left is an integral over f₂ alone
        square = ((y - mu[0, ...]) ** 2)[:, None]
        v1, mu2, sd2 = v[0, ...][:, None], mu[1:, :, None], ops.sqrt(v[1:, ...])[..., None]

        def log_p(t: Array) -> tuple[Array, Array]:
            # beyond 600 exp is near the largest float64, and p(y) is 0
            f2 = -ops.maximum(-(mu2 + sd2 * t), -600.0)
            noise = p.noise_variance * ops.exp(f2)
            total = v1 + noise
            value = -0.5 * (LOG_2PI + ops.log(total) + square / total)
            return value, sd2 * (0.5 * (noise / total) * (square / total - 1.0))

        t, weights = predictive_rule(ops, log_p, mu[1:, ...])
        log_product = log_p(t)[0] - 0.5 * (t * t + LOG_2PI)
        return ops.sum(log_sum_exp(ops, log_product, axis=-1, weights=weights), axis=0)

    def predict(self, ops: Ops, p: Tree, mu: Array, v: Array) -> Array:
        return mu[0, ...]

    def predictive_sd(self, ops: Ops, p: Tree, mu: Array, v: Array) -> Array:
        return ops.sqrt(v[0, ...] + p.noise_variance * ops.exp(mu[1, ...] + 0.5 * v[1, ...]))
