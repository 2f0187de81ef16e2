"""The data term of the bound, as one value that the E-step and the bound take.

A coupled method needs no change if another part of the mean is modelled outside it, because its E-step uses
only V, α and β of the likelihood at its own marginals. `shifted` adds the other part of the mean to the
prior mean of the likelihood. `Tilted` adds a term that is linear in the inducing variables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from jaxtyping import Float, Int

from svgpbench.likelihoods import Conditional
from svgpbench.numerics.gaussian import Factor
from svgpbench.ops import Array, Ops

ResidualScale: TypeAlias = Callable[[Ops, Conditional, Float[Array, "Q b"]], Float[Array, "P #b"]]
"""A function of the variance of p(f_i|u): the variance of q(f_i|u) divided by it."""


class DataTerm(NamedTuple):
    """The data term of the bound, s Σ_i log p(y_i | f_i) of a batch; s = n/b if it stands for all n."""

    likelihood: Conditional  # bound to its parameters, and to the batch's noise if it samples
    y: Float[Array, "b"]
    index: Int[Array, "b"]  # row numbers in the data
    scale: Float[Array, ""]  # s
    residual_scale: ResidualScale | None = None  # None if q(f|u) = p(f|u)


def shifted(data: DataTerm, shift: Float[Array, "P b"]) -> DataTerm:
    """Return the data term for marginals whose mean lacks `shift`."""
    return data._replace(likelihood=replace(data.likelihood, mean=data.likelihood.of_f(shift)))


@dataclass(frozen=True)
class Tilted(Conditional):
    """A likelihood with one extra column of marginals, at which V is the mean: α = 1, β = 0."""

    inner: Conditional

    def variational_expectations(
        self, ops: Ops, y: Float[Array, "b"], mu: Float[Array, "P b+1"], v: Float[Array, "P b+1"]
    ) -> Float[Array, "b+1"]:
        V = self.inner.variational_expectations(ops, y, mu[..., :-1], v[..., :-1])
        return ops.concat([V, ops.sum(mu[..., -1:], axis=0)], axis=-1)

    def gradients(
        self, ops: Ops, y: Float[Array, "b"], mu: Float[Array, "P b+1"], v: Float[Array, "P b+1"]
    ) -> tuple[Float[Array, "P b+1"], Float[Array, "P b+1"]]:
        alpha, beta = self.inner.gradients(ops, y, mu[..., :-1], v[..., :-1])
        last = 0.0 * alpha[..., -1:]
        return ops.concat([alpha, last + 1.0], axis=-1), ops.concat([beta, last], axis=-1)


def tilted(
    ops: Ops, f: Factor, data: DataTerm, tilt: Float[Array, "P M"]
) -> tuple[Factor, DataTerm]:
    """Return blocks and data that add tiltᵀ(L⁻¹u) to Σ log p(y_i|f_i)."""
    latents, M = tilt.shape
    W = ops.broadcast_to(f.W, (latents, M, f.W.shape[-1]))
    # κ = 0 may give this column a negative variance, which `Tilted` does not read
    kff = ops.concat([f.kff, 0.0 * f.kff[..., :1]], axis=-1)
    extended = f._replace(W=ops.concat([W, tilt[..., None]], axis=-1), kff=kff)
    inner = data.likelihood
    return extended, data._replace(likelihood=Tilted(inner.likelihood, inner.parameters, inner))
