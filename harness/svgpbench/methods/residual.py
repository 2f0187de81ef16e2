"""What a coupled method is told of a mean that is modelled beside it, so that its own code is untouched.

Its E-step sees of the likelihood only V, α and β at its own marginals. `Shifted` evaluates them where the
other part of the mean has been added; `Tilted` adds a term that is linear in the inducing variables.
"""

from __future__ import annotations

from dataclasses import dataclass

from svgpbench.likelihoods import Conditional, Expectations
from svgpbench.methods.data_term import DataTerm
from svgpbench.numerics.gaussian import Factor
from svgpbench.ops import Array, Ops


@dataclass(frozen=True)
class Shifted(Conditional):
    """The likelihood of a latent function whose mean has a further, fixed part."""

    shift: Array  # [P, b]

    def variational_expectations(self, ops: Ops, y: Array, mu: Array, v: Array) -> Array:
        return super().variational_expectations(ops, y, mu + self.shift, v)

    def gradients(self, ops: Ops, y: Array, mu: Array, v: Array) -> tuple[Array, Array]:
        return super().gradients(ops, y, mu + self.shift, v)

    def expectations(self, ops: Ops, y: Array, mu: Array, v: Array) -> Expectations:
        return super().expectations(ops, y, mu + self.shift, v)


def shifted(data: DataTerm, shift: Array) -> DataTerm:
    """The data at marginals whose mean lacks `shift` [P, b]."""
    of = data.likelihood
    return data._replace(likelihood=Shifted(of.likelihood, of.parameters, shift))


@dataclass(frozen=True)
class Tilted(Conditional):
    """A likelihood with one more column of marginals, whose V is the mean itself: α = 1, β = 0."""

    untilted: Conditional

    def variational_expectations(self, ops: Ops, y: Array, mu: Array, v: Array) -> Array:
        V = self.untilted.variational_expectations(ops, y, mu[..., :-1], v[..., :-1])
        return ops.concat([V, ops.sum(mu[..., -1:], axis=0)], axis=-1)

    def gradients(self, ops: Ops, y: Array, mu: Array, v: Array) -> tuple[Array, Array]:
        alpha, beta = self.untilted.gradients(ops, y, mu[..., :-1], v[..., :-1])
        last = 0.0 * alpha[..., -1:]
        return ops.concat([alpha, last + 1.0], axis=-1), ops.concat([beta, last], axis=-1)


def tilted(ops: Ops, f: Factor, data: DataTerm, tilt: Array) -> tuple[Factor, DataTerm]:
    """Blocks and data of a coupled method with tiltᵀ(L⁻¹u), tilt [P, M], added to Σ log p(y_i|f_i)."""
    latents, M = tilt.shape
    W = ops.broadcast_to(f.W, (latents, M, f.W.shape[-1]))
    kff = ops.concat([f.kff, 0.0 * f.kff[..., :1]], axis=-1)
    more = f._replace(W=ops.concat([W, tilt[..., None]], axis=-1), kff=kff)
    of = data.likelihood
    return more, data._replace(likelihood=Tilted(of.likelihood, of.parameters, of))
