"""The compiled steps of one (backend, model, method): what the training loop and the timers call.

Everything enters as arrays or NamedTuples of arrays, data included, so that a step compiles once a
shape and outlives the cell that compiled it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from svgpbench.config import Learnable
from svgpbench.methods.data_term import DataTerm
from svgpbench.methods.method import AnyMethod, BatchBlocks, Method, PriorBlocks
from svgpbench.model import Model, Theta, constrain
from svgpbench.numerics.adam import AdamState, adam_ascent
from svgpbench.ops import Array, Ops, Tree


class Batch(NamedTuple):
    """Rows of the data and the draws that go with them; stacked batches have one more leading axis."""

    X: Array  # [b, D]
    y: Array  # [b]
    index: Array  # [b], row numbers
    noise: Any = ()  # [S, P], where the likelihood samples
    basis_points: Any = ()  # [r], those that are sampled, where the method samples them


class EPhase(Protocol):
    """E-steps on q: at the blocks `f` of one batch, or at `p` on a batch a step."""

    def __call__(
        self, raw: Theta, blocks: Any, batch: Batch, state: Tree, rate: Array, scale: Array, /
    ) -> Tree: ...


class MPhase(Protocol):
    """M-steps on the learned parts of θ, on one batch or a batch a step, and q carried to the new θ."""

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
    ) -> tuple[Theta, AdamState, Tree]: ...


class Objective(Protocol):
    """What M-steps go up [], and its gradient in the learned parts of θ."""

    def __call__(
        self, raw: Theta, held: Tree, batch: Batch, scale: Array, /
    ) -> tuple[Array, Tree]: ...


class Bound(Protocol):
    """The method's bound [] on a batch."""

    def __call__(self, raw: Theta, f: Any, batch: Batch, state: Tree, scale: Array, /) -> Array: ...


class Prediction(Protocol):
    """What q says of a batch."""

    def __call__(self, raw: Theta, p: Any, state: Tree, batch: Batch, /) -> Predicted: ...


class Predicted(NamedTuple):
    """What q says of b test points."""

    log_density: Array  # [b], of y
    mean: Array  # [b]; probability of class 1 [b] or of several classes [C, b]
    variance: Any = ()  # [b], where p(y) is Gaussian


@dataclass(frozen=True)
class Steps:
    """Compiled functions; `raw` is unconstrained θ, `rate` and `scale` are arrays []."""

    prior: Callable[[Theta], Any]
    factor: Callable[[Theta, Any, Batch], Any]
    e_phase: EPhase
    e_phase_batches: EPhase
    m_phase: MPhase
    m_phase_batches: MPhase
    hold: Callable[[Theta, Any, Tree], Tree]  # (raw, p, state) -> held
    objective_and_gradient: Objective
    retie: Callable[[Theta, Tree, Array], Tree]  # (raw, held, X) -> state
    bound: Bound
    predict: Prediction
    negative_beta: Callable[[Theta, Any, Tree, Batch], Array]  # (raw, p, state, batch) -> rows []


def learned(raw: Theta, names: tuple[str, ...]) -> tuple[Any, ...]:
    """The parts of θ that an M-step moves."""
    return tuple(getattr(raw, name) for name in names)


def with_learned(raw: Theta, names: tuple[str, ...], parts: tuple[Any, ...]) -> Theta:
    """θ with those parts replaced."""
    return raw._replace(**dict(zip(names, parts, strict=True)))


def learnable(method: AnyMethod, names: tuple[Learnable, ...]) -> tuple[Learnable, ...]:
    """The parts that may be learned: where the basis is the data, it stays where the data are."""
    return tuple(x for x in names if not (x == "inducing" and method.basis == "data"))


def prior_at(
    ops: Ops, model: Model, method: Method[PriorBlocks, Any, Any, Any], theta: Theta
) -> PriorBlocks:
    """The method's blocks at θ."""
    return method.prior(ops, model.covariance(ops, theta), theta.inducing)


def factor_at(
    ops: Ops,
    model: Model,
    method: Method[PriorBlocks, BatchBlocks, Any, Any],
    theta: Theta,
    p: PriorBlocks,
    X: Array,
    basis_points: Any = (),
) -> BatchBlocks:
    """The method's blocks at θ and inputs X [b, D]."""
    return method.factor(ops, model.covariance(ops, theta), theta.inducing, p, X, basis_points)


def data_term(model: Model, theta: Theta, batch: Batch, scale: Array) -> DataTerm:
    """What the method sees of a batch at θ."""
    return DataTerm(model.conditional(theta, batch.noise), batch.y, batch.index, scale)


def m_objective(
    ops: Ops, model: Model, method: AnyMethod, raw: Theta, held: Tree, batch: Batch, scale: Array
) -> Array:
    """The bound [] at θ with `held` fixed, so that q moves with θ as the method's tying says.

    Source: Adam et al. 2021, Eq. 15 (dual), Eq. 14 (standard).
    """
    theta = constrain(ops, raw)
    p = prior_at(ops, model, method, theta)
    f = factor_at(ops, model, method, theta, p, batch.X, batch.basis_points)
    data = data_term(model, theta, batch, scale)
    return method.bound(ops, f, data, method.tie(ops, f, data.likelihood, held))


