"""Predicates on what is read off a trace: numbers of every cell, and who settles sooner."""

from __future__ import annotations

import math
from typing import Literal

import pandas as pd
from pydantic import PositiveFloat

from svgpbench.papers.measures import ColumnName
from svgpbench.papers.predicate import Predicate, over_data_sets
from svgpbench.papers.verdict import Effect, Finding, Outcome, Verdict

INSIDE, SOME, OUTSIDE = "inside", "some inside", "outside"


class Within(Predicate):
    """A number of every cell of a method lies between two ends.

    Partly where it does in some cells; undecided where a cell failed.
    """

    predicate: Literal["within"]
    metric: ColumnName
    method: str
    at_least: float = -math.inf
    at_most: float = math.inf

    @property
    def compared(self) -> tuple[str, ...]:
        return (self.method,)

    def judge(self, frame: pd.DataFrame) -> Finding:
        cells = frame[(frame["method"] == self.method) & (frame["perturbation"] == 0)]
        effects = tuple(
            self._on_one(str(data), of) for data, of in cells.groupby("data", sort=False)
        )
        outcomes = {effect.outcome for effect in effects}
        if Outcome.undecided in outcomes:
            return Finding(Verdict.undecided, effects)
        if len(outcomes) > 1 or outcomes == {SOME}:
            return Finding(Verdict.partly, effects)
        return Finding(
            Verdict.reproduced if outcomes == {INSIDE} else Verdict.not_reproduced, effects
        )

    def _on_one(self, data: str, cells: pd.DataFrame) -> Effect:
        values = cells[self.metric]
        if failed := int(values.isna().sum()):
            note = f"{failed} of {len(cells)} cells have no number"
            return Effect(data, Outcome.undecided, note=note)
        inside = values.between(self.at_least, self.at_most)
        outcome = INSIDE if inside.all() else SOME if inside.any() else OUTSIDE
        note = f"{int(inside.sum())} of {len(cells)} cells; least, median, most"
        return Effect(data, outcome, values.median(), values.min(), values.max(), note)


class Sooner(Predicate):
    """The first method's bound settles sooner, by a ratio of T, in every cell, over data sets.

    A run that does not settle within its budget is slower than any that does, and two of them tie. With
    `faster = false`, the two settle within that ratio of each other.
    """

    predicate: Literal["sooner"]
    methods: tuple[str, str]
    ratio: PositiveFloat = 1.1
    faster: bool = True

    @property
    def compared(self) -> tuple[str, ...]:
        return self.methods

    def judge(self, frame: pd.DataFrame) -> Finding:
        plain = frame[frame["perturbation"] == 0]
        effects = tuple(
            self._on_one(str(data), of) for data, of in plain.groupby("data", sort=False)
        )
        wanted = Outcome.better if self.faster else Outcome.equal
        outcomes = [effect.outcome for effect in effects]
        verdict = over_data_sets(
            [outcome == wanted for outcome in outcomes],
            [outcome not in (wanted, Outcome.undecided) for outcome in outcomes],
            [self.faster and outcome == Outcome.worse for outcome in outcomes],
        )
        return Finding(verdict, effects)

    def _on_one(self, data: str, cells: pd.DataFrame) -> Effect:
        wide = cells.pivot(
            index=["split_seed", "fold", "seed"], columns="method", values="settled_at"
        )
        first, second = (wide[method] for method in self.methods)
        if failed := int(wide.isna().any(axis=1).sum()):
            note = f"{failed} of {len(wide)} pairs have a cell that failed"
            return Effect(data, Outcome.undecided, note=note)
        ratios = (second / first).where(first != second, 1.0)  # ∞/∞: a tie
        low, high = float(ratios.min()), float(ratios.max())
        outcome = Outcome.undecided
        if low > self.ratio:
            outcome = Outcome.better
        elif high < 1 / self.ratio:
            outcome = Outcome.worse
        elif low >= 1 / self.ratio and high <= self.ratio:
            outcome = Outcome.equal
        return Effect(data, outcome, float(ratios.median()), low, high, "least, median, most")
