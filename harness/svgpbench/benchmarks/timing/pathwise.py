"""Softmax with pathwise estimates of α and β: autodiff of the sampled V̂, as in the peers.

Our softmax averages ∇log p and −∇²log p, which have less noise. A peer differentiates V̂ in μ and v. With
equal draws, an E-step with this likelihood must give a peer's number. It is never timed.
"""

from __future__ import annotations

from dataclasses import dataclass

from svgpbench.likelihoods.softmax import Softmax
from svgpbench.ops import Array, Ops, Tree


@dataclass(frozen=True)
class PathwiseSoftmax(Softmax):
    """Softmax with α = ∂V̂/∂μ and β = −2 ∂V̂/∂v, which may have any sign."""

    def gradients(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> tuple[Array, Array]:
        expectations = self.expectations(ops, p, y, mu, v)
        return expectations.alpha, expectations.beta
