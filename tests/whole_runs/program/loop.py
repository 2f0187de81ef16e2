"""The EM loop (Adam et al. 2021, Sec. 4; Alg. 1): E-phase, trace point, M-phase, E-phase, …

An M-phase holds what the family says and moves θ by Adam, whose moments live on, or on all data by so
many iterations of L-BFGS, which starts anew; up a collapsed bound one run of L-BFGS goes through all.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from autograd import grad

from program.adam import Adam
from program.climbing import climbed
from program.draws import Batch, Data, Draws
from program.gaussians import Family
from program.parameters import Table, chosen, constrained, unconstrained
from program.schedules import Schedule
from program.scores import in_few_numbers, negative_betas, test_scores


@dataclass(frozen=True)
class Plan:
    """The settings of a run."""

    iterations: int
    e_steps: int
    e_rate: Schedule
    m_steps: int
    m_rate: float
    learn: tuple[str, ...]
    lbfgs: bool = False
    trace_every: int = 1


class Point(NamedTuple):
    """A trace point and what the run holds there."""

    numbers: Table
    theta: Table
    state: Table


class Loop:
    """One run."""

    def __init__(self, family: Family, data: Data, theta: Table, draws: Draws, plan: Plan) -> None:
        self.family, self.data, self.draws, self.plan = family, data, draws, plan
        self.raw = unconstrained(theta)
        self.state = family.start(self.theta, len(data.y))
        self.adam = Adam(chosen(self.raw, plan.learn))
        self.points: list[Point] = []
        self.iteration = 0

    @property
    def theta(self) -> Table:
        return constrained(self.raw)

    @property
    def scale(self) -> float:
        n = len(self.data.y)
        return n / (self.draws.size or n)

    def run(self) -> list[Point]:
        """All iterations."""
        plan = self.plan
        learns = bool(plan.learn) and plan.m_steps > 0
        self.e_phase_and_point()
        if learns and plan.lbfgs and self.family.collapsed:
            self.climb_through()
        while self.iteration < plan.iterations:
            if learns:
                self.climb() if plan.lbfgs else self.adam_phase()
            self.e_phase_and_point()
        return self.points

    def e_phase_and_point(self) -> None:
        self.iteration += 1
        plan, basis = self.plan, self.family.basis_size(self.theta)
        rate = plan.e_rate(self.iteration)
        for batch in self.draws.phase(plan.e_steps, basis):
            self.state = self.family.e_step(self.theta, self.state, batch, rate, self.scale)
        i, last = self.iteration, plan.iterations
        if i in (1, last) or i % plan.trace_every == 0:
            self.points.append(self.point())

    def adam_phase(self) -> None:
        """M-steps on minibatches, or on all rows where those are the batch or the family needs them."""
        plan, family, old = self.plan, self.family, self.state
        held = family.hold(self.theta, old)
        scale, basis = self.scale, family.basis_size(self.theta)
        if family.needs_all_data:
            every = np.arange(len(self.data.y))
            batches, scale = [self.draws.batch(every, basis)] * plan.m_steps, 1.0
        else:
            batches = self.draws.phase(plan.m_steps, basis)
        for batch in batches:
            self.ascend(held, batch, plan.m_rate, scale)
        self.state = family.retied(self.theta, held, batch.X, old)

    def ascend(self, held: Any, batch: Batch, rate: float, scale: float) -> None:
        """One step of Adam up the bound with `held` fixed (Adam et al. 2021, Eqs. 14–15)."""
        parts = chosen(self.raw, self.plan.learn)
        gradient = grad(lambda parts: self.objective(parts, held, batch, scale))(parts)
        self.raw = {**self.raw, **self.adam.step(parts, gradient, rate)}

    def objective(self, parts: Table, held: Any, batch: Batch, scale: float) -> Any:
        """The bound at raw learned parts, q following what is held."""
        theta = constrained({**self.raw, **parts})
        x = self.family.tie(theta, held, batch.X)
        return self.family.bound_at(theta, x, batch, scale)

    def climb(self) -> None:
        plan, family, old = self.plan, self.family, self.state
        held = family.hold(self.theta, old)
        batch = self.draws.phase(1, family.basis_size(self.theta))[0]
        start = chosen(self.raw, plan.learn)
        found = climbed(lambda x: self.objective(x, held, batch, 1.0), start, plan.m_steps)
        self.raw = {**self.raw, **found}
        self.state = family.retied(self.theta, held, batch.X, old)

    def climb_through(self) -> None:
        """A point every `m_steps` iterations; after an early stop, points at the last θ."""
        plan, taken = self.plan, [0]
        batch = self.draws.all_rows()

        def visit(parts: Table) -> None:
            taken[0] += 1
            if taken[0] % plan.m_steps == 0:
                self.raw = {**self.raw, **parts}
                self.e_phase_and_point()

        start = chosen(self.raw, plan.learn)
        whole = (plan.iterations - 1) * plan.m_steps
        held = batch.y
        last = climbed(lambda x: self.objective(x, held, batch, 1.0), start, whole, visit)
        while self.iteration < plan.iterations:
            self.raw = {**self.raw, **last}
            self.e_phase_and_point()

    def bound(self) -> float:
        """The bound on all data, with the noise of evaluation and every basis point."""
        theta = self.theta
        x = self.family.coordinates(theta, self.state)
        return float(self.family.bound_at(theta, x, self.draws.all_rows(), 1.0))

    def point(self) -> Point:
        """Bound, scores and hyperparameters of the current θ and q."""
        theta, family = self.theta, self.family
        x = family.coordinates(theta, self.state)
        numbers = {"iteration": self.iteration, "elbo": self.bound()}
        numbers |= test_scores(family, theta, x, self.data, self.draws.test_rows())
        numbers |= in_few_numbers(theta)
        if "halvings" in self.state:
            numbers["halvings"] = self.state["halvings"]
        if not family.likelihood.concave:
            numbers["negative_beta"] = negative_betas(family, theta, x, self.draws.all_rows())
        return Point(numbers, copy.deepcopy(theta), copy.deepcopy(self.state))
