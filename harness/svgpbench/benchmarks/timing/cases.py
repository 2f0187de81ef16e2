"""Timed cases: the compiled steps of training on one problem, ready to be called repeatedly.

* `e_step`, `m_step` and `predict` start from θ. They compute K(Z, Z) and its Cholesky factor, as the peers
  do.
* `e_step_held` is an E-phase as the dual parameterization and the training loop run it. θ is fixed, so
  K(Z, Z), its factor and W are computed once.
* `predict_cached_100` predicts 100 rows as a deployed model does. What does not depend on the rows is
  computed before: weights that leave products alone, or the factors of a method that has no q(u) of one
  set of inducing inputs. Times are reported per row.
* `em_step` is an EM iteration in the middle of training. It takes E-steps, each on a fresh minibatch, from
  the factor of K(Z, Z) that the previous M-step left. Then it takes an M-step on one more minibatch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from svgpbench.backends import load_backend
from svgpbench.benchmarks.timing.problems import LATER, TimedProblem
from svgpbench.config import LEARN
from svgpbench.errors import UserError, unknown
from svgpbench.kernels import Model, Theta, constrain
from svgpbench.libraries.steps import CACHED_ROWS, HELD_STEPS, rows_to_predict
from svgpbench.likelihoods import Likelihood
from svgpbench.likelihoods.likelihood import Predicted
from svgpbench.methods import AnyMethod, build_method
from svgpbench.methods.prediction_weights import PredictionWeights, prediction_weights
from svgpbench.numerics.adam import AdamState
from svgpbench.ops import Array, Ops, Tree
from svgpbench.plugins import METHODS, load, load_all, plugins
from svgpbench.training.blocks import Batch, factor_at, trainable_names
from svgpbench.training.session import start_session
from svgpbench.training.steps import MPhase, compile_steps
from svgpbench.tree import tree_map

STEPS: dict[str, int] = {
    "e_step": 1,
    "e_step_held": HELD_STEPS,
    "m_step": 1,
    "em_step": 1,
    "predict": 1,
    **CACHED_ROWS,
}
"""Timed steps, with the number of steps per call. Times are reported per step."""

USUAL_STEPS = tuple(step for step in STEPS if step not in CACHED_ROWS)
"""Steps that are timed if none is named."""

FAMILY_STEPS = ("m_step", "em_step")
"""Steps after which only methods of one family agree, because families tie q to θ differently."""


@dataclass(frozen=True)
class TimedCase:
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
    """Timed steps, composed of the steps of training."""

    e_step: Callable[[Theta, Batch, Tree, Array, Array], Tree]
    e_step_held: Callable[[Theta, Any, Batch, Tree, Array, Array], Tree]
    em_step: Callable[[Theta, Any, Tree, AdamState, Batch, Batch, Array, Array, Array], Tree]
    parts_of_em: tuple[Callable[..., Tree], ...]
    m_step: MPhase
    predict: Callable[[Theta, Tree, Batch], Predicted]
    predict_cached: Callable[[Theta, PredictionWeights, Batch], Predicted]
    predict_by_factors: Callable[[Theta, Any, Tree, Batch], Predicted]


@functools.lru_cache
def _compile(ops: Ops, model: Model, method: AnyMethod) -> _Compiled:
    learn = trainable_names(method, LEARN)
    steps, held_steps, em_steps = (
        compile_steps(ops, model, method, e_steps, 1, learn) for e_steps in (1, HELD_STEPS, LATER)
    )

    def e_step(raw: Theta, batch: Batch, state: Tree, rate: Array, scale: Array) -> Tree:
        f = steps.factor(raw, steps.prior(raw), batch)
        return steps.e_phase(raw, f, batch, state, rate, scale)

    def e_step_held(
        raw: Theta, p: Any, batch: Batch, state: Tree, rate: Array, scale: Array
    ) -> Tree:
        f = held_steps.factor(raw, p, batch)
        return held_steps.e_phase(raw, f, batch, state, rate, scale)

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
        state = em_steps.e_phase_batches(raw, p, batches, state, e_rate, scale)
        return em_steps.m_phase_batches(raw, p, state, adam, last, m_rate, scale)

    def predict(raw: Theta, state: Tree, batch: Batch) -> Predicted:
        return steps.predict(raw, steps.prior(raw), state, batch)

    def predicted(theta: Theta, batch: Batch, mu: Array, v: Array) -> Predicted:
        return model.conditional(theta, batch.noise).predicted(ops, batch.y, mu, v)

    def predict_cached(raw: Theta, weights: PredictionWeights, batch: Batch) -> Predicted:
        theta = constrain(ops, raw)
        cov = model.covariance(ops, theta)
        return predicted(theta, batch, *weights.marginals(ops, cov, batch.X))

    def predict_by_factors(raw: Theta, p: Any, q: Tree, batch: Batch) -> Predicted:
        theta = constrain(ops, raw)
        f = factor_at(ops, model, method, theta, p, batch.X)
        return predicted(theta, batch, *method.marginals(ops, f, q))

    return _Compiled(
        e_step=ops.jit(e_step),
        e_step_held=ops.jit(e_step_held),
        em_step=em_step,  # two calls, as in training
        parts_of_em=(em_steps.e_phase_batches, em_steps.m_phase_batches),
        m_step=steps.m_phase_batches,
        predict=ops.jit(predict),
        predict_cached=ops.jit(predict_cached),
        predict_by_factors=ops.jit(predict_by_factors),
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
        for name, method in load_all(METHODS).items()
        for variant, options in method.info.timed.items()
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
    variants = {"": {}, **load(METHODS, name).info.variants}
    if variant not in variants:
        raise unknown(f"variant of method {name}", variant, variants)
    return TimedMethod(name, variants[variant], title, alone=True)


def build_case(ops: Ops, problem: TimedProblem, method_title: str, step: str) -> TimedCase:
    """Build a case. The timed step is neither traced nor compiled before its first call.

    `m_step` and predictions start from the state after one E-step from q = p, the others from q = p.
    A method that needs all data gets the batch as its data set. Raises `UserError` for an unknown method or
    step, and for a likelihood that the method refuses.
    """
    if step not in STEPS:
        raise unknown("speed step", step, STEPS)
    case = _Start(ops, problem, method_title, problem.model()).case(step)
    if not problem.sampled:
        return case

    def as_peers() -> float:
        peer_case = _Start(ops, problem, method_title, problem.model_of_peers()).case(step)
        return peer_case.figure(peer_case.call())

    return replace(case, as_peers=as_peers)


class _Start:
    """Method at the start of a problem, with the data on the device."""

    def __init__(self, ops: Ops, problem: TimedProblem, method_title: str, model: Model) -> None:
        timed = timed_method(method_title)
        timed.refuse(method_title, model.likelihood)
        method = timed.build()
        theta = problem.theta(model, method.basis)
        self.whole = method.needs_all_data or method.collapsed or method.basis == "data"
        n = len(problem.y) if self.whole else int(problem.n)
        self.session = start_session(ops, model, method, theta, n)
        self.problem = problem
        self.basis_points: Any = ()  # [r], those that a batch samples; empty if it uses all
        if count := method.sampled_points:
            # drawn once: timed calls have equal arguments, and every sample costs the same
            points = len(method.sampled_basis(theta.inducing))
            self.basis_points = np.random.default_rng(0).permutation(points)[:count]
        rows = np.arange(n) if self.whole else problem.rows
        self.first = self._rows(problem.X, problem.y, rows)
        self.batch = tree_map(ops.asarray, self.first)
        # a natural gradient's rate is of order one, far too long for an E-step by Adam
        self.e_rate = ops.asarray(problem.m_rate if method.first_order else problem.e_rate)
        self.m_rate = ops.asarray(problem.m_rate)
        self.scale = self.session.scale(self.batch)

    def case(self, step: str) -> TimedCase:
        """Return the step with its arguments."""
        session, batch, rates = self.session, self.batch, (self.e_rate, self.scale)
        ops, raw, prior, q = session.ops, session.raw, session.prior, session.q
        compiled = _compile(ops, session.model, session.method)
        if step == "e_step":
            arguments: tuple[Tree, ...] = (raw, batch, q, *rates)
            return TimedCase(ops, compiled.e_step, arguments, lambda q: self._bound(raw, q, batch))
        if step == "e_step_held":
            arguments = (raw, prior, batch, q, *rates)
            return TimedCase(
                ops, compiled.e_step_held, arguments, lambda q: self._bound(raw, q, batch)
            )
        if step == "em_step":
            batches = [self.first] * (1 + LATER)
            if not self.whole:
                problem = self.problem
                later = zip(problem.X_later, problem.y_later, problem.rows_later, strict=True)
                batches = [self.first, *(self._rows(*rows) for rows in later)]
            arguments = (raw, prior, q, session.adam(), self._stacked(batches[:LATER]))
            arguments += (self._stacked(batches[LATER:]), self.e_rate, self.m_rate, self.scale)
            after = self._bound_after(tree_map(ops.asarray, batches[LATER]))
            return TimedCase(ops, compiled.em_step, arguments, after, parts=compiled.parts_of_em)
        f = session.steps.factor(raw, prior, batch)
        # at q = p whitened and dual marginals are the prior's, whatever Z is. An M-step would have
        # no gradient in Z or the lengthscales, and predictions no mean.
        q = session.steps.e_phase(raw, f, batch, q, *rates)
        if step == "m_step":
            stacked = self._stacked([self.first])
            arguments = (raw, prior, q, session.adam(), stacked, self.m_rate, self.scale)
            return TimedCase(ops, compiled.m_step, arguments, self._bound_after(batch))
        problem, count = self.problem, CACHED_ROWS.get(step, len(self.problem.y_new))
        new = self._rows(*rows_to_predict(problem.X_new, problem.y_new, count), np.arange(count))
        # predictions use the whole basis: points are sampled for a quadratic form of the bound
        rows = tree_map(ops.asarray, new._replace(basis_points=()))
        timed: Callable[..., Predicted] = compiled.predict
        arguments = (raw, q, rows)
        if step in CACHED_ROWS:
            factors = session.method.factorise(ops, prior, q)
            arguments, timed = (raw, prior, factors, rows), compiled.predict_by_factors
            if weights := self._weights(factors):
                arguments, timed = (raw, weights, rows), compiled.predict_cached
        return TimedCase(ops, timed, arguments, lambda out: ops.sum(out.log_density) / float(count))

    def _weights(self, factors: Tree) -> PredictionWeights | None:
        """Return the weights of predictions on the device, which NumPy computes; None if there are none."""
        session = self.session
        ops = session.ops
        blocks = (constrain(ops, session.raw).inducing, session.prior, factors)
        host = tree_map(lambda x: np.asarray(ops.to_numpy(x), np.float64), blocks)
        found = prediction_weights(load_backend("numpy"), session.method, *host)
        return None if found is None else tree_map(ops.asarray, found)

    def _rows(self, X: Any, y: Any, rows: Any) -> Batch:
        """Return a batch on the host."""
        noise = self.problem.noise if self.problem.sampled else ()
        return Batch(X, y, rows, noise, self.basis_points)

    def _stacked(self, batches: Sequence[Batch]) -> Batch:
        """Return batches on the device, stacked on a leading axis."""
        stacked: Batch = tree_map(lambda *x: self.session.ops.asarray(np.stack(x)), *batches)
        return stacked

    def _bound(self, raw: Theta, q: Tree, batch: Batch) -> Array:
        prior = self.session.steps.prior(raw)
        return replace(self.session, raw=raw, prior=prior, q=q).bound(batch)

    def _bound_after(self, batch: Batch) -> Callable[[Tree], Array]:
        """Return a function of an M-step's result: the bound on a batch at its θ and q."""
        return lambda result: self._bound(result[0].raw, result[0].q, batch)
