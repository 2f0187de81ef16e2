"""Training by sums over all data, one chunk at a time: time grows with n, memory does not.

A collapsed bound F(θ) = g(T(θ), θ) depends on the data through sums T = Σ_chunks T_b. A first pass over
the data gives T. The gradient of g gives ∂_θ g and T̄ = ∂g/∂T. A second pass adds the gradient of
⟨T̄, T_b(θ)⟩ chunk by chunk. The result is the full gradient, up to rounding.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from svgpbench.kernels import Model, Theta, constrain
from svgpbench.methods.collapsed import SGPR, Sums
from svgpbench.methods.method import AnyMethod
from svgpbench.methods.tying import DualState
from svgpbench.ops import Array, Ops, Tree
from svgpbench.training.blocks import Batch, factor_at, prior_at, replace_trainable, trainable_part
from svgpbench.training.em import Trainer
from svgpbench.training.state import TrainState
from svgpbench.tree import leaves, tree_map


@dataclass(frozen=True)
class Passes:
    """Compiled functions; `raw` is unconstrained θ."""

    sums: Callable[[Theta, Any, Batch], Sums]  # (raw, prior, batch)
    outer: Callable[[Theta, Sums], tuple[Array, Tree]]  # bound, gradient in (learned parts, sums)
    pull: Callable[[Theta, Batch, Sums], Tree]  # gradient of ⟨T̄, T_b(θ)⟩ in the learned parts
    best_q: Callable[[Theta, Sums], DualState]


@functools.lru_cache
def compile_passes(ops: Ops, model: Model, method: SGPR, learn: tuple[str, ...]) -> Passes:
    """Return the passes of a method on a backend; each compiles at its first call with a shape."""

    def sums_at(raw: Theta, p: Any, batch: Batch) -> Sums:
        theta = constrain(ops, raw)
        f = factor_at(ops, model, method, theta, p, batch.X)
        return method.sums(ops, f, model.conditional(theta), batch.y)

    def outer(raw: Theta, total: Sums) -> tuple[Array, Tree]:
        def bound(parts_and_total: Tree) -> Array:
            parts, sums = parts_and_total
            theta = constrain(ops, replace_trainable(raw, learn, parts))
            return method.collapsed_bound(ops, model.conditional(theta), sums)

        # the sums count as variables of their own here; `pull` adds what they owe to θ
        return ops.value_and_grad(bound)((trainable_part(raw, learn), total))

    # ⟨T̄, T_b(θ)⟩ has the gradient T̄ᵀ∂T_b/∂θ, so no chunk needs more memory than its own W
    def pull(raw: Theta, batch: Batch, cotangent: Sums) -> Tree:
        def pairing(parts: Tree) -> Array:
            new_raw = replace_trainable(raw, learn, parts)
            # inside what is differentiated: T_b depends on θ through L = chol K(Z, Z) too
            p = prior_at(ops, model, method, constrain(ops, new_raw))
            pairs = zip(leaves(cotangent), leaves(sums_at(new_raw, p, batch)), strict=True)
            return sum((ops.sum(g * t) for g, t in pairs), ops.zeros(()))

        return ops.value_and_grad(pairing)(trainable_part(raw, learn))[1]

    def best_q(raw: Theta, total: Sums) -> DualState:
        return method.best_state(ops, model.conditional(constrain(ops, raw)), total)

    return Passes(ops.jit(sums_at), ops.jit(outer), ops.jit(pull), ops.jit(best_q))


class AccumulatingTrainer(Trainer):
    """The EM loop of a method whose bound and optimal q come from sums over data.

    Adam's M-steps take all rows at once, as for any method; everything else is computed in chunks.
    """

    method: SGPR

    @functools.cached_property
    def passes(self) -> Passes:
        """The compiled passes."""
        return compile_passes(self.ops, self.model, self.method, self.learn)

    def sums(self, raw: Theta, prior: Any) -> Sums:
        """Return T at θ."""
        parts = (self.passes.sums(raw, prior, batch) for batch in self.batches.chunks(raw.inducing))
        return functools.reduce(_add, parts)

    def e_phase(self, state: TrainState) -> tuple[TrainState, Sums]:
        total = self.sums(state.raw, state.prior)
        return state._replace(q=self.passes.best_q(state.raw, total)), total

    def elbo(self, state: TrainState, blocks: Any = None) -> float:
        total = self.sums(state.raw, state.prior) if blocks is None else blocks
        value, _ = self.passes.outer(state.raw, total)
        return float(self.ops.to_numpy(value))

    def value_and_gradient(self, raw: Theta) -> tuple[Array, Tree]:
        """Return the bound over all data and its gradient in the learned parts, by two passes."""
        value, (gradient, cotangent) = self.passes.outer(raw, self.sums(raw, self.steps.prior(raw)))
        for batch in self.batches.chunks(raw.inducing):
            gradient = _add(gradient, self.passes.pull(raw, batch, cotangent))
        return value, gradient

    def collapsed_objective(self, state: TrainState) -> Callable[[Theta], tuple[Array, Tree]]:
        return self.value_and_gradient


def trainer_class(method: AnyMethod) -> type[Trainer]:
    """Return the trainer class for a method."""
    return AccumulatingTrainer if isinstance(method, SGPR) else Trainer


def _add(a: Tree, b: Tree) -> Tree:
    return tree_map(lambda x, y: x + y, a, b)
