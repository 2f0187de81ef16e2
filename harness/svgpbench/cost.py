"""Cost of training steps and phases: FLOPs, bytes moved and peak memory, counted on shapes.

The counting backend runs the steps of `steps.py`, so the count follows the code. Bytes are those of
unfused execution: each operation reads its arrays and writes its result. Peak memory includes the inputs of
the step (θ, its Adam moments, state, batch).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from svgpbench.backends import new_backend
from svgpbench.config import LEARN, Learnable
from svgpbench.errors import UserError
from svgpbench.kernels import Model, Theta
from svgpbench.kernels.bases import Decoupled
from svgpbench.kernels.compound import Compound
from svgpbench.kernels.kernels import Kernel, KernelParameters
from svgpbench.methods import AnyMethod
from svgpbench.methods.collapsed import SGPR
from svgpbench.ops import Array, Ops, Tree
from svgpbench.training.blocks import Batch, trainable_names
from svgpbench.training.chunked import Passes, compile_passes
from svgpbench.training.session import Session, session_at
from svgpbench.tree import leaves, tree_map

T = TypeVar("T")


class Tally(NamedTuple):
    """Cost of one step."""

    flops: int
    bytes: int
    peak_bytes: int
    choleskys: int  # matrices factorised: one for each kernel and latent with its own matrix
    product_flops: int
    cholesky_flops: int
    solve_flops: int

    @property
    def elementwise_flops(self) -> int:
        """FLOPs of all other operations: one per entry, also for sums, exponentials and log Φ."""
        return self.flops - self.product_flops - self.cholesky_flops - self.solve_flops


class Cost(NamedTuple):
    """Cost of an E-step, an M-step and a prediction; an EM iteration of one step each costs the first two."""

    e_step: Tally  # K(Z, Z), L and K(Z, X) at θ, then one step on q
    m_step: Tally  # one step on θ, and the change of the state to the new θ
    prediction: Tally  # densities and predictions at as many test points as a batch has rows


class Phases(NamedTuple):
    """FLOPs of each phase of a run of the EM loop."""

    start: int  # K(Z, Z) and L at a θ
    e_phase: int  # all E-steps at one θ, and the data blocks that they share
    m_phase: int  # all Adam steps between two E-phases, and the change of the state to the last θ
    ascent: int  # L-BFGS without its evaluations: the held quantities, and the state at the new θ
    evaluation: int  # one objective with its gradient, for L-BFGS


@dataclass(frozen=True)
class Size:
    """Sizes of a problem; `b` None is the full batch.

    Raises `UserError` for a size below 1 or a batch larger than n.
    """

    n: int
    M: int  # inducing points; those of the covariance if the bases are decoupled
    D: int
    b: int | None = None
    gamma: int | None = None  # inducing points of the mean if the bases are decoupled

    def __post_init__(self) -> None:
        for name in ("n", "M", "D", "b", "gamma"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"{name} = {value}: a size is at least 1")
        if self.rows > self.n:
            raise UserError(f"a batch of b = {self.b} rows is more than n = {self.n}")

    @property
    def rows(self) -> int:
        """Number of rows of a batch."""
        return self.b or self.n


class CountingBackend(Ops, Protocol):
    """The counting backend: an `Ops` that measures the cost of a call."""

    def count(self, f: Callable[[], T]) -> tuple[T, tuple[int, ...]]:
        """Return the result of `f`, and the fields of `Tally` in their order."""


@functools.lru_cache
def count(
    method: AnyMethod,
    model: Model,
    size: Size,
    *,
    dtype: str = "float64",
    learn: tuple[Learnable, ...] = LEARN,
) -> Cost:
    """Count the cost of an E-step, an M-step and a prediction, as training runs them.

    Raises `UserError` if the method refuses the likelihood or a minibatch, or if `gamma` is missing or not
    used by the method.
    """
    _check(method, model, size)
    ops: CountingBackend = new_backend("counting", dtype=dtype)  # type: ignore[assignment]
    return _Counted(ops, model, method, size, trainable_names(method, learn)).cost()


@functools.lru_cache
def count_phases(
    method: AnyMethod,
    model: Model,
    size: Size,
    e_steps: int,
    m_steps: int,
    *,
    dtype: str = "float64",
    learn: tuple[Learnable, ...] = LEARN,
) -> Phases:
    """Count the FLOPs of each phase of a run with these numbers of steps; raises the errors of `count`."""
    _check(method, model, size)
    ops: CountingBackend = new_backend("counting", dtype=dtype)  # type: ignore[assignment]
    learned_parts = trainable_names(method, learn)
    return _Counted(ops, model, method, size, learned_parts, e_steps, m_steps).phases()


class _Counted:
    """Steps of one method on shapes, in the order of `Trainer`."""

    def __init__(
        self,
        ops: CountingBackend,
        model: Model,
        method: AnyMethod,
        size: Size,
        learn: tuple[Learnable, ...],
        e_steps: int = 1,
        m_steps: int = 1,
    ) -> None:
        self.ops, self.model, self.method, self.size = ops, model, method, size
        self.learn, self.e_steps, self.m_steps = learn, e_steps, m_steps
        session = self.start()
        self.steps, self.raw, self.adam = session.steps, session.raw, session.adam()
        self.number = ops.zeros(())  # stands for a rate or for n/b

    def start(self) -> Session:
        """Return the method at a θ of shapes; nobody keeps it, so that peak memory has no part of it."""
        ops, size = self.ops, self.size
        inducing: Any = ops.zeros((size.n if self.method.basis == "data" else size.M, size.D))
        if size.gamma is not None:
            inducing = Decoupled(ops.zeros((size.gamma, size.D)), inducing)
        initial = self.model.likelihood.initial_parameters()
        raw = Theta(
            _parameters(ops, self.model.kernel, size.D),
            tree_map(lambda _: ops.zeros(()), initial),
            inducing,
        )
        return session_at(
            self.ops,
            self.model,
            self.method,
            raw,
            self.size.n,
            self.learn,
            self.e_steps,
            self.m_steps,
        )

    def cost(self) -> Cost:
        ops = self.ops
        # the first step allocates the state: an initial state may be a view of one number
        state = self._e_step(self.start().q)
        state, e_step = ops.count(lambda: self._e_step(state))
        p = self.steps.prior(self.raw)
        _, m_step = ops.count(lambda: self._m_step(p, state))
        # () stands for the whole basis: basis points are sampled in training only
        batch = self._batch(self.size.rows)._replace(basis_points=())
        _, prediction = ops.count(lambda: self.steps.predict(self.raw, p, state, batch))
        return Cost(Tally(*e_step), Tally(*m_step), Tally(*prediction))

    def phases(self) -> Phases:
        p, start = self._flops(lambda: self.steps.prior(self.raw))
        state = self.start().q
        state, e_phase = self._flops(lambda: self._e_phase(p, state))
        _, m_phase = self._flops(lambda: self._m_step(p, state))
        if self.size.b is not None:
            return Phases(start, e_phase, m_phase, 0, 0)  # L-BFGS takes all rows
        if isinstance(self.method, SGPR):

            def value_and_gradient() -> Tree:
                """Compute SGPR's bound and its gradient by sums over all rows, as its trainer does."""
                passes, batch = self._passes(), self._batch(self.size.n)
                total = passes.sums(self.raw, self.steps.prior(self.raw), batch)
                _, (_, cotangent) = passes.outer(self.raw, total)
                return passes.pull(self.raw, batch, cotangent)

            return Phases(start, e_phase, m_phase, 0, self._flops(value_and_gradient)[1])
        batch = self._batch(self.size.n)
        invariant, holds = self._flops(lambda: self.steps.invariant(self.raw, p, state))
        _, ties = self._flops(lambda: self.steps.tied(self.raw, invariant, batch.X))
        objective = self.steps.objective_and_gradient
        _, evaluation = self._flops(lambda: objective(self.raw, invariant, batch, self.number))
        return Phases(start, e_phase, m_phase, holds + ties, evaluation)

    def _flops(self, f: Callable[[], T]) -> tuple[T, int]:
        result, tally = self.ops.count(f)
        return result, Tally(*tally).flops

    def _passes(self) -> Passes:
        assert isinstance(self.method, SGPR)
        return compile_passes(self.ops, self.model, self.method, self.learn)

    def _e_step(self, state: Tree) -> Tree:
        return self._e_phase(self.steps.prior(self.raw), state)

    def _e_phase(self, p: Any, state: Tree) -> Tree:
        rate, scale = self.number, self.number
        if self.size.b is None:
            batch = self._batch(self.size.n)
            if isinstance(self.method, SGPR):
                passes = self._passes()
                return passes.best_q(self.raw, passes.sums(self.raw, p, batch))
            f = self.steps.factor(self.raw, p, batch)
            return self.steps.e_phase(self.raw, f, batch, state, rate, scale)
        batches = self._batch(self.size.b, stack=(self.e_steps,))
        return self.steps.e_phase_batches(self.raw, p, batches, state, rate, scale)

    def _m_step(self, p: Any, state: Tree) -> Tree:
        # an untied M-step rebuilds its sums from the sites of all rows, however small the batch
        if self.size.b is None or self.method.needs_all_data:
            run, batch = self.steps.m_phase, self._batch(self.size.n)
        else:
            run = self.steps.m_phase_batches
            batch = self._batch(self.size.b, stack=(self.m_steps,))
        return run(self.raw, p, state, self.adam, batch, self.number, self.number)

    def _batch(self, rows: int, stack: tuple[int, ...] = ()) -> Batch:
        ops, likelihood = self.ops, self.model.likelihood
        noise: Any = ()
        if likelihood.samples:
            noise = ops.zeros((*stack, likelihood.samples, likelihood.latents))
        sampled: Any = ()
        if self.method.sampled_points:
            points = int(leaves(self.method.sampled_basis(self.raw.inducing))[0].shape[0])
            sampled = _integers(ops, *stack, min(self.method.sampled_points, points))
        return Batch(
            ops.zeros((*stack, rows, self.size.D)),
            ops.zeros((*stack, rows)),
            _integers(ops, *stack, rows),
            noise,
            sampled,
        )


