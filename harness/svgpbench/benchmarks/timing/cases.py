"""Timed cases: the compiled steps of training on one problem, ready to be called repeatedly.

* `e_step`, `m_step` and `predict` start from θ. They compute K(Z, Z) and its Cholesky factor, as the peers
  do.
* `e_step_held` is an E-phase as the dual parameterization and the training loop run it. θ is fixed, so
  K(Z, Z), its factor and W are computed once.
* `em_step` is an EM iteration in the middle of training. It takes E-steps, each on a fresh minibatch, from
  the factor of K(Z, Z) that the previous M-step left. Then it takes an M-step on one more minibatch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from svgpbench.benchmarks.timing.problems import LATER, Problem
from svgpbench.config import LEARN
from svgpbench.errors import UserError, unknown
from svgpbench.kernels import Model, Theta, unconstrain
from svgpbench.likelihoods import Likelihood
from svgpbench.likelihoods.likelihood import Predicted
from svgpbench.methods import AnyMethod, build_method
from svgpbench.numerics.adam import AdamState, adam_start
from svgpbench.ops import Array, Ops, Tree
from svgpbench.plugins import METHODS, load, plugins, whole
from svgpbench.training.blocks import Batch, learnable, learned
from svgpbench.training.steps import MPhase, Steps, compile_steps
from svgpbench.tree import tree_map

HELD = 8
"""Number of E-steps per call of `e_step_held`."""

STEPS: dict[str, int] = {
    "e_step": 1,
    "e_step_held": HELD,
    "m_step": 1,
    "em_step": 1,
    "predict": 1,
}
"""Timed steps, with the number of steps per call. Times are reported per step."""

OF_FAMILY = ("m_step", "em_step")
"""Steps after which only methods of one family agree, because families tie q to θ differently."""


@dataclass(frozen=True)
class Case:
    """Step with its arguments on the device."""

    ops: Ops
    step: Callable[..., Tree]
    arguments: tuple[Tree, ...]
    figure_of: Callable[[Tree], Array]
    as_peers: Callable[[], float] | None = None
    """Function of the figure with the peers' estimates, if these differ from ours."""
    parts: tuple[Callable[..., Tree], ...] = ()
    """Compiled functions that the step calls, if it is not one itself."""

    @property
    def compiled(self) -> tuple[Callable[..., Tree], ...]:
        """Functions that the backend compiles."""
        return self.parts or (self.step,)

    def call(self) -> Tree:
        """Run the step, always from the same start, and wait for the result."""
        result = self.step(*self.arguments)
        self.ops.sync(result)
        return result

    def figure(self, result: Tree) -> float:
        """Return the number that must agree: the bound on the batch after the step, or mean log density."""
        return float(self.ops.to_numpy(self.figure_of(result)))


class _Compiled(NamedTuple):
    """Steps of training, and the timed steps composed of them."""

    training: Steps
    e_step: Callable[[Theta, Batch, Tree, Array, Array], Tree]
    e_step_held: Callable[[Theta, Any, Batch, Tree, Array, Array], Tree]
    em_step: Callable[[Theta, Any, Tree, AdamState, Batch, Batch, Array, Array, Array], Tree]
    of_em: tuple[Callable[..., Tree], ...]
    m_step: MPhase
    predict: Callable[[Theta, Tree, Batch], Predicted]