@functools.lru_cache
def compile_steps(
    ops: Ops, model: Model, method: AnyMethod, e_steps: int, m_steps: int, learn: tuple[str, ...]
) -> Steps:
    """The steps of a method on a backend, compiled lazily at their first call with each shape."""

    def prior(raw: Theta) -> Any:
        return prior_at(ops, model, method, constrain(ops, raw))

    def factor(raw: Theta, p: Any, batch: Batch) -> Any:
        return factor_at(ops, model, method, constrain(ops, raw), p, batch.X, batch.basis_points)

    def e_phase(raw: Theta, f: Any, batch: Batch, state: Tree, rate: Array, scale: Array) -> Tree:
        data = data_term(model, constrain(ops, raw), batch, scale)

        def step(s: Tree, _: Tree) -> Tree:
            return method.e_step(ops, f, data, s, rate)

        return step(state, ()) if e_steps == 1 else ops.scan(step, state, (), length=e_steps)

    def e_phase_batches(
        raw: Theta, p: Any, batches: Batch, state: Tree, rate: Array, scale: Array
    ) -> Tree:
        theta = constrain(ops, raw)

        def step(s: Tree, batch: Batch) -> Tree:
            f = factor_at(ops, model, method, theta, p, batch.X, batch.basis_points)
            return method.e_step(ops, f, data_term(model, theta, batch, scale), s, rate)

        return ops.scan(step, state, batches, length=e_steps)

    def objective_and_gradient(
        raw: Theta, held: Tree, batch: Batch, scale: Array
    ) -> tuple[Array, Tree]:
        def objective(parts: Tree) -> Array:
            moved = with_learned(raw, learn, parts)
            return m_objective(ops, model, method, moved, held, batch, scale)

        return ops.value_and_grad(objective)(learned(raw, learn))

    def ascend(
        raw: Theta, adam: AdamState, held: Tree, batch: Batch, rate: Array, scale: Array
    ) -> tuple[Theta, AdamState]:
        _, gradient = objective_and_gradient(raw, held, batch, scale)
        parts, adam = adam_ascent(ops, adam, learned(raw, learn), gradient, rate)
        return with_learned(raw, learn, parts), adam

    def hold(raw: Theta, p: Any, state: Tree) -> Tree:
        return method.hold(ops, p, model.conditional(constrain(ops, raw)), state)

    def retie(raw: Theta, held: Tree, X: Array) -> Tree:
        theta = constrain(ops, raw)
        f = factor_at(ops, model, method, theta, prior_at(ops, model, method, theta), X)
        return method.tie(ops, f, model.conditional(theta), held)

    def m_phase(
        raw: Theta, p: Any, state: Tree, adam: AdamState, batch: Batch, rate: Array, scale: Array
    ) -> tuple[Theta, AdamState, Tree]:
        held = hold(raw, p, state)

        def step(carry: tuple[Theta, AdamState], _: Tree) -> tuple[Theta, AdamState]:
            return ascend(carry[0], carry[1], held, batch, rate, scale)

        raw, adam = ops.scan(step, (raw, adam), (), length=m_steps)
        return raw, adam, retie(raw, held, batch.X)

    def m_phase_batches(
        raw: Theta,
        p: Any,
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
        return raw, adam, retie(raw, held, batches.X[0])

    def bound(raw: Theta, f: Any, batch: Batch, state: Tree, scale: Array) -> Array:
        return method.bound(ops, f, data_term(model, constrain(ops, raw), batch, scale), state)

    def marginals(raw: Theta, p: Any, state: Tree, batch: Batch) -> tuple[Any, Array, Array]:
        theta = constrain(ops, raw)
        f = factor_at(ops, model, method, theta, p, batch.X)
        mu, v = method.marginals(ops, f, method.factorise(ops, f, state))
        return model.conditional(theta, batch.noise), mu, v

    def predict(raw: Theta, p: Any, state: Tree, batch: Batch) -> Predicted:
        likelihood, mu, v = marginals(raw, p, state, batch)
        return Predicted(
            likelihood.log_predictive_density(ops, batch.y, mu, v),
            likelihood.predict(ops, mu, v),
            likelihood.predictive_variance(ops, mu, v),
        )

    def negative_beta(raw: Theta, p: Any, state: Tree, batch: Batch) -> Array:
        likelihood, mu, v = marginals(raw, p, state, batch)
        return likelihood.count_negative_beta(ops, batch.y, mu, v)

    return Steps(
        prior=ops.jit(prior),
        factor=ops.jit(factor),
        e_phase=ops.jit(e_phase),
        e_phase_batches=ops.jit(e_phase_batches),
        m_phase=ops.jit(m_phase),
        m_phase_batches=ops.jit(m_phase_batches),
        hold=ops.jit(hold),
        objective_and_gradient=ops.jit(objective_and_gradient),
        retie=ops.jit(retie),
        bound=ops.jit(bound),
        predict=ops.jit(predict),
        negative_beta=ops.jit(negative_beta),
    )
