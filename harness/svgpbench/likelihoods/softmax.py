"""Softmax over C classes: no closed form, so Monte Carlo with noise from the batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from jaxtyping import Float
from pydantic import PositiveInt

from svgpbench.likelihoods.largest import of_normal_plus_gumbel
from svgpbench.likelihoods.likelihood import (
    Expectations,
    NoParameters,
    PerDatum,
    PerLatent,
    Predicted,
)
from svgpbench.likelihoods.multiclass import MulticlassLikelihood
from svgpbench.likelihoods.quadrature import log_sum_exp, with_known_slopes
from svgpbench.numerics.gaussian import matvec
from svgpbench.ops import Array, Ops, Tree


class WeightedNoise(NamedTuple):
    """Standard normal draws, one set for all rows of a batch, and their weights, which sum to 1."""

    noise: Float[Array, "S C"]
    weights: Float[Array, "S"]


@dataclass(frozen=True)
class Softmax(MulticlassLikelihood):
    """p(y = c | f) = exp(f_c) / Σ_k exp(f_k), by `samples` draws.

    α and β are the averages of ∇log p and −∇²log p (the diagonal), so β ≥ 0. β is not −2 ∂V̂/∂v of the
    sampled V̂, whose noise is much larger: a gradient by autodiff agrees with it only to O(S^−½).

    With `integrals` "fixed", predictions take the draws of training: of three equal classes at 100 draws,
    probabilities are off by 0.02 and log densities by 0.1; at 10,000 draws probabilities by 0.002.
    "adaptive" predictions are integrals without draws, exact to 2e-7 in log p down to
    p = 1e-13, for √v ≤ 300.
    """

    samples: PositiveInt = 100  # what GPflow's Monte Carlo likelihoods draw
    name: ClassVar[str] = "softmax"

    def bind(self, parameters: Tree, noise: Array | tuple[()]) -> Tree:
        if isinstance(noise, tuple):  # for callers that do not use the data
            return parameters
        # made from the noise, as there is no `ops` here: the weights get its backend, dtype and
        # device
        return WeightedNoise(noise, 0.0 * noise[:, 0] + 1.0 / noise.shape[0])

    def unbind(self, gradient: Tree) -> Tree:
        return NoParameters()

    def _probabilities(
        self, ops: Ops, p: WeightedNoise, mu: PerLatent, v: PerLatent
    ) -> tuple[Float[Array, "C b S"], Float[Array, "b S"]]:
        """Return p(c | f) and log Σ_k exp(f_k) at every draw, by one exponential."""
        noise = ops.matrix_transpose(p.noise)[:, None, :]
        f = mu[..., None] + ops.sqrt(v)[..., None] * noise  # [C, b, S], draws from q(f)
        top = ops.max(f, axis=0, keepdims=True)
        probabilities = ops.exp(f - top)
        total = ops.sum(probabilities, axis=0, keepdims=True)
        return probabilities / total, (top + ops.log(total))[0, ...]

    def variational_expectations(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> Array:
        return with_known_slopes(ops, lambda m, s: self._expectations(ops, p, y, m, s), mu, v)

    def expectations(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> Expectations:
        V, alpha, beta = self._expectations(ops, p, y, mu, v)
        return Expectations(ops.sum(V), NoParameters(), alpha, beta)

    def _expectations(
        self, ops: Ops, p: WeightedNoise, y: PerDatum, mu: PerLatent, v: PerLatent
    ) -> tuple[PerDatum, PerLatent, PerLatent]:
        """Return (V̂, ∂V̂/∂μ, −2 ∂V̂/∂v) from one pass over the draws."""
        label, sd = self.one_hot(ops, y), ops.sqrt(v)
        weighted = ops.matrix_transpose(p.weights[:, None] * p.noise)[..., None]  # [C, S, 1]
        tilt = ops.sum(weighted, axis=-2)  # [C, 1], the draws' mean
        probabilities, log_total = self._probabilities(ops, p, mu, v)
        # a finite sample's mean is not 0: left out, V̂ would not be the average over the draws of
        # which α and β are the slopes
        V = ops.sum(label * (mu + sd * tilt), axis=0) - matvec(log_total, p.weights)
        weights = ops.broadcast_to(p.weights[:, None], weighted.shape)
        sums = probabilities @ ops.concat([weights, weighted], axis=-1)  # [C, b, 2]
        return V, label - sums[..., 0], (sums[..., 1] - label * tilt) / sd

    def gradients(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> tuple[Array, Array]:
        probabilities, _ = self._probabilities(ops, p, mu, v)
        alpha = self.one_hot(ops, y) - matvec(probabilities, p.weights)
        return alpha, matvec(probabilities * (1.0 - probabilities), p.weights)

    def log_predictive_density(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> Array:
        return self.predicted(ops, p, y, mu, v).log_density

    def predict(self, ops: Ops, p: Tree, mu: Array, v: Array) -> Array:
        if self.integrals == "adaptive":
            return of_normal_plus_gumbel(ops, mu, v)
        return matvec(self._probabilities(ops, p, mu, v)[0], p.weights)

    def predicted(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> Predicted:
        if self.integrals == "adaptive":
            found = of_normal_plus_gumbel(ops, mu, v)
            return Predicted(ops.log(ops.sum(self.one_hot(ops, y) * found, axis=0)), found)
        probabilities, log_total = self._probabilities(ops, p, mu, v)  # [C, b, S], [b, S]
        label = self.one_hot(ops, y)
        sd = ops.matrix_transpose(label * ops.sqrt(v))  # [b, C]
        of_label = ops.sum(label * mu, axis=0)[:, None] + sd @ ops.matrix_transpose(p.noise)
        log_density = log_sum_exp(ops, of_label - log_total, axis=-1, weights=p.weights)
        return Predicted(log_density, matvec(probabilities, p.weights))
