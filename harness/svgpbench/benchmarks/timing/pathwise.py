"""Softmax with the estimates of α and β that autodiff makes of the sampled V̂, as the peers take them.

Ours averages ∇log p and −∇²log p, whose noise is smaller; a peer differentiates V̂ in μ and v. The
draws being equal, an E-step with these must show a peer's number; it is never timed.
"""

from __future__ import annotations

from dataclasses import dataclass

from svgpbench.likelihoods.softmax import Softmax
from svgpbench.ops import Array, Ops, Tree


@dataclass(frozen=True)
class PathwiseSoftmax(Softmax):
    """α = ∂V̂/∂μ and β = −2 ∂V̂/∂v, of any sign."""

    def gradients(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> tuple[Array, Array]:
        found = self.expectations(ops, p, y, mu, v)
        return found.alpha, found.beta
