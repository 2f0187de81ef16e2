"""Predicates of the rates that a method stands, and of the band of rates that serve it.

Rates are tried on a grid, and count with every seed: what is known of a limit is a bracket, in decades.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from typing import Literal, NamedTuple

import pandas as pd

from svgpbench.metrics import loss
from svgpbench.papers.grades import Judgement, over_cases
from svgpbench.papers.predicates.predicate import Predicate
from svgpbench.stats.effects import Effect, Outcome
from svgpbench.stats.measures import MEASURES, MeasureName
from svgpbench.stats.rules import RULES, Rules

SEEDS = 3
"""The fewest seeds of which all count."""


class Bracket(NamedTuple):
    """What lies between `low` and `high`, in words where it was seen."""

    low: float
    high: float
    words: str

    def against(self, other: Bracket, of: str, *, equal: bool, note: str = "") -> Effect:
        """The difference, which is decided where the brackets are apart, or are said to be equal."""
        outcome = Outcome.equal if equal else Outcome.undecided
        low, high = self.low - other.high, self.high - other.low
        if low > 0:
            outcome = Outcome.better
        elif high < 0:
            outcome = Outcome.worse
        words = f"{self.words} against {other.words}"
        held = None if outcome == Outcome.undecided else outcome == Outcome.better
        return Effect(of, outcome, None, low, high, f"{words}; {note}" if note else words, held)


def _judged(effects: tuple[Effect, ...]) -> Judgement:
    worst = [effect.outcome == Outcome.worse for effect in effects]
    return Judgement(over_cases(effects, worst), effects)


class Stands(Predicate):
    """The largest rate that a method lives with is larger than another's, over problems.

    A death with one seed refutes a rate; a rate is lived with from `SEEDS` seeds on. The largest rate tried
    stands for all above it. The frame has a row a walk: `data`, `method`, `rate`, `seed` and `lived`.
    """

    predicate: Literal["stands"]
    methods: tuple[str, str]

    @property
    def compared(self) -> tuple[str, ...]:
        return self.methods

    def judge(self, frame: pd.DataFrame, rules: Rules = RULES) -> Judgement:
        both = [
            (str(problem), walks)
            for problem, walks in frame.groupby("data", sort=False)
            if set(self.methods) <= set(walks["method"])
        ]
        effects = tuple(self._on(*each) for each in both)
        return _judged(effects)

    def _on(self, problem: str, walks: pd.DataFrame) -> Effect:
        rates = sorted(walks["rate"].unique())
        first, second = (
            _largest(walks[walks["method"] == method], rates) for method in self.methods
        )
        known = all(bracket.low == bracket.high for bracket in (first, second))
        note = "" if known else f"fewer than {SEEDS} seeds at one of them"
        equal = known and first.high == second.high
        return first.against(second, problem, equal=equal, note=note)


def _largest(walks: pd.DataFrame, rates: list[float]) -> Bracket:
    """The largest rate: below it one that enough seeds lived with, above it none that killed nobody."""
    deadly, seeds = set(walks.loc[~walks["lived"], "rate"]), Counter(walks["rate"])
    unrefuted = [rate for rate in rates if rate not in deadly]
    known = [rate for rate in unrefuted if seeds[rate] >= SEEDS]
    words = f"γ = {unrefuted[-1]:g}" if unrefuted else "no rate"
    return Bracket(_decades(known), _decades(unrefuted), words)


def _decades(rates: list[float]) -> float:
    """Of the largest."""
    return math.log10(rates[-1]) if rates else -math.inf


class Band(Predicate):
    """The band of rates that serve a method is wider than another's, over data sets.

    A rate serves where the measure is within its region of the best that the method reaches at any rate, on
    every split and with each of `SEEDS` seeds and more; a band ends between a rate that serves and its
    neighbour that does not. The frame has `e_rate` beside what other predicates read.
    """

    predicate: Literal["band"]
    metric: MeasureName
    wider: tuple[str, ...]  # labels, one a rate
    narrower: tuple[str, ...]

    @property
    def compared(self) -> tuple[str, ...]:
        return (*self.wider, *self.narrower)

    def judge(self, frame: pd.DataFrame, rules: Rules = RULES) -> Judgement:
        plain = frame[frame["perturbation"] == 0]
        effects = tuple(
            self._on(str(data), cells, rules) for data, cells in plain.groupby("data", sort=False)
        )
        return _judged(effects)

    def _on(self, data: str, cells: pd.DataFrame, rules: Rules) -> Effect:
        if (seeds := cells["seed"].nunique()) < SEEDS:
            note = f"{seeds} seed{'s' * (seeds > 1)} where {SEEDS} decide"
            return Effect(data, Outcome.undecided, note=note)
        first, second = (
            _band(cells[cells["method"].isin(labels)], self.metric, rules)
            for labels in (self.wider, self.narrower)
        )
        return first.against(second, data, equal=first == second and first.low > 0)


def _band(cells: pd.DataFrame, name: str, rules: Rules) -> Bracket:
    """The width of the widest run of rates that serve."""
    measure = MEASURES[name]
    values = cells[name].where(cells["status"] == "ok")
    cells = cells.assign(loss=[loss(value, measure.better) for value in values])
    losses = cells.pivot(
        index=["split_seed", "fold", "seed"], columns="e_rate", values="loss"
    )  # [units, rates]
    best = losses.min(axis=1)
    rows = float(cells["n_bound"].mean())
    region = best.map(lambda value: rules.threshold * measure.region_at(value, rows))
    serves = losses.sub(best, axis=0).le(region, axis=0).all(axis=0)
    rates = [0.0, *(float(rate) for rate in losses.columns), math.inf]
    runs = _runs([at + 1 for at, one in enumerate(serves) if one])
    if not runs:
        gaps = [math.log10(b / a) for a, b in pairwise(rates[1:-1])]
        return Bracket(0.0, max(gaps), "no rate")
    first, last = max(runs, key=lambda run: rates[run[1]] / rates[run[0]])
    low = math.log10(rates[last] / rates[first])
    high = math.log10(rates[last + 1] / rates[first - 1]) if first > 1 else math.inf
    return Bracket(low, high, f"{rates[first]:g} to {rates[last]:g}")


def _runs(places: list[int]) -> list[tuple[int, int]]:
    """First and last of each run of neighbours."""
    starts = [at for at in places if at - 1 not in places]
    ends = [at for at in places if at + 1 not in places]
    return list(zip(starts, ends, strict=True))
