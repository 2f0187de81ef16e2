"""What is timed: the compiled steps of training on one problem, ready to be called again and again.

`e_step`, `m_step` and `predict` start from θ, so that K(Z, Z) and its Cholesky factor are computed
inside, as the peers compute them. `e_step_held` is what the dual parameterization and the training
loop make of an E-phase: θ stands still, so K(Z, Z), its factor and W are computed once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from svgpbench.config import LEARN
from svgpbench.errors import UserError, unknown
from svgpbench.likelihoods import Likelihood
from svgpbench.methods import AnyMethod, build_method
from svgpbench.model import Model, Theta, unconstrain
from svgpbench.numerics.adam import adam_start
from svgpbench.ops import Array, Ops, Tree
from svgpbench.plugins import METHODS, load, plugins, whole
from svgpbench.speed.problems import Problem
from svgpbench.training.blocks import Batch, learnable, learned
from svgpbench.training.steps import MPhase, Predicted, Steps, compile_steps
from svgpbench.tree import tree_map

HELD = 8
"""E-steps in one call of `e_step_held`."""

STEPS: dict[str, int] = {"e_step": 1, "e_step_held": HELD, "m_step": 1, "predict": 1}
"""Timed steps, and how many a call makes: times are reported a step."""


@dataclass(frozen=True)
class Case:
    """A step with its arguments on the device."""

    ops: Ops
    step: Callable[..., Tree]
    arguments: tuple[Tree, ...]
    figure_of: Callable[[Tree], Array]

    def call(self) -> Tree:
        """Run the step, always from the same start, and wait for the result."""
        result = self.step(*self.arguments)
        self.ops.sync(result)
        return result

    def figure(self, result: Tree) -> float:
        """The number that must agree: the bound on the batch after the step, or the mean log density."""
        return float(self.ops.to_numpy(self.figure_of(result)))


class _Compiled(NamedTuple):
    """The steps of training, and those composed of them that start from θ."""

    training: Steps
    e_step: Callable[[Theta, Batch, Tree, Array, Array], Tree]
    e_step_held: Callable[[Theta, Any, Batch, Tree, Array, Array], Tree]
    m_step: MPhase
    predict: Callable[[Theta, Tree, Batch], Predicted]


@functools.lru_cache
def _compile(ops: Ops, model: Model, method: AnyMethod) -> _Compiled:
    learn = learnable(method, LEARN)
    steps = compile_steps(ops, model, method, 1, 1, learn)
    held = compile_steps(ops, model, method, HELD, 1, learn)

    def e_step(raw: Theta, batch: Batch, state: Tree, rate: Array, scale: Array) -> Tree:
        f = steps.factor(raw, steps.prior(raw), batch)
        return steps.e_phase(raw, f, batch, state, rate, scale)

    def e_step_held(
        raw: Theta, p: Any, batch: Batch, state: Tree, rate: Array, scale: Array
    ) -> Tree:
        return held.e_phase(raw, held.factor(raw, p, batch), batch, state, rate, scale)

    def predict(raw: Theta, state: Tree, batch: Batch) -> Predicted:
        return steps.predict(raw, steps.prior(raw), state, batch)

    return _Compiled(
        training=steps,
        e_step=ops.jit(e_step),
        e_step_held=ops.jit(e_step_held),
        m_step=steps.m_phase_batches,
        predict=ops.jit(predict),
    )


class TimedMethod(NamedTuple):
    """A method as it is timed."""

    name: str
    options: Mapping[str, Any]
    family: str  # M-steps agree within it
    alone: bool  # whether no other method shows its figures

    def build(self) -> AnyMethod:
        """The method with its options."""
        return build_method(self.name, dict(self.options))

    def refuse(self, title: str, likelihood: Likelihood) -> None:
        """Raise `UserError` where the method cannot take a likelihood."""
        if why := self.build().refuses(likelihood):
            raise UserError(f"speed method {title!r} cannot take {likelihood.name!r}: {why}")


def usual_methods() -> dict[str, TimedMethod]:
    """What is timed where no method is asked for, under the names that tables show."""
    return {
        f"{name}-{variant}" if variant else name: TimedMethod(name, options, name, alone=False)
        for name, method in whole(METHODS).items()
        for variant, options in method.facts.timed.items()
    }


def timed_method(title: str) -> TimedMethod:
    """A method by its name in tables, or any method and variant as `check` shows them.

    Raises `UserError` for one that does not exist.
    """
    usual = usual_methods()
    if title in usual:
        return usual[title]
    name, _, variant = title.partition(" ")
    if name not in plugins(METHODS):
        raise unknown("speed method", title, {*usual, *plugins(METHODS)})
    variants = {"": {}, **load(METHODS, name).facts.variants}
    if variant not in variants:
        raise unknown(f"variant of method {name}", variant, variants)
    return TimedMethod(name, variants[variant], title, alone=True)


def _sampled_points(ops: Ops, method: AnyMethod, theta: Theta) -> Any:
    """The basis points [r] that a batch samples; () where the method takes all."""
    if not (count := method.sampled_points):
        return ()
    points = len(method.sampled_basis(theta.inducing))
    return ops.asarray(np.random.default_rng(0).permutation(points)[:count])


def build_case(ops: Ops, problem: Problem, method_title: str, step: str) -> Case:
    """A case; nothing of it is traced or compiled before its first call.

    `m_step` and `predict` start from the state after one E-step from q = p, the others from q = p.
    A method that takes no part of the data has the batch for all of them. Raises `UserError` for an
    unknown method or step, and for a likelihood that the method refuses.
    """
    if step not in STEPS:
        raise unknown("speed step", step, STEPS)
    model, timed = problem.model(), timed_method(method_title)
    timed.refuse(method_title, model.likelihood)
    method = timed.build()
    compiled = _compile(ops, model, method)
    training = compiled.training

    theta = problem.theta(model, method.basis)
    raw = tree_map(ops.asarray, unconstrain(theta))
    n, rows = int(problem.n), problem.rows
    if method.needs_all_data or method.collapsed or method.basis == "data":
        n, rows = len(problem.y), np.arange(len(problem.y))
    batch = Batch(*map(ops.asarray, (problem.X, problem.y, rows)))
    batch = batch._replace(basis_points=_sampled_points(ops, method, theta))
    e_rate = ops.asarray(problem.m_rate if method.first_order else problem.e_rate)
    m_rate = ops.asarray(problem.m_rate)
    scale = ops.asarray(np.float64(n / len(problem.y)))
    prior = training.prior(raw)
    start = method.initial_state(ops, prior, model.latents, n)

    def bound(at: Theta, state: Tree) -> Array:
        f = training.factor(at, training.prior(at), batch)
        return training.bound(at, f, batch, state, scale)

    if step == "e_step":
        arguments: tuple[Tree, ...] = (raw, batch, start, e_rate, scale)
        return Case(ops, compiled.e_step, arguments, lambda state: bound(raw, state))
    if step == "e_step_held":
        arguments = (raw, prior, batch, start, e_rate, scale)
        return Case(ops, compiled.e_step_held, arguments, lambda state: bound(raw, state))
    f = training.factor(raw, prior, batch)
    state = training.e_phase(raw, f, batch, start, e_rate, scale)
    if step == "m_step":
        adam = adam_start(ops, learned(raw, learnable(method, LEARN)))
        batches = tree_map(lambda x: x[None], batch)
        arguments = (raw, prior, state, adam, batches, m_rate, scale)
        return Case(
            ops, compiled.m_step, arguments, lambda moved: bound(moved[0].raw, moved[0].state)
        )
    new = np.arange(len(problem.y_new))
    arguments = (raw, state, Batch(*map(ops.asarray, (problem.X_new, problem.y_new, new))))
    return Case(
        ops,
        compiled.predict,
        arguments,
        lambda out: ops.sum(out.log_density) / float(len(problem.y_new)),
    )
