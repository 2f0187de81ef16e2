"""Guarded steps: a step after which the bound is lower than before is cut back.

An E-step is compared on its own batch. Its rate is halved until the bound has not fallen and is finite, so
that no likelihood whose gradients are unbounded, such as Poisson counts with a log link, can overshoot. An
M-phase of Adam is compared on the batches that it took. If the bound fell or is not finite, the phase is run
again from its start, at half the rate and with new moments. The lower rate stays for later phases, and rises
again slowly while no phase is cut back. So on the full batch the bound of a run never falls, whatever the
method and the likelihood, and θ settles.

A fall counts only if it exceeds a slack that rounding cannot cross, so every backend decides alike.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from svgpbench.kernels import Model, Theta, constrain
from svgpbench.likelihoods.gaussian import GaussianLikelihood
from svgpbench.likelihoods.likelihood import Likelihood
from svgpbench.methods.data_term import DataTerm
from svgpbench.methods.method import AnyMethod
from svgpbench.methods.step_control import MOST_HALVINGS, halve_while
from svgpbench.numerics.adam import AdamState
from svgpbench.ops import Array, Ops, Tree
from svgpbench.stats.measures import MEASURES
from svgpbench.training.blocks import Batch, data_term, factor_at
from svgpbench.training.state import TrainState
from svgpbench.training.steps import fold
from svgpbench.tree import tree_map

# four phases that go well undo one halving
RECOVERY = 2.0**0.25
"""Factor by which the rate of M-steps rises after a phase that was not cut back."""


def checks_e_steps(method: AnyMethod, likelihood: Likelihood) -> bool:
    """Return True if an E-step can lower the bound; with Gaussian noise one step of most methods is exact."""
    exact = method.exact_with_gaussian_noise and isinstance(likelihood, GaussianLikelihood)
    return not (exact or method.collapsed)


class Slack(NamedTuple):
    """The fall of a bound that is taken for none: at most relative·|bound| + per_row·n."""

    relative: float
    per_row: float  # nats


FIRST_ORDER = Slack(1.0, 1.0)
"""Slack of steps of Adam, which go down as well as up: they are refused only if they ruin the fit."""


def slack_of(ops: Ops, likelihood: Likelihood) -> Slack:
    """Return the slack of steps that go up the bound: √ε, which rounding cannot cross.

    A bound by Monte Carlo, whose gradient is another estimate, may fall by the region of practical
    equivalence too.
    """
    root = float(np.sqrt(np.finfo(ops.dtype).eps))
    return Slack(root, root + (MEASURES["elbo"].per_datum if likelihood.samples else 0.0))


@dataclass(frozen=True)
class GuardedSteps:
    """Compiled functions; each takes what the function of this name in `Steps` takes."""

    e_phase: Callable[[Theta, Any, Batch, Tree, Array, Array], tuple[Tree, Array]]
    """E-steps that are cut back, with the number of halvings []."""
    e_phase_batches: Callable[[Theta, Any, Batch, Tree, Array, Array], tuple[Tree, Array]]
    bound_batches: Callable[[Theta, Any, Batch, Tree, Array], Array]
    """(raw, p, batches, state, scale) → the sum of the bounds [] on one batch per M-step."""


def guarded_e_step(
    ops: Ops,
    method: AnyMethod,
    slack: Slack,
    f: Any,
    data: DataTerm,
    rate: Array,
    state: Tree,
    count: Array,
) -> tuple[Tree, Array]:
    """Take an E-step at the first of the rates r, r/2, … at which the bound does not fall.

    If no rate is small enough, the state stays as it is. Return it with `count` plus the number of halvings.
    """
    before = method.bound(ops, f, data, state)
    # b · n/b = n, the rows for which the bound of a batch stands
    rows = float(data.y.shape[-1]) * data.scale
    floor = before - (slack.relative * ops.abs(before) + slack.per_row * rows)

    def failed(bound: Array) -> Array:
        zero = 0.0 * bound  # NaN if the bound is not finite
        fell = ops.where(bound < floor, zero + 1.0, zero)  # never if the floor is NaN
        # `Ops` has no test for finite numbers: NaN ≤ 0 is false, so NaN ends where a fall does
        return ops.where(fell <= 0.0, ops.zeros(()), ops.zeros(()) + 1.0) > 0.0

    def trial(rate: Array) -> tuple[tuple[Tree, Array], Array]:
        stepped = method.e_step(ops, f, data, state, rate)
        bound = method.bound(ops, f, data, stepped)
        return (stepped, bound), bound

    (stepped, bound), halvings = halve_while(ops, failed, trial, rate)
    has_failed = failed(bound)
    # 40 halvings may fail too, such as at a bound that is NaN for this batch
    kept = tree_map(lambda new, old: ops.where(has_failed, old, new), stepped, state)
    return kept, count + halvings


@functools.lru_cache
def compile_guarded_steps(
    ops: Ops, model: Model, method: AnyMethod, e_steps: int, m_steps: int
) -> GuardedSteps:
    """Return the guarded steps of a method on a backend; each compiles at its first call with a shape."""
    slack = FIRST_ORDER if method.first_order else slack_of(ops, model.likelihood)
    step = functools.partial(guarded_e_step, ops, method, slack)

    def e_phase(
        raw: Theta, f: Any, batch: Batch, state: Tree, rate: Array, scale: Array
    ) -> tuple[Tree, Array]:
        data = data_term(model, constrain(ops, raw), batch, scale)
        return fold(ops, lambda c, _: step(f, data, rate, *c), (state, ops.zeros(())), (), e_steps)

    def e_phase_batches(
        raw: Theta, p: Any, batches: Batch, state: Tree, rate: Array, scale: Array
    ) -> tuple[Tree, Array]:
        theta = constrain(ops, raw)

        def on_batch(c: tuple[Tree, Array], batch: Batch) -> tuple[Tree, Array]:
            f = factor_at(ops, model, method, theta, p, batch.X, batch.basis_points)
            return step(f, data_term(model, theta, batch, scale), rate, *c)

        return fold(ops, on_batch, (state, ops.zeros(())), batches, e_steps)

    def bound_batches(raw: Theta, p: Any, batches: Batch, state: Tree, scale: Array) -> Array:
        theta = constrain(ops, raw)

        def add(total: Array, batch: Batch) -> Array:
            f = factor_at(ops, model, method, theta, p, batch.X, batch.basis_points)
            return total + method.bound(ops, f, data_term(model, theta, batch, scale), state)

        return fold(ops, add, ops.zeros(()), batches, m_steps)

    return GuardedSteps(ops.jit(e_phase), ops.jit(e_phase_batches), ops.jit(bound_batches))


def guarded_phase(
    phase: Callable[[float, AdamState], TrainState],
    bound: Callable[[TrainState], float],
    start: TrainState,
    restart: AdamState,
    slack: Slack,
    rows: int,
) -> TrainState:
    """Run a phase of M-steps, again at half the rate for as long as the bound falls or is not finite.

    Args:
        phase: steps from `start`, at the rate times a factor, with Adam's moments.
        bound: the bound of a state on the batches of the phase.
        start: the state before the phase.
        restart: Adam's start, for a phase that runs again: the old moments may point down.
        slack: the fall that is none.
        rows: number n of data.
    """
    before = bound(start)
    # n beside |bound|: a bound near 0 is a difference of sums over n rows, whose rounding stays
    floor = before - (slack.relative * abs(before) + slack.per_row * rows)
    factor, adam = start.m_factor, start.adam
    for halvings in range(MOST_HALVINGS):
        moved = phase(factor, adam)
        value = bound(moved)
        if math.isfinite(value) and not value < floor:  # a NaN before the phase refuses nothing
            later = factor if halvings else min(1.0, RECOVERY * factor)
            return moved._replace(m_halvings=start.m_halvings + halvings, m_factor=later)
        factor, adam = 0.5 * factor, restart
    halvings = start.m_halvings + MOST_HALVINGS
    return start._replace(adam=restart, m_halvings=halvings, m_factor=factor)
