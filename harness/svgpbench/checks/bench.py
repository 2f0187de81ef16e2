"""A bench: a model and a method on one backend, with the operations that identities use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from svgpbench.checks.cases import VARIANTS, SmallProblem, build_model, small_problem
from svgpbench.checks.evaluate import ADAM_RATE, RATE
from svgpbench.checks.matrix import difference
from svgpbench.config import LEARN
from svgpbench.kernels import Model, Theta, constrain
from svgpbench.methods import AnyMethod, build_method
from svgpbench.ops import Array, Ops, Tree
from svgpbench.training.blocks import Batch
from svgpbench.training.m_step import MStep
from svgpbench.training.session import start_session
from svgpbench.tree import leaves, tree_map

Floats = npt.NDArray[np.float64]
Names = tuple[str, ...]


class Bench:
    """A model and a method at a fixed θ on one backend, with the operations of identities."""

    def __init__(self, ops: Ops, model: Model, method: AnyMethod, problem: SmallProblem) -> None:
        self.ops, self.model, self.method, self.problem = ops, model, method, problem
        self.y = problem.targets(model.likelihood.support)
        self.n = len(problem.X)
        self.session = start_session(ops, model, method, problem.theta(model, method.basis), self.n)
        self.steps, self.start = self.session.steps, self.session.q
        self.m_step = MStep(ops, model, method, LEARN)
        self.one = self.number(1.0)

    @property
    def rate(self) -> float:
        """Rate at which an E-step of the method is moderate."""
        return ADAM_RATE if self.method.first_order else RATE

    @property
    def raw(self) -> Theta:
        """The unconstrained θ."""
        return self.session.raw

    @property
    def prior(self) -> Any:
        """The method's blocks at `raw`."""
        return self.session.prior

    def move(self, raw: Theta) -> None:
        """Change θ; states stay as they are."""
        self.session = replace(self.session, raw=raw, prior=self.steps.prior(raw))

    def number(self, x: float) -> Array:
        """Return a scalar on the device."""
        return self.session.number(x)

    def batch(self, rows: npt.NDArray[np.int64]) -> Batch:
        """Return rows of the problem as a batch on the device."""
        batch = self.session.batch(self.problem.X[rows], self.y[rows], rows)
        return batch._replace(**self.problem.random_inputs(self.ops, self.model, self.method, rows))

    @property
    def full(self) -> Batch:
        """Batch of all rows."""
        return self.batch(np.arange(self.n))

    def e_step(self, state: Tree, batch: Batch, rate: float) -> Tree:
        """Return the state after one E-step at the fixed θ."""
        return replace(self.session, q=state).e_step(batch, rate).q

    def minibatch_run(self, steps: int) -> Tree:
        """Return the state after E-steps on the first `steps` batches from the initial state."""
        state = self.start
        for rows in self.problem.batches[:steps]:
            state = self.e_step(state, self.batch(rows), RATE)
        return state

    def posterior(self, state: Tree) -> list[Floats]:
        """Return mean and covariance of q(u), and the full-data bound."""
        ops = self.ops
        mean, covariance = self.method.posterior(
            ops, self.prior, self.method.factorise(ops, self.prior, state)
        )
        return [ops.to_numpy(x) for x in (mean, covariance, self.bound(state, self.full))]

    def bound(self, state: Tree, batch: Batch) -> Array:
        """Return the bound, or its minibatch estimate."""
        return replace(self.session, q=state).bound(batch)

    def kl(self, state: Tree) -> float:
        """Return KL[q(u) ‖ p(u)]."""
        return float(self.ops.to_numpy(replace(self.session, q=state).kl(self.full)))

    def marginals(self, state: Tree) -> list[Floats]:
        """Return mean and variance of q(f) at all rows."""
        session = replace(self.session, q=state)
        return [self.ops.to_numpy(x) for x in session.marginals(self.full.X)]

    def objective(self, state: Tree, raw: Theta) -> tuple[float, list[Floats]]:
        """Return the M-step objective and its gradient at `raw`, with q held by the method."""
        ops = self.ops
        likelihood = self.model.conditional(constrain(ops, self.raw))
        invariant = self.method.invariant(ops, self.prior, likelihood, state)

        value, gradient = self.m_step.value_and_gradient(raw, invariant, self.full, self.one)
        return float(ops.to_numpy(value)), [ops.to_numpy(g) for g in leaves(gradient)]


def bench(ops: Ops, method: str, likelihood: str, *, jitter: float = 1e-6) -> Bench:
    """Return the bench of a method variant with a Matérn-5/2 kernel on the small problem."""
    model = build_model(likelihood, "matern52", jitter=jitter)
    name, options = VARIANTS[method]
    return Bench(ops, model, build_method(name, options), small_problem())


def scaled_theta(theta: Theta, kernel: float, noise: float = 1.0, shift: float = 0.0) -> Theta:
    """Return θ with kernel and likelihood parameters scaled by `kernel` and `noise`, and Z shifted."""
    return Theta(
        tree_map(lambda x: x * kernel, theta.kernel),
        tree_map(lambda x: x * noise, theta.likelihood),
        theta.inducing + shift,
    )


def worst_of(a: list[Floats], b: list[Floats], *, unit: float = 0.0) -> float:
    """Return the largest relative difference between two lists of arrays."""
    return max(difference(x, y, unit=unit) for x, y in zip(a, b, strict=True))


def posterior_of(ops: Ops, method: str, likelihood: str) -> list[Floats]:
    """Return `Bench.posterior` of a variant after the problem's fifty minibatches."""
    b = bench(ops, method, likelihood)
    return b.posterior(b.minibatch_run(50))


def bound_kl_and_marginals(b: Bench, state: Tree) -> list[Floats]:
    """Return the bound, the KL and the marginals at all rows."""
    bound = b.ops.to_numpy(b.bound(state, b.full))
    return [bound, np.asarray(b.kl(state)), *b.marginals(state)]