def exponents(
    method: AnyMethod, model: Model, size: Size, step: str, quantity: str
) -> dict[str, float]:
    """Return the slope d log cost / d log x for each x = n, b, M, D, gamma that is set.

    The slope is from `size` to twice this x, or to half of it for a batch of more than half of the rows.
    `step` is a field of `Cost`, `quantity` a field of `Tally`. If one term of a polynomial cost is much
    larger than the others, the slopes are its exponents. With the full batch, n is also the batch size.
    """

    def value(sizes: Size) -> float:
        return float(getattr(getattr(count(method, model, sizes), step), quantity))

    def slope(x: str, number: int) -> float:
        other = number // 2 if x == "b" and 2 * number > size.n else 2 * number
        ratio = value(replace(size, **{x: other})) / value(size)
        return math.log2(ratio) / math.log2(other / number)

    return {x: slope(x, number) for x, number in asdict(size).items() if number is not None}


def _check(method: AnyMethod, model: Model, size: Size) -> None:
    if why := method.refuses(model.likelihood):
        raise UserError(f"method {method.name!r}: {why}")
    if size.b is not None and method.collapsed:
        raise UserError(f"method {method.name!r} takes all rows at once; leave the batch out")
    if (method.basis == "decoupled") != (size.gamma is not None):
        verb = "needs" if method.basis == "decoupled" else "has no"
        raise UserError(f"method {method.name!r} {verb} gamma, a basis of the mean alone")


def _parameters(ops: Ops, kernel: Kernel, D: int) -> Tree:
    if isinstance(kernel, Compound):
        return tuple(_parameters(ops, part, D) for part in kernel.parts)
    return KernelParameters(ops.zeros((1,)), ops.zeros((1, D)))


def _integers(ops: Ops, *shape: int) -> Array:
    """Return row numbers of a shape; the array is a view of a single number."""
    return ops.asarray(np.broadcast_to(np.int64(0), shape))
