"""The arrays of one case on one backend, under names that say what they are."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from svgpbench.checks.cases import Problem
from svgpbench.config import LEARN
from svgpbench.methods import AnyMethod
from svgpbench.model import Model, Theta, constrain, unconstrain
from svgpbench.numerics.adam import adam_start
from svgpbench.ops import Array, Ops, Tree
from svgpbench.plugins import load_backend
from svgpbench.training.blocks import Batch, data_term, factor_at, learnable, learned, prior_at
from svgpbench.training.m_step import MStep
from svgpbench.training.steps import compile_steps
from svgpbench.tree import named_leaves, tree_map

Arrays = dict[str, npt.NDArray[Any]]
RATE, ADAM_RATE, STEPS = 0.6, 0.02, 50
REFERENCE = "numpy"


class Values(NamedTuple):
    """What a state says at one batch."""

    elbo: Array  # []
    kl: Array  # []
    mu: Array  # [P, b]
    v: Array  # [P, b]
    log_density: Array  # [b]
    q_mean: Array  # [P, M]
    q_cov: Array  # [P, M, M]


def evaluate(
    ops: Ops, model: Model, method: AnyMethod, problem: Problem, trajectories: str = "compiled"
) -> Arrays:
    """Values, gradients, one E-step and, unless `trajectories` is "none", two trajectories.

    The state is that of two E-steps on the first batches from q = p: general, and the same for every
    method that moves by natural gradients. Names are `group/array`.
    """
    learn = learnable(method, LEARN)
    # single steps are not compiled: that would triple the cost of a case
    along, ops = ops if trajectories == "compiled" else step_by_step(ops), step_by_step(ops)
    run = compile_steps(along, model, method, STEPS, STEPS, learn)
    steps = compile_steps(ops, model, method, 1, STEPS, learn)
    batches = problem.batches_of(method)
    n, b = len(problem.X), batches.shape[1]
    y = problem.targets(model.likelihood.support)
    rate = ops.asarray(np.float64(ADAM_RATE if method.first_order else RATE))
    one, scale = ops.asarray(np.float64(1.0)), ops.asarray(np.float64(n / b))

    def batch(rows: npt.NDArray[np.int64]) -> Batch:
        drawn = Batch(ops.asarray(problem.X[rows]), ops.asarray(y[rows]), ops.asarray(rows))
        return drawn._replace(**problem.draws(ops, model, method, rows))

    full = batch(np.arange(n))
    raw = tree_map(ops.asarray, unconstrain(problem.theta(model, method.basis)))
    moved = tree_map(ops.asarray, unconstrain(problem.theta(model, method.basis, moved=True)))
    prior = steps.prior(raw)
    start = method.initial_state(ops, prior, model.latents, n)

    def e_step(state: Tree, turn: int) -> Tree:
        drawn = batch(batches[turn])
        factor = steps.factor(raw, prior, drawn)
        return steps.e_phase(raw, factor, drawn, state, rate, scale)

    state = e_step(e_step(start, 0), 1)
    third = e_step(state, 2)
    values = _values(ops, model, method)
    gradients = _gradients(ops, model, method)
    first = batch(batches[0])
    objective, gradient = gradients(raw, moved, state, full, one)
    if "inducing" not in learn:
        gradient = gradient._replace(inducing=())
    out = {f"values/{k}": x for k, x in named_leaves(values(raw, state, first, scale))}
    out |= {f"e_step/{k}": x for k, x in named_leaves(values(raw, third, first, scale))}
    out |= {f"gradients/{k}": x for k, x in named_leaves(gradient)}
    out |= {"gradients/objective": objective}
    out |= {f"state/{k}": x for k, x in named_leaves(state)}
    if trajectories != "none":
        last = run.e_phase_batches(raw, prior, batch(batches), start, rate, scale)
        adam = adam_start(ops, learned(raw, learn))
        m_rate = ops.asarray(np.float64(ADAM_RATE))
        moved_to = run.m_phase(raw, prior, state, adam, full, m_rate, one)[0].raw
        out |= {f"e_trajectory/{k}": x for k, x in named_leaves(values(raw, last, first, scale))}
        out |= {f"m_trajectory/{k}": x for k, x in named_leaves(moved_to)}
        if hasattr(last, "halvings"):  # backends must damp the same steps
            out["e_trajectory/halvings"] = last.halvings
    return {k: ops.to_numpy(x) for k, x in out.items()}


def step_by_step(ops: Ops) -> Ops:
    """The same backend without compilation, where it has such a mode."""
    if "eager" in type(ops).capabilities.modes:
        return load_backend(ops.name, "eager", ops.dtype, ops.device)
    return ops


def _values(ops: Ops, model: Model, method: AnyMethod) -> Any:
    """A function (raw, state, batch, scale) → bound, KL, marginals, densities and q(u)."""

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
    """A function (raw, moved, state, batch, scale) → M-step objective at the moved θ and its gradient.

    The reference's is autodiff's, through every step of the bound, so that adjoints are held to it.
    """
    m_step = MStep(ops, model, method, LEARN)
    at_held = m_step.by_autodiff if ops.name == REFERENCE else m_step.value_and_gradient

    def gradients(raw: Theta, moved: Theta, state: Tree, batch: Batch, scale: Array) -> Any:
        theta = constrain(ops, raw)
        p = prior_at(ops, model, method, theta)
        held = method.hold(ops, p, model.conditional(theta), state)
        value, parts = at_held(moved, held, batch, scale)
        return value, Theta(*parts)

    return gradients