@functools.lru_cache
def _compile(ops: Ops, model: Model, method: AnyMethod) -> _Compiled:
    learn = learnable(method, LEARN)
    steps = compile_steps(ops, model, method, 1, 1, learn)
    held = compile_steps(ops, model, method, HELD, 1, learn)
    of_em = compile_steps(ops, model, method, LATER, 1, learn)

    def e_step(raw: Theta, batch: Batch, state: Tree, rate: Array, scale: Array) -> Tree:
        f = steps.factor(raw, steps.prior(raw), batch)
        return steps.e_phase(raw, f, batch, state, rate, scale)

    def e_step_held(
        raw: Theta, p: Any, batch: Batch, state: Tree, rate: Array, scale: Array
    ) -> Tree:
        return held.e_phase(raw, held.factor(raw, p, batch), batch, state, rate, scale)

    def em_step(
        raw: Theta,
        p: Any,
        state: Tree,
        adam: AdamState,
        batches: Batch,
        last: Batch,
        e_rate: Array,
        m_rate: Array,
        scale: Array,
    ) -> Tree:
        state = of_em.e_phase_batches(raw, p, batches, state, e_rate, scale)
        return of_em.m_phase_batches(raw, p, state, adam, last, m_rate, scale)

    def predict(raw: Theta, state: Tree, batch: Batch) -> Predicted:
        return steps.predict(raw, steps.prior(raw), state, batch)

    return _Compiled(
        training=steps,
        e_step=ops.jit(e_step),
        e_step_held=ops.jit(e_step_held),
        em_step=em_step,  # two calls, as in training
        of_em=(of_em.e_phase_batches, of_em.m_phase_batches),
        m_step=steps.m_phase_batches,
        predict=ops.jit(predict),
    )


class TimedMethod(NamedTuple):
    """Method as it is timed: its name, options and family."""

    name: str
    options: Mapping[str, Any]
    family: str  # M-steps agree within it
    alone: bool  # True if no other method has its figures

    def build(self) -> AnyMethod:
        """Return the method with its options."""
        return build_method(self.name, dict(self.options))

    def refuse(self, title: str, likelihood: Likelihood) -> None:
        """Raise `UserError` if the method cannot take a likelihood."""
        if why := self.build().refuses(likelihood):
            raise UserError(f"speed method {title!r} cannot take {likelihood.name!r}: {why}")


def usual_methods() -> dict[str, TimedMethod]:
    """Return the methods that are timed by default, by their names in tables."""
    return {
        f"{name}-{variant}" if variant else name: TimedMethod(name, options, name, alone=False)
        for name, method in whole(METHODS).items()
        for variant, options in method.facts.timed.items()
    }


