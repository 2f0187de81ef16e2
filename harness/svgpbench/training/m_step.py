"""The M-step objective and its gradient, by the method's adjoint or, if it has none, by autodiff."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from svgpbench.kernels import Model, Theta, constrain, pull_constrain
from svgpbench.methods.method import AnyMethod
from svgpbench.ops import Array, Ops, Tree
from svgpbench.training.blocks import (
    Batch,
    data_term,
    factor_at,
    prior_at,
    replace_trainable,
    trainable_part,
)


def m_objective(
    ops: Ops,
    model: Model,
    method: AnyMethod,
    raw: Theta,
    invariant: Tree,
    batch: Batch,
    scale: Array,
) -> Array:
    """Return the bound [] at θ with `invariant` fixed, so that q moves with θ as the method's tying defines.

    Source: Adam et al. 2021, Eq. 15 (dual), Eq. 14 (standard).
    """
    theta = constrain(ops, raw)
    p = prior_at(ops, model, method, theta)
    f = factor_at(ops, model, method, theta, p, batch.X, batch.basis_points)
    data = data_term(model, theta, batch, scale)
    return method.bound(ops, f, data, method.state_at(ops, f, data.likelihood, invariant))


class TiedState(NamedTuple):
    """θ, its blocks, and the state that is tied to it."""

    raw: Theta
    prior: Any
    q: Tree


@dataclass(frozen=True)
class MStep:
    """The M-step objective of a method and the trainable parts of θ."""

    ops: Ops
    model: Model
    method: AnyMethod
    learn: tuple[str, ...]

    def tied(self, raw: Theta, invariant: Tree, X: Array) -> TiedState:
        """Return the blocks and the state at θ; X [b, D] are all data if the method needs them."""
        ops, model, method = self.ops, self.model, self.method
        theta = constrain(ops, raw)
        p = blocks = prior_at(ops, model, method, theta)
        if method.needs_all_data:
            blocks = factor_at(ops, model, method, theta, p, X)
        return TiedState(raw, p, method.state_at(ops, blocks, model.conditional(theta), invariant))

    def value_and_gradient(
        self, raw: Theta, invariant: Tree, batch: Batch, scale: Array
    ) -> tuple[Array, Tree]:
        """Return the objective [] and its gradient in the trainable parts."""
        if not self.method.has_adjoint:
            return self.by_autodiff(raw, invariant, batch, scale)
        tied, theta = self.tied(raw, invariant, batch.X), constrain(self.ops, raw)
        f = factor_at(self.ops, self.model, self.method, theta, tied.prior, batch.X)
        data = data_term(self.model, theta, batch, scale)
        value = self.method.bound(self.ops, f, data, tied.q)
        return value, self.by_adjoint(tied, batch, scale)

    def by_autodiff(
        self, raw: Theta, invariant: Tree, batch: Batch, scale: Array
    ) -> tuple[Array, Tree]:
        """Return the objective [] and its gradient, by autodiff through the whole bound."""

        def objective(parts: Tree) -> Array:
            new_raw = replace_trainable(raw, self.learn, parts)
            return m_objective(self.ops, self.model, self.method, new_raw, invariant, batch, scale)

        return self.ops.value_and_grad(objective)(trainable_part(raw, self.learn))

    def by_adjoint(self, tied: TiedState, batch: Batch, scale: Array) -> Tree:
        """Return the gradient at a tied state, from the method's `bound_gradient`."""
        ops, theta = self.ops, constrain(self.ops, tied.raw)
        cov, Z = self.model.differentiable_covariance(ops, theta), theta.inducing
        data = data_term(self.model, theta, batch, scale)
        gradient = self.method.bound_gradient(ops, cov, Z, batch.X, tied.prior, data, tied.q)
        # the adjoint is in constrained θ; this is the chain rule to the raw values
        return trainable_part(pull_constrain(ops, theta, Theta(*gradient)), self.learn)
