"""The compiled steps of one (backend, model, method), for the training loop and the timers.

All arguments, data included, are arrays or NamedTuples of arrays. So a step compiles once per shape and
can be reused by later cells.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from svgpbench.kernels import Model, Theta, constrain
from svgpbench.likelihoods.likelihood import Predicted
from svgpbench.methods.method import AnyMethod
from svgpbench.numerics.adam import AdamState, adam_ascent
from svgpbench.ops import Array, Ops, S, Tree
from svgpbench.training.blocks import (
    Batch,
    data_term,
    factor_at,
    marginals_at,
    prior_at,
    replace_trainable,
    trainable_part,
)
from svgpbench.training.m_step import MStep, TiedState
from svgpbench.tree import tree_map


class EPhase(Protocol):
    """E-steps on q: at the blocks `f` of one batch, or at `p` with one batch per step."""

    def __call__(
        self, raw: Theta, blocks: Any, batch: Batch, state: Tree, rate: Array, scale: Array, /
    ) -> Tree: ...


class MPhase(Protocol):
    """M-steps on the learned parts of θ, with one batch or one per step; q is tied to the new θ."""

    def __call__(
        self,
        raw: Theta,
        p: Any,
        state: Tree,
        adam: AdamState,
        batch: Batch,
        rate: Array,
        scale: Array,
        /,
    ) -> tuple[TiedState, AdamState]: ...


class Objective(Protocol):
    """The M-step objective [] and its gradient in the learned parts of θ."""

    def __call__(
        self, raw: Theta, invariant: Tree, batch: Batch, scale: Array, /
    ) -> tuple[Array, Tree]: ...


class Bound(Protocol):
    """The method's bound [] on a batch."""

    def __call__(self, raw: Theta, f: Any, batch: Batch, state: Tree, scale: Array, /) -> Array: ...


class Prediction(Protocol):
    """Predictions of q for a batch."""

    def __call__(self, raw: Theta, p: Any, state: Tree, batch: Batch, /) -> Predicted: ...


@dataclass(frozen=True)
class Steps:
    """Compiled functions; `raw` is unconstrained θ, `rate` and `scale` are arrays []."""

    prior: Callable[[Theta], Any]
    factor: Callable[[Theta, Any, Batch], Any]
    e_phase: EPhase
    e_phase_batches: EPhase
    m_phase: MPhase
    m_phase_batches: MPhase
    invariant: Callable[[Theta, Any, Tree], Tree]  # (raw, p, state) -> invariant
    objective_and_gradient: Objective
    tied: Callable[[Theta, Tree, Array], TiedState]  # (raw, invariant, X)
    bound: Bound
    expected: Callable[[Theta, Any, Batch, Tree], Array]  # (raw, f, batch, state) -> Σ V []
    marginals: Callable[[Theta, Any, Tree, Array], tuple[Array, Array]]  # (raw, p, state, X)
    predict: Prediction
    negative_beta: Callable[[Theta, Any, Tree, Batch], Array]  # (raw, p, state, batch) -> rows []


