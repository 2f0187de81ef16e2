"""Evaluation of one case on one backend, as arrays named `group/array`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from svgpbench.backends import load_backend
from svgpbench.checks.cases import SmallProblem
from svgpbench.config import LEARN
from svgpbench.errors import NoAutodiffError
from svgpbench.kernels import Model, Theta, constrain, unconstrain
from svgpbench.methods import AnyMethod
from svgpbench.ops import Array, Ops, Tree
from svgpbench.training.blocks import Batch, data_term, factor_at, prior_at, trainable_names
from svgpbench.training.m_step import MStep
from svgpbench.training.session import start_session
from svgpbench.training.steps import compile_steps
from svgpbench.tree import named_leaves, tree_map

Arrays = dict[str, npt.NDArray[Any]]
# at rate 1 a dual step forgets the λ of its state, and would hide a fault there
RATE, ADAM_RATE, STEPS = 0.6, 0.02, 50
DIVERGED = -1e6
"""Bound of 48 rows below which three steps went too far: rounding grows without limit there.
The steps of such a case are ten times shorter."""
REFERENCE = "numpy"
GROUPS = ("values", "gradients", "e_step", "e_trajectory", "m_trajectory")
"""Groups of arrays that are compared for each case, in the order of the matrix."""
SKIPPED = "skipped"
"""`skipped/GROUP` holds the reason why a backend has no arrays for a group."""


class Values(NamedTuple):
    """Values of a state on one batch."""

    elbo: Array  # []
    kl: Array  # []
    mu: Array  # [P, b]
    v: Array  # [P, b]
    log_density: Array  # [b]
    q_mean: Array  # [P, M]
    q_cov: Array  # [P, M, M]


def groups_of(trajectories: str) -> tuple[str, ...]:
    """Return the groups of arrays of a case with these `trajectories`."""
    if trajectories == "none":
        return tuple(group for group in GROUPS if not group.endswith("trajectory"))
    return GROUPS


def skipped(groups: tuple[str, ...], why: str) -> Arrays:
    """Return the reason `why` under `skipped/GROUP` for each group."""
    return {f"{SKIPPED}/{group}": np.array(why) for group in groups}


def _or_skipped(ops: Ops, groups: tuple[str, ...], compute: Callable[[], Arrays]) -> Arrays:
    """Return `compute()`, or skip `groups` if it needs autodiff and the backend declares none."""
    try:
        return compute()
    except NoAutodiffError:
        if type(ops).capabilities.autodiff:
            raise
        return skipped(groups, WITHOUT_AUTODIFF)


WITHOUT_AUTODIFF = "it has no autodiff"


def evaluate(
    ops: Ops, model: Model, method: AnyMethod, problem: SmallProblem, trajectories: str = "compiled"
) -> Arrays:
    """Return the arrays of a case as `group/array`.

    A group that needs autodiff is `skipped/group` on a backend without it.
    """
    return _or_skipped(
        ops,
        groups_of(trajectories),
        lambda: _evaluate_groups(ops, model, method, problem, trajectories),
    )


def _evaluate_groups(
    ops: Ops, model: Model, method: AnyMethod, problem: SmallProblem, trajectories: str
) -> Arrays:
    """Return values, gradients, one E-step and, unless `trajectories` is "none", two trajectories.

    The state is that after two E-steps, on the first two batches. It is general, and the same for every
    method that starts at q = p and moves by natural gradients.
    """
    learn = trainable_names(method, LEARN)
    # single steps are not compiled: that would triple the cost of a case
    trajectory_ops = ops if trajectories == "compiled" else step_by_step(ops)
    ops = step_by_step(ops)
    run = compile_steps(trajectory_ops, model, method, STEPS, STEPS, learn)
    session = start_session(
        ops, model, method, problem.theta(model, method.basis), len(problem.X), m_steps=STEPS
    )
    batches = problem.batches_of(method)
    y = problem.targets(model.likelihood.support)
    unit_scale = session.number(1.0)

    def batch(rows: npt.NDArray[np.int64]) -> Batch:
        plain = session.batch(problem.X[rows], y[rows], rows)
        return plain._replace(**problem.random_inputs(ops, model, method, rows))

    full, raw = batch(np.arange(session.n)), session.raw
    raw_moved = tree_map(ops.asarray, unconstrain(problem.theta(model, method.basis, moved=True)))
    values = _values(ops, model, method)
    gradients = _gradients(ops, model, method)
    first = batch(batches[0])
    scale = session.scale(first)
    usual = ADAM_RATE if method.first_order else RATE
    for rate in (usual, usual / 10.0):
        after_two = session.e_step(batch(batches[0]), rate).e_step(batch(batches[1]), rate)
        state, third = after_two.q, after_two.e_step(batch(batches[2]), rate).q
        stepped = values(raw, third, first, scale)
        if float(ops.to_numpy(stepped.elbo)) > DIVERGED:  # False for NaN, too
            break

    def slopes() -> Arrays:
        objective, gradient = gradients(raw, raw_moved, state, full, unit_scale)
        if "inducing" not in learn:
            gradient = gradient._replace(inducing=())
        return {
            "gradients/objective": objective,
            **{f"gradients/{k}": x for k, x in named_leaves(gradient)},
        }

    arrays = {f"values/{k}": x for k, x in named_leaves(values(raw, state, first, scale))}
    arrays |= {f"e_step/{k}": x for k, x in named_leaves(stepped)}
    arrays |= _or_skipped(ops, ("gradients",), slopes)
    arrays |= {f"state/{k}": x for k, x in named_leaves(state)}
    if trajectories != "none":
        e_rate, m_rate = session.number(rate), session.number(ADAM_RATE)
        last = run.e_phase_batches(raw, session.prior, batch(batches), session.q, e_rate, scale)
        adam = session.adam()

        def m_steps() -> Arrays:
            learned = run.m_phase(raw, session.prior, state, adam, full, m_rate, unit_scale)[0].raw
            return {f"m_trajectory/{k}": x for k, x in named_leaves(learned)}

        arrays |= {f"e_trajectory/{k}": x for k, x in named_leaves(values(raw, last, first, scale))}
        arrays |= _or_skipped(ops, ("m_trajectory",), m_steps)
        if hasattr(last, "halvings"):  # backends must damp the same steps
            arrays["e_trajectory/halvings"] = last.halvings
    return {k: x if k.startswith(SKIPPED) else ops.to_numpy(x) for k, x in arrays.items()}


def step_by_step(ops: Ops) -> Ops:
    """Return the backend in eager mode, or unchanged if it has no such mode."""
    if "eager" in type(ops).capabilities.modes:
        return load_backend(ops.name, "eager", ops.dtype, ops.device)
    return ops


def _values(ops: Ops, model: Model, method: AnyMethod) -> Any:
    """Return a function (raw, state, batch, scale) → bound, KL, marginals, densities, q(u)."""

    def values(raw: Theta, state: Tree, batch: Batch, scale: Array) -> Any:
        theta = constrain(ops, raw)
        p = prior_at(ops, model, method, theta)
        f = factor_at(ops, model, method, theta, p, batch.X, batch.basis_points)
        data = data_term(model, theta, batch, scale)
        q = method.factorise(ops, f, state)
        mu, v = method.marginals(ops, f, q)
        mean, covariance = method.posterior(ops, f, q)
        return Values(
            method.bound(ops, f, data, state),
            method.kl(ops, f, q),
            mu,
            v,
            data.likelihood.log_predictive_density(ops, batch.y, mu, v),
            mean,
            covariance,
        )

    return values


def _gradients(ops: Ops, model: Model, method: AnyMethod) -> Any:
    """Return a function (raw, raw_moved, state, batch, scale) → M-step objective and its gradient.

    Both are at `raw_moved`. The reference differentiates every step of the bound by autodiff, so that
    hand-written adjoints are compared with it.
    """
    m_step = MStep(ops, model, method, LEARN)
    value_and_gradient = m_step.by_autodiff if ops.name == REFERENCE else m_step.value_and_gradient

    def gradients(raw: Theta, raw_moved: Theta, state: Tree, batch: Batch, scale: Array) -> Any:
        theta = constrain(ops, raw)
        p = prior_at(ops, model, method, theta)
        invariant = method.invariant(ops, p, model.conditional(theta), state)
        value, parts = value_and_gradient(raw_moved, invariant, batch, scale)
        return value, Theta(*parts)

    return gradients
