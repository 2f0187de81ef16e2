"""The compiled steps of one (backend, model, method): what the training loop and the timers call.

Everything enters as arrays or NamedTuples of arrays, data included, so that a step compiles once a
shape and outlives the cell that compiled it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from svgpbench.gaussian import Factor, Prior
from svgpbench.methods.method import Method, elbo
from svgpbench.model import Model, Theta, constrain
from svgpbench.ops import Array, Ops, Tree
from svgpbench.optimisers import AdamState, adam_ascent


class Batch(NamedTuple):
    """Rows of the data; stacked batches have one more leading axis."""

    X: Array  # [b, D]
    y: Array  # [b]
    index: Array  # [b], row numbers


@dataclass(frozen=True)
class Steps:
    """Compiled functions; `raw` is unconstrained θ, `rate` and `scale` are arrays []."""

    prior: Callable[[Theta], Prior]
    factor: Callable[[Theta, Prior, Array], Factor]
    e_phase: Callable[..., Tree]  # (raw, factor, batch, state, rate, scale) -> state
    e_phase_batches: Callable[..., Tree]  # (raw, prior, batches, state, rate, scale) -> state
    m_phase: Callable[
        ..., tuple[Theta, AdamState, Tree]
    ]  # (raw, prior, state, adam, batch, rate, scale)
    m_phase_batches: Callable[..., tuple[Theta, AdamState, Tree]]
    bound: Callable[..., Array]  # (raw, factor, y, state, scale) -> ELBO []
    predict: Callable[
        ..., tuple[Array, Array]
    ]  # (raw, prior, state, X, y) -> log density, prediction


def learned(raw: Theta, names: tuple[str, ...]) -> tuple[Any, ...]:
    """The parts of θ that an M-step moves."""
    return tuple(getattr(raw, name) for name in names)


def m_objective(
    ops: Ops, model: Model, method: Method, raw: Theta, held: Tree, batch: Batch, scale: Array
) -> Array:
    """The bound [] at θ with `held` fixed, so that q moves with θ as the method's tying says.

    Source: Adam et al. 2021, Eq. 15 (dual), Eq. 14 (standard).
    """
    theta = constrain(ops, raw)
    factor = model.factor(ops, theta, model.prior(ops, theta), batch.X)
    likelihood = model.conditional(theta)
    state = method.tie(ops, factor, likelihood, held)
    return elbo(ops, method, factor, likelihood, batch.y, state, scale)


@functools.lru_cache
def compile_steps(
    ops: Ops, model: Model, method: Method, e_steps: int, m_steps: int, learn: tuple[str, ...]
) -> Steps:
    """The steps of a method on a backend, compiled lazily at their first call with each shape."""

    def prior(raw: Theta) -> Prior:
        return model.prior(ops, constrain(ops, raw))

    def factor(raw: Theta, p: Prior, X: Array) -> Factor:
        return model.factor(ops, constrain(ops, raw), p, X)

    def e_phase(
        raw: Theta, f: Factor, batch: Batch, state: Tree, rate: Array, scale: Array
    ) -> Tree:
        likelihood = model.conditional(constrain(ops, raw))

        def step(s: Tree, _: Tree) -> Tree:
            return method.e_step(ops, f, likelihood, batch.y, batch.index, s, rate, scale)

        return step(state, ()) if e_steps == 1 else ops.scan(step, state, (), length=e_steps)

    def e_phase_batches(
        raw: Theta, p: Prior, batches: Batch, state: Tree, rate: Array, scale: Array
    ) -> Tree:
        theta = constrain(ops, raw)
        likelihood = model.conditional(theta)

        def step(s: Tree, batch: Batch) -> Tree:
            f = model.factor(ops, theta, p, batch.X)
            return method.e_step(ops, f, likelihood, batch.y, batch.index, s, rate, scale)

        return ops.scan(step, state, batches, length=e_steps)

    def ascend(
        raw: Theta, adam: AdamState, held: Tree, batch: Batch, rate: Array, scale: Array
    ) -> tuple[Theta, AdamState]:
        def objective(part: Tree) -> Array:
            moved = raw._replace(**dict(zip(learn, part, strict=True)))
            return m_objective(ops, model, method, moved, held, batch, scale)

        part = learned(raw, learn)
        _, gradient = ops.value_and_grad(objective)(part)
        part, adam = adam_ascent(ops, adam, part, gradient, rate)
        return raw._replace(**dict(zip(learn, part, strict=True))), adam

    def hold(raw: Theta, p: Prior, state: Tree) -> Tree:
        return method.hold(ops, p.L, model.conditional(constrain(ops, raw)), state)

    def retie(raw: Theta, held: Tree, X: Array) -> Tree:
        theta = constrain(ops, raw)
        f = model.factor(ops, theta, model.prior(ops, theta), X)
        return method.tie(ops, f, model.conditional(theta), held)

    def m_phase(
        raw: Theta, p: Prior, state: Tree, adam: AdamState, batch: Batch, rate: Array, scale: Array
    ) -> tuple[Theta, AdamState, Tree]:
        held = hold(raw, p, state)

        def step(carry: tuple[Theta, AdamState], _: Tree) -> tuple[Theta, AdamState]:
            return ascend(carry[0], carry[1], held, batch, rate, scale)

        raw, adam = ops.scan(step, (raw, adam), (), length=m_steps)
        return raw, adam, retie(raw, held, batch.X)

    def m_phase_batches(
        raw: Theta,
        p: Prior,
        state: Tree,
        adam: AdamState,
        batches: Batch,
        rate: Array,
        scale: Array,
    ) -> tuple[Theta, AdamState, Tree]:
        held = hold(raw, p, state)

        def step(carry: tuple[Theta, AdamState], batch: Batch) -> tuple[Theta, AdamState]:
            return ascend(carry[0], carry[1], held, batch, rate, scale)

        raw, adam = ops.scan(step, (raw, adam), batches, length=m_steps)
        return raw, adam, retie(raw, held, raw.inducing)

    def bound(raw: Theta, f: Factor, y: Array, state: Tree, scale: Array) -> Array:
        return elbo(ops, method, f, model.conditional(constrain(ops, raw)), y, state, scale)

    def predict(raw: Theta, p: Prior, state: Tree, X: Array, y: Array) -> tuple[Array, Array]:
        theta = constrain(ops, raw)
        likelihood = model.conditional(theta)
        f = model.factor(ops, theta, p, X)
        mu, v = method.marginals(ops, f, method.factorise(ops, f.L, state))
        density = likelihood.log_predictive_density(ops, y, mu, v)
        return density, likelihood.predict(ops, mu, v)

    return Steps(
        prior=ops.jit(prior),
        factor=ops.jit(factor),
        e_phase=ops.jit(e_phase),
        e_phase_batches=ops.jit(e_phase_batches),
        m_phase=ops.jit(m_phase),
        m_phase_batches=ops.jit(m_phase_batches),
        bound=ops.jit(bound),
        predict=ops.jit(predict),
    )