def timed_method(title: str) -> TimedMethod:
    """Return a method by its name in tables, or any method and variant as `check` shows them.

    Raises `UserError` for an unknown method or variant.
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


def _sampled_points(method: AnyMethod, theta: Theta) -> Any:
    """Return the basis points [r] that a batch samples, or () if the method uses all."""
    if not (count := method.sampled_points):
        return ()
    points = len(method.sampled_basis(theta.inducing))
    return np.random.default_rng(0).permutation(points)[:count]


def build_case(ops: Ops, problem: Problem, method_title: str, step: str) -> Case:
    """Build a case. The timed step is neither traced nor compiled before its first call.

    `m_step` and `predict` start from the state after one E-step from q = p, the others from q = p.
    A method that needs all data gets the batch as its data set. Raises `UserError` for an unknown method or
    step, and for a likelihood that the method refuses.
    """
    if step not in STEPS:
        raise unknown("speed step", step, STEPS)
    case = _Bench(ops, problem, method_title, problem.model()).case(step)
    if not problem.sampled:
        return case

    def as_peers() -> float:
        theirs = _Bench(ops, problem, method_title, problem.model_of_peers()).case(step)
        return theirs.figure(theirs.call())

    return replace(case, as_peers=as_peers)


class _Bench:
    """Method at the start of a problem, with the data on the device."""

    def __init__(self, ops: Ops, problem: Problem, method_title: str, model: Model) -> None:
        timed = timed_method(method_title)
        timed.refuse(method_title, model.likelihood)
        self.ops, self.problem, self.model, self.method = ops, problem, model, timed.build()
        self.compiled = _compile(ops, model, self.method)
        self.training = self.compiled.training
        theta = problem.theta(model, self.method.basis)
        self.raw = tree_map(ops.asarray, unconstrain(theta))
        self.basis_points = _sampled_points(self.method, theta)
        m = self.method
        self.whole = m.needs_all_data or m.collapsed or m.basis == "data"
        n = len(problem.y) if self.whole else int(problem.n)
        rows = np.arange(n) if self.whole else problem.rows
        self.first = self._rows(problem.X, problem.y, rows)
        self.batch = self._on_device(self.first)
        self.e_rate = ops.asarray(problem.m_rate if m.first_order else problem.e_rate)
        self.m_rate = ops.asarray(problem.m_rate)
        self.scale = ops.asarray(np.float64(n / len(problem.y)))
        self.prior = self.training.prior(self.raw)
        self.start = m.initial_state(ops, self.prior, model.latents, n)

    def case(self, step: str) -> Case:
        """Return the step with its arguments."""
        ops, compiled, raw, batch = self.ops, self.compiled, self.raw, self.batch
        if step == "e_step":
            arguments: tuple[Tree, ...] = (raw, batch, self.start, self.e_rate, self.scale)
            return Case(ops, compiled.e_step, arguments, lambda q: self._bound(raw, q, batch))
        if step == "e_step_held":
            arguments = (raw, self.prior, batch, self.start, self.e_rate, self.scale)
            return Case(ops, compiled.e_step_held, arguments, lambda q: self._bound(raw, q, batch))
        if step == "em_step":
            return self._em_case()
        f = self.training.factor(raw, self.prior, batch)
        state = self.training.e_phase(raw, f, batch, self.start, self.e_rate, self.scale)
        if step == "m_step":
            one = self._stacked([self.first])
            arguments = (raw, self.prior, state, self._adam(), one, self.m_rate, self.scale)
            return Case(ops, compiled.m_step, arguments, self._bound_after(batch))
        count = len(self.problem.y_new)
        new = self._rows(self.problem.X_new, self.problem.y_new, np.arange(count))
        arguments = (raw, state, self._on_device(new._replace(basis_points=())))
        return Case(
            ops, compiled.predict, arguments, lambda out: ops.sum(out.log_density) / float(count)
        )

    def _em_case(self) -> Case:
        problem, drawn = self.problem, [self.first] * (1 + LATER)
        if not self.whole:
            later = zip(problem.X_later, problem.y_later, problem.rows_later, strict=True)
            drawn = [self.first, *(self._rows(*of) for of in later)]
        batches, last = self._stacked(drawn[:LATER]), self._stacked(drawn[LATER:])
        rates = (self.e_rate, self.m_rate, self.scale)
        arguments = (self.raw, self.prior, self.start, self._adam(), batches, last, *rates)
        after = self._bound_after(self._on_device(drawn[LATER]))
        em_step, of_em = self.compiled.em_step, self.compiled.of_em
        return Case(self.ops, em_step, arguments, after, parts=of_em)

    def _rows(self, X: Any, y: Any, rows: Any) -> Batch:
        """Return a batch on the host."""
        return Batch(
            X, y, rows, self.problem.noise if self.problem.sampled else (), self.basis_points
        )

    def _on_device(self, batch: Batch) -> Batch:
        on_device: Batch = tree_map(self.ops.asarray, batch)
        return on_device

    def _stacked(self, batches: Sequence[Batch]) -> Batch:
        return self._on_device(tree_map(lambda *x: np.stack(x), *batches))

    def _adam(self) -> AdamState:
        return adam_start(self.ops, learned(self.raw, learnable(self.method, LEARN)))

    def _bound(self, at: Theta, state: Tree, batch: Batch) -> Array:
        f = self.training.factor(at, self.training.prior(at), batch)
        return self.training.bound(at, f, batch, state, self.scale)

    def _bound_after(self, batch: Batch) -> Callable[[Tree], Array]:
        """Return a function of an M-step's result: the bound on a batch at its θ and q."""
        return lambda moved: self._bound(moved[0].raw, moved[0].state, batch)
