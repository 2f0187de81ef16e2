"""The EM loop (Adam et al. 2021, Sec. 4; Alg. 1): E-phase, trace point, M-phase, E-phase, …

An M-phase holds what the family says and moves θ by Adam, whose moments live on, or on all data by so
many iterations of L-BFGS, which starts anew; up a collapsed bound one run of L-BFGS goes through all.
"""

from __future__ import annotations

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
    """A trace point and θ there."""

    numbers: Table
    theta: Table


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
    def basis_size(self) -> int:
        """The number of points of the mean's own basis, among which a batch samples."""
        return len(self.raw.get("gamma", ()))

    @property
    def scale(self) -> float:
        n = len(self.data.y)
        return n / (self.draws.size or n)

    def run(self) -> list[Point]:
        """Go through all iterations."""
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
        plan, rate = self.plan, self.plan.e_rate(self.iteration)
        for batch in self.draws.phase(plan.e_steps, self.basis_size):
            self.state = self.family.e_step(self.theta, self.state, batch, rate, self.scale)
        i, last = self.iteration, plan.iterations
        if i in (1, last) or i % plan.trace_every == 0:
            self.points.append(self.point())

    def adam_phase(self) -> None:
        """Take M-steps on minibatches, or on all rows if those are the batch or the family needs them."""
        plan, family, old = self.plan, self.family, self.state
        held, scale = family.hold(self.theta, old["x"]), self.scale
        if family.needs_all_data:
            every = np.arange(len(self.data.y))
            batches, scale = [self.draws.batch(every, self.basis_size)] * plan.m_steps, 1.0
        else:
            batches = self.draws.phase(plan.m_steps, self.basis_size)
        for batch in batches:
            self.ascend(held, batch, plan.m_rate, scale)
        self.state = {**old, "x": family.tie(self.theta, held)}

    def ascend(self, held: Any, batch: Batch, rate: float, scale: float) -> None:
        """Take one step of Adam up the bound with `held` fixed (Adam et al. 2021, Eqs. 14–15)."""
        parts = chosen(self.raw, self.plan.learn)
        gradient = grad(lambda parts: self.objective(parts, held, batch, scale))(parts)
        self.raw = {**self.raw, **self.adam.step(parts, gradient, rate)}

    def objective(self, parts: Table, held: Any, batch: Batch, scale: float) -> Any:
        """Return the bound at raw learned parts, where q follows what is held."""
        theta = constrained({**self.raw, **parts})
        return self.family.bound_at(theta, self.family.tie(theta, held), batch, scale)

    def climb(self) -> None:
        plan, family, old = self.plan, self.family, self.state
        held = family.hold(self.theta, old["x"])
        batch = self.draws.phase(1, self.basis_size)[0]
        start = chosen(self.raw, plan.learn)
        found = climbed(lambda x: self.objective(x, held, batch, 1.0), start, plan.m_steps)
        self.raw = {**self.raw, **found}
        self.state = {**old, "x": family.tie(self.theta, held)}

    def climb_through(self) -> None:
        """Add a point every `m_steps` iterations; after an early stop, points at the last θ."""
        plan, taken = self.plan, [0]
        batch = self.draws.all_rows()

        def visit(parts: Table) -> None:
            taken[0] += 1
            if taken[0] % plan.m_steps == 0:
                self.raw = {**self.raw, **parts}
                self.e_phase_and_point()

        start = chosen(self.raw, plan.learn)
        whole = (plan.iterations - 1) * plan.m_steps
        last = climbed(lambda x: self.objective(x, batch.y, batch, 1.0), start, whole, visit)
        while self.iteration < plan.iterations:
            self.raw = {**self.raw, **last}
            self.e_phase_and_point()

    def bound(self) -> float:
        """Return the bound on all data, with the noise of evaluation and every basis point."""
        x, rows = self.state["x"], self.draws.all_rows()
        return float(self.family.bound_at(self.theta, x, rows, 1.0))

    def point(self) -> Point:
        """Return bound, scores and hyperparameters of the current θ and q."""
        theta, family, x = self.theta, self.family, self.state["x"]
        numbers = {"iteration": self.iteration, "elbo": self.bound()}
        numbers |= test_scores(family, theta, x, self.data, self.draws.test_rows())
        numbers |= in_few_numbers(theta)
        if "halvings" in self.state:
            numbers["halvings"] = self.state["halvings"]
        if not family.likelihood.concave:
            numbers["negative_beta"] = negative_betas(family, theta, x, self.draws.all_rows())
        return Point(numbers, theta)
