"""Online learning on a growing basis: Cheng and Boots 2017, Algorithm 1.

Each iteration draws a batch, adds up to N_Δ of its points to each basis until that is full, moves q once
and then θ and the basis once by Adam, both on that batch at γ₀/(1 + decay √t), t = 0, 1, …
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from program.draws import Data, Draws
from program.gaussians import Family
from program.loop import Loop, Plan, Point
from program.parameters import Floats, Table, chosen
from program.schedules import constant, falling

CLOSEST = 1e-3  # in lengthscales: a point nearer to another than this is a repeated one


@dataclass(frozen=True)
class Growing:
    """Sizes of the bases and settings of the run."""

    increment: int
    limits: dict[str, int]  # basis → its final size
    iterations: int
    rates: tuple[float, ...]
    trial: int
    decay: float
    trace_every: int
    width: float | None = None  # of inducing functions, in lengthscales


def new_points(X: Floats, known: Floats, lengthscales: Floats, count: int) -> list[int]:
    """Return the first rows of X that lie apart from `known` and from each other, at most `count`."""
    taken: list[int] = []
    for i, x in enumerate(X):
        others = [*known, *(X[j] for j in taken)]
        gaps = [np.linalg.norm((x - other) / lengthscales) for other in others]
        if len(taken) < count and all(gap > CLOSEST for gap in gaps):
            taken.append(i)
    return taken


class Online(Loop):
    """One run at a γ₀."""

    def __init__(
        self,
        family: Family,
        data: Data,
        theta: Table,
        draws: Draws,
        plan: Growing,
        learn: tuple[str, ...],
        gamma0: float,
        first: Any,
    ) -> None:
        self.growing, self.gamma0 = plan, gamma0
        begun = {name: np.empty((0, data.X.shape[1])) for name in plan.limits}
        lengthscales = np.asarray(theta["lengthscales"])
        for name in plan.limits:
            begun |= self.larger_basis(begun, name, data.X[first], lengthscales)
        settings = Plan(plan.iterations, 1, constant(1.0), 1, 1.0, learn)
        super().__init__(family, data, {**theta, **begun}, draws, settings)

    def larger_basis(self, theta: Table, name: str, X: Floats, lengthscales: Floats) -> Table:
        """Return the arrays of a basis with the points that it lacks; none if they are too few."""
        old, plan = theta[name], self.growing
        count = min(plan.increment, plan.limits[name] - len(old))
        rows = new_points(X, old, lengthscales, count)
        if count == 0 or len(rows) < count:
            return {}
        arrays = {name: np.concatenate([old, X[rows]])}
        if plan.width is not None:
            widths = np.broadcast_to(plan.width * lengthscales, X[rows].shape)
            before = theta.get(f"{name}_widths", np.empty((0, X.shape[1])))
            arrays[f"{name}_widths"] = np.concatenate([before, widths])
        return arrays

    def grow(self, X: Floats) -> None:
        theta, more = self.theta, {}
        for name in self.growing.limits:
            more |= self.larger_basis(theta, name, X, np.asarray(theta["lengthscales"]))
        if more:
            self.raw = {**self.raw, **more}
            self.state = self.family.grown(self.theta, self.state)  # type: ignore[attr-defined]
            self.adam.grow(chosen(self.raw, self.plan.learn))

    def until(self, last: int) -> None:
        """Go on to iteration `last`, with trace points."""
        plan, family = self.growing, self.family
        schedule = falling(self.gamma0, plan.decay)
        while self.iteration < last:
            self.iteration += 1
            rate, numbers = schedule(self.iteration), self.draws.numbers()
            if self.iteration > 1:
                self.grow(self.data.X[numbers])
            batch = self.draws.batch(numbers, self.basis_size)
            self.state = family.e_step(self.theta, self.state, batch, rate, self.scale)
            if self.plan.learn:
                held = family.hold(self.theta, self.state["x"])
                self.ascend(held, batch, rate, self.scale)
                self.state = {**self.state, "x": family.tie(self.theta, held)}
            i = self.iteration
            if i in (1, plan.iterations) or i % plan.trace_every == 0:
                self.points.append(self.point())

    def point(self) -> Point:
        numbers, theta = super().point()
        numbers.pop("halvings", None)
        numbers |= {"gamma0": self.gamma0, "inducing": len(theta["Z"])}
        numbers |= {"gamma": len(theta["gamma"])} if "gamma" in theta else {}
        test, scale = self.draws.test_rows(), len(self.data.y) / len(self.data.y_test)
        bound = self.family.bound_at(theta, self.state["x"], test, scale)
        return Point({**numbers, "heldout_elbo": float(bound)}, theta)


def best_of_trials(runs: dict[float, Online], plan: Growing) -> Online:
    """Return the run, from its beginning, of the γ₀ whose bound is the highest after the trial.

    The runs have equal draws, so that each goes on as if it had been alone.
    """
    bounds = {}
    for gamma0, run in runs.items():
        run.until(min(plan.trial, plan.iterations))
        bounds[gamma0] = run.bound()
    chosen_run = runs[max(bounds, key=lambda gamma0: bounds[gamma0])]
    chosen_run.until(plan.iterations)
    return chosen_run


def first_rows(data: Data, size: int | None, seed: int) -> Any:
    """Return the rows that the first iteration will draw, from which the bases begin."""
    return Draws(data, size, seed, (0, 0), 0).numbers()
