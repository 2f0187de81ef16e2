"""Predicates on the largest rate a method survives, and on the band of rates that work for it.

Rates are tried on a grid and must work for every seed. A limit is therefore known as a bracket, in decades.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from typing import Literal, NamedTuple

import pandas as pd

from svgpbench.metrics import loss
from svgpbench.papers.grades import Judgement
from svgpbench.papers.predicates.predicate import Predicate, judge_cases
from svgpbench.stats.effects import Effect, Outcome
from svgpbench.stats.measures import MEASURES, MeasureName
from svgpbench.stats.rules import RULES, Rules

SEEDS = 3
"""Fewest seeds that establish a rate."""


class Bracket(NamedTuple):
    """A limit in decades between `low` and `high`; `words` has the rates that were observed."""

    low: float
    high: float
    words: str

    def against(self, rival: Bracket, subject: str, *, equal: bool, note: str = "") -> Effect:
        """Return the difference from `rival`, decided if the brackets do not overlap or `equal` is set."""
        outcome = Outcome.equal if equal else Outcome.undecided
        low, high = self.low - rival.high, self.high - rival.low
        if low > 0:
            outcome = Outcome.better
        elif high < 0:
            outcome = Outcome.worse
        words = f"{self.words} against {rival.words}"
        note = f"{words}; {note}" if note else words
        supports = None if outcome == Outcome.undecided else outcome == Outcome.better
        return Effect(subject, outcome, None, low, high, note, supports)


class Stands(Predicate):
    """A larger survived rate: the first method's largest is larger than the second's, over problems.

    A failure with one seed refutes a rate. A rate is survived if at least `SEEDS` seeds were tried and none
    failed. Rates above the grid are not considered. The frame has one row per walk: `data`, `method`,
    `rate`, `seed` and `lived`.
    """

    predicate: Literal["stands"]
    methods: tuple[str, str]

    @property
    def compared(self) -> tuple[str, ...]:
        return self.methods

    def judge(self, frame: pd.DataFrame, rules: Rules = RULES) -> Judgement:
        return judge_cases(
            self._on_problem(str(problem), walks)
            for problem, walks in frame.groupby("data", sort=False)
            if set(self.methods) <= set(walks["method"])
        )

    def _on_problem(self, problem: str, walks: pd.DataFrame) -> Effect:
        rates = sorted(walks["rate"].unique())
        first, second = (
            _largest(walks[walks["method"] == method], rates) for method in self.methods
        )
        exact = all(bracket.low == bracket.high for bracket in (first, second))
        note = "" if exact else f"fewer than {SEEDS} seeds at one of them"
        equal = exact and first.high == second.high
        return first.against(second, problem, equal=equal, note=note)


def _largest(walks: pd.DataFrame, rates: list[float]) -> Bracket:
    """Return the bracket of the largest survived rate.

    `low` is the largest rate that `SEEDS` seeds survived. `high` is the largest rate without a failure.
    """
    deadly, seeds = set(walks.loc[~walks["lived"], "rate"]), Counter(walks["rate"])
    unrefuted = [rate for rate in rates if rate not in deadly]
    survived = [rate for rate in unrefuted if seeds[rate] >= SEEDS]
    words = f"γ = {unrefuted[-1]:g}" if unrefuted else "no rate"
    return Bracket(_decades(survived), _decades(unrefuted), words)


def _decades(rates: list[float]) -> float:
    """Return log10 of the last, largest rate; −∞ if there is none."""
    return math.log10(rates[-1]) if rates else -math.inf


class Band(Predicate):
    """A wider band of rates that work for one method than for another, over data sets.

    A rate works if the measure is within its region of the method's best over all rates, in every split and
    seed. At least `SEEDS` seeds are needed. A band ends between a rate that works and a neighbour that does
    not. The frame has `e_rate` in addition to the usual columns.
    """

    predicate: Literal["band"]
    metric: MeasureName
    wider: tuple[str, ...]  # labels, one per rate
    narrower: tuple[str, ...]

    @property
    def compared(self) -> tuple[str, ...]:
        return (*self.wider, *self.narrower)

    def judge(self, frame: pd.DataFrame, rules: Rules = RULES) -> Judgement:
        plain = frame[frame["perturbation"] == 0]
        return judge_cases(
            self._on_data_set(str(data), cells, rules)
            for data, cells in plain.groupby("data", sort=False)
        )

    def _on_data_set(self, data: str, cells: pd.DataFrame, rules: Rules) -> Effect:
        if (seeds := cells["seed"].nunique()) < SEEDS:
            note = f"{seeds} seed{'s' * (seeds > 1)} where {SEEDS} decide"
            return Effect(data, Outcome.undecided, note=note)
        first, second = (
            _band(cells[cells["method"].isin(labels)], self.metric, rules)
            for labels in (self.wider, self.narrower)
        )
        return first.against(second, data, equal=first == second and first.low > 0)


def _band(cells: pd.DataFrame, name: str, rules: Rules) -> Bracket:
    """Return the bracket of the width of the widest run of neighbouring rates that work."""
    measure = MEASURES[name]
    values = cells[name].where(cells["status"] == "ok")
    cells = cells.assign(loss=[loss(value, measure.better) for value in values])
    losses = cells.pivot(
        index=["split_seed", "fold", "seed"], columns="e_rate", values="loss"
    )  # [units, rates]
    best = losses.min(axis=1)
    rows = float(cells["n_bound"].mean())
    region = best.map(lambda value: rules.threshold * measure.region_at(value, rows))
    works = losses.sub(best, axis=0).le(region, axis=0).all(axis=0)
    rates = [0.0, *(float(rate) for rate in losses.columns), math.inf]
    working = [index for index, rate_works in enumerate(works, 1) if rate_works]
    starts = [index for index in working if index - 1 not in working]
    ends = [index for index in working if index + 1 not in working]
    if not working:
        gaps = [math.log10(b / a) for a, b in pairwise(rates[1:-1])]
        return Bracket(0.0, max(gaps), "no rate")
    runs = zip(starts, ends, strict=True)
    first, last = max(runs, key=lambda run: rates[run[1]] / rates[run[0]])
    low = math.log10(rates[last] / rates[first])
    high = math.log10(rates[last + 1] / rates[first - 1]) if first > 1 else math.inf
    return Bracket(low, high, f"{rates[first]:g} to {rates[last]:g}")