@functools.lru_cache
def compile_steps(
    ops: Ops, model: Model, method: AnyMethod, e_steps: int, m_steps: int, learn: tuple[str, ...]
) -> Steps:
    """Return the steps of a method on a backend; each compiles at its first call with a shape."""
    m_step = MStep(ops, model, method, learn)

    def prior(raw: Theta) -> Any:
        return prior_at(ops, model, method, constrain(ops, raw))

    def factor(raw: Theta, p: Any, batch: Batch) -> Any:
        return factor_at(ops, model, method, constrain(ops, raw), p, batch.X, batch.basis_points)

    def e_phase(raw: Theta, f: Any, batch: Batch, state: Tree, rate: Array, scale: Array) -> Tree:
        data = data_term(model, constrain(ops, raw), batch, scale)

        def step(s: Tree, _: Tree) -> Tree:
            return method.e_step(ops, f, data, s, rate)

        return fold(ops, step, state, (), e_steps)

    def e_phase_batches(
        raw: Theta, p: Any, batches: Batch, state: Tree, rate: Array, scale: Array
    ) -> Tree:
        theta = constrain(ops, raw)

        def step(s: Tree, batch: Batch) -> Tree:
            f = factor_at(ops, model, method, theta, p, batch.X, batch.basis_points)
            return method.e_step(ops, f, data_term(model, theta, batch, scale), s, rate)

        return fold(ops, step, state, batches, e_steps)

    def invariant(raw: Theta, p: Any, state: Tree) -> Tree:
        return method.invariant(ops, p, model.conditional(constrain(ops, raw)), state)

    def m_phase(
        raw: Theta, p: Any, state: Tree, adam: AdamState, batch: Batch, rate: Array, scale: Array
    ) -> tuple[TiedState, AdamState]:
        return ascent(raw, p, state, adam, lambda _: batch, (), rate, scale)

    def m_phase_batches(
        raw: Theta, p: Any, state: Tree, adam: AdamState, batches: Batch, rate: Array, scale: Array
    ) -> tuple[TiedState, AdamState]:
        return ascent(raw, p, state, adam, lambda batch: batch, batches, rate, scale)

    def ascent(
        raw: Theta,
        p: Any,
        state: Tree,
        adam: AdamState,
        batch_of: Callable[[Tree], Batch],
        xs: Tree,
        rate: Array,
        scale: Array,
    ) -> tuple[TiedState, AdamState]:
        fixed = invariant(raw, p, state)

        def ascend(raw: Theta, adam: AdamState, gradient: Tree) -> tuple[Theta, AdamState]:
            parts, adam = adam_ascent(ops, adam, trainable_part(raw, learn), gradient, rate)
            return replace_trainable(raw, learn, parts), adam

        # an adjoint reads the blocks and q at θ, so each step makes them anew for the next
        def by_adjoint(c: tuple[TiedState, AdamState], x: Tree) -> tuple[TiedState, AdamState]:
            tied, adam = c
            raw, adam = ascend(tied.raw, adam, m_step.by_adjoint(tied, batch_of(x), scale))
            return m_step.tied(raw, fixed, batch_of(x).X), adam

        # autodiff computes blocks and q inside the objective: q is tied once, at the end
        def by_autodiff(c: tuple[Theta, AdamState], x: Tree) -> tuple[Theta, AdamState]:
            return ascend(*c, m_step.by_autodiff(c[0], fixed, batch_of(x), scale)[1])

        if method.has_adjoint:
            return fold(ops, by_adjoint, (TiedState(raw, p, state), adam), xs, m_steps)
        raw, adam = fold(ops, by_autodiff, (raw, adam), xs, m_steps)
        # read only by methods that need all data, whose one batch has all rows
        last = batch_of(tree_map(lambda x: x[0, ...], xs)).X
        return m_step.tied(raw, fixed, last), adam

    def bound(raw: Theta, f: Any, batch: Batch, state: Tree, scale: Array) -> Array:
        return method.bound(ops, f, data_term(model, constrain(ops, raw), batch, scale), state)

    def expected(raw: Theta, f: Any, batch: Batch, state: Tree) -> Array:
        data = data_term(model, constrain(ops, raw), batch, ops.zeros(()) + 1.0)
        data = method.data_for_bound(ops, f, data, state)
        mu, v = method.marginals(ops, f, method.factorise(ops, f, state))
        return ops.sum(data.likelihood.variational_expectations(ops, data.y, mu, v))

    def marginals(raw: Theta, p: Any, state: Tree, X: Array) -> tuple[Array, Array]:
        return marginals_at(ops, model, method, constrain(ops, raw), p, state, X)

    def predict(raw: Theta, p: Any, state: Tree, batch: Batch) -> Predicted:
        theta = constrain(ops, raw)
        mu, v = marginals_at(ops, model, method, theta, p, state, batch.X)
        likelihood = model.conditional(theta, batch.noise)
        predicted: Predicted = likelihood.predicted(ops, batch.y, mu, v)
        return predicted

    def negative_beta(raw: Theta, p: Any, state: Tree, batch: Batch) -> Array:
        theta = constrain(ops, raw)
        mu, v = marginals_at(ops, model, method, theta, p, state, batch.X)
        return model.conditional(theta, batch.noise).count_negative_beta(ops, batch.y, mu, v)

    return Steps(
        prior=ops.jit(prior),
        factor=ops.jit(factor),
        e_phase=ops.jit(e_phase),
        e_phase_batches=ops.jit(e_phase_batches),
        m_phase=ops.jit(m_phase),
        m_phase_batches=ops.jit(m_phase_batches),
        invariant=ops.jit(invariant),
        objective_and_gradient=ops.jit(m_step.value_and_gradient),
        tied=ops.jit(m_step.tied),
        bound=ops.jit(bound),
        expected=ops.jit(expected),
        marginals=ops.jit(marginals),
        predict=ops.jit(predict),
        negative_beta=ops.jit(negative_beta),
    )


def fold(ops: Ops, step: Callable[[S, Tree], S], carry: S, xs: Tree, length: int) -> S:
    """Run `ops.scan`, or the step alone if `length` is 1."""
    if length == 1:
        return step(carry, tree_map(lambda x: x[0, ...], xs))
    return ops.scan(step, carry, xs, length=length)
