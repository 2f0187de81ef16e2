"""Softmax over C classes: no closed form, so Monte Carlo with noise that the batch brings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from pydantic import PositiveInt

from svgpbench.likelihoods.likelihood import NoParameters
from svgpbench.likelihoods.multiclass import MulticlassLikelihood
from svgpbench.likelihoods.quadrature import log_sum_exp
from svgpbench.ops import Array, Ops, Tree


class WeightedNoise(NamedTuple):
    """Standard normal draws, one set for all rows of a batch, and their weights, which sum to 1."""

    noise: Array  # [S, C]
    weights: Array  # [S]


@dataclass(frozen=True)
class Softmax(MulticlassLikelihood):
    """p(y = c | f) = exp(f_c) / Σ_k exp(f_k), by `samples` draws.

    α and β are the averages of ∇log p and −∇²log p (the diagonal), so β ≥ 0. β is not −2 ∂V̂/∂v of the
    sampled V̂, whose noise is much larger: a gradient by autodiff agrees with it only to O(S^−½).
    """

    samples: PositiveInt = 100  # what GPflow's Monte Carlo likelihoods draw
    name: ClassVar[str] = "softmax"

    def bind(self, parameters: Tree, noise: Array | tuple[()]) -> Tree:
        if isinstance(noise, tuple):  # for what does not look at the data
            return parameters
        return WeightedNoise(noise, 0.0 * noise[:, 0] + 1.0 / noise.shape[0])

    def unbind(self, gradient: Tree) -> Tree:
        return NoParameters()

    def _log_probabilities(self, ops: Ops, p: Tree, mu: Array, v: Array) -> Array:
        """Log p(c | f) [C, b, S] at every draw."""
        draws = ops.matrix_transpose(p.noise)[:, None, :]
        f = mu[..., None] + ops.sqrt(v)[..., None] * draws
        return f - log_sum_exp(ops, f, axis=0)

    def _log_density(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> Array:
        """Log p(y | f) [b, S] at every draw."""
        log_p = self._log_probabilities(ops, p, mu, v)
        return ops.sum(self.one_hot(ops, y)[..., None] * log_p, axis=0)

    def variational_expectations(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> Array:
        return ops.sum(p.weights * self._log_density(ops, p, y, mu, v), axis=-1)

    def gradients(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> tuple[Array, Array]:
        probability = ops.exp(self._log_probabilities(ops, p, mu, v))
        alpha = self.one_hot(ops, y) - ops.sum(p.weights * probability, axis=-1)
        return alpha, ops.sum(p.weights * probability * (1.0 - probability), axis=-1)

    def log_predictive_density(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> Array:
        log_p = self._log_density(ops, p, y, mu, v)
        return log_sum_exp(ops, log_p, axis=-1, weights=p.weights)

    def predict(self, ops: Ops, p: Tree, mu: Array, v: Array) -> Array:
        return ops.sum(p.weights * ops.exp(self._log_probabilities(ops, p, mu, v)), axis=-1)
