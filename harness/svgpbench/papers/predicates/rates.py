"""Predicates on the largest rate a method survives, and on the band of rates that work for it.

Rates are tried on a grid and must work for every seed. A limit is therefore known as a bracket, in decades.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from itertools import pairwise
from typing import Annotated, Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from pydantic import Field, PositiveFloat

from svgpbench.metrics import loss
from svgpbench.papers.grades import Judgement
from svgpbench.papers.predicates.predicate import Predicate, judge_cases, supports
from svgpbench.stats.designs import Design
from svgpbench.stats.differences import REPLICATE, superiority_outcome
from svgpbench.stats.effects import Effect, Outcome, in_regions
from svgpbench.stats.measures import MEASURES, MeasureName
from svgpbench.stats.pairs import column_of
from svgpbench.stats.rules import RULES, Rules

SEEDS = 3
"""Fewest seeds that establish a rate."""

Rates: TypeAlias = Annotated[tuple[str, ...], Field(min_length=2)]
"""Labels of a method at several rates, one per rate."""


class Bracket(NamedTuple):
    """A limit in decades from `low` to `high`; `words` has the rates that were observed.

    `open` tells that the limit lies below `high`, which is then the distance of two rates that do not work.
    """

    low: float
    high: float
    words: str
    open: bool = False

    def against(self, rival: Bracket, subject: str, *, equal: bool, note: str = "") -> Effect:
        """Return the difference from `rival`, decided if the brackets share no limit or `equal` is set."""
        outcome = Outcome.equal if equal else Outcome.undecided
        low, high = self.low - rival.high, self.high - rival.low
        if low > 0 or (low == 0 and rival.open):
            outcome = Outcome.better
        elif high < 0 or (high == 0 and self.open):
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


class OverRates(Predicate):
    """A part about how two methods depend on their rate, with a case for each data set.

    At least `SEEDS` seeds are needed. The frame has `e_rate` and `m_rate` in addition to the usual columns.
    """

    def lacks(self, design: Design) -> str:
        return "" if design.starts >= SEEDS else f"{SEEDS} starts"

    def judge(self, frame: pd.DataFrame, rules: Rules = RULES) -> Judgement:
        plain = frame[frame["perturbation"] == 0]
        return judge_cases(
            self._with_enough_seeds(str(data), cells, rules)
            for data, cells in plain.groupby("data", sort=False)
        )

    def _with_enough_seeds(self, data: str, cells: pd.DataFrame, rules: Rules) -> Effect:
        if (seeds := cells["seed"].nunique()) < SEEDS:
            note = f"{seeds} seed{'s' * (seeds > 1)} where {SEEDS} decide"
            return Effect(data, Outcome.undecided, note=note)
        return self._on_data_set(data, cells, rules)

    @abstractmethod
    def _on_data_set(self, data: str, cells: pd.DataFrame, rules: Rules) -> Effect:
        """Compare the methods on one data set."""


class Tolerates(OverRates):
    """A larger rate that works: the first method's largest is larger than the second's, over data sets.

    A run works if it ends, and its bound is at most `share` of the way from its first bound to the best of
    the method's runs at any rate, with the same seed and split, below that best. The brackets are those of
    `Stands`.
    """

    predicate: Literal["tolerates"]
    metric: Literal["elbo"]
    rate: Literal["e_rate", "m_rate"]  # column of the frame
    first: tuple[str, ...]  # labels, one per rate
    second: tuple[str, ...]
    share: PositiveFloat = 0.1

    @property
    def compared(self) -> tuple[str, ...]:
        return (*self.first, *self.second)

    def _on_data_set(self, data: str, cells: pd.DataFrame, rules: Rules) -> Effect:
        walks = [self._walks(cells, labels, rules) for labels in (self.first, self.second)]
        rates = sorted({rate for x in walks for rate in x["rate"].unique()})
        first, second = (_largest(x, rates) for x in walks)
        exact = all(bracket.low == bracket.high for bracket in (first, second))
        return first.against(second, data, equal=exact and first.high == second.high)

    def _walks(self, cells: pd.DataFrame, labels: tuple[str, ...], rules: Rules) -> pd.DataFrame:
        """Return the rate and seed of each run, and whether it works."""
        own = cells[cells["method"].isin(labels)]
        bound = own[column_of(own, self.metric, "end")].where(own["status"] == "ok")
        start = own["bound_trace"].map(lambda trace: trace.start)
        best = bound.groupby([own[key] for key in REPLICATE]).transform("max")
        # a failed run has NaN for its bound, and no comparison with NaN is true
        lived = bound >= best - rules.threshold * self.share * (best - start)
        return pd.DataFrame({"rate": own[self.rate], "seed": own["seed"], "lived": lived})


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


class Band(OverRates):
    """A wider band of rates that work for one method than for another, over data sets.

    A rate works if the measure is within its region of the method's best over all rates, in every split and
    seed. A band ends between a rate that works and a neighbour that does not.
    """

    predicate: Literal["band"]
    metric: MeasureName
    wider: Rates
    narrower: Rates

    @property
    def compared(self) -> tuple[str, ...]:
        return (*self.wider, *self.narrower)

    def _on_data_set(self, data: str, cells: pd.DataFrame, rules: Rules) -> Effect:
        first, second = (
            _band(cells[cells["method"].isin(labels)], self.metric, rules)
            for labels in (self.wider, self.narrower)
        )
        return first.against(second, data, equal=first == second and first.low > 0)


class Sensitive(OverRates):
    """A larger sensitivity to the rate: over the same rates a measure ranges more widely, in every run.

    The range of a run is its worst value less its best over all rates, infinite if a rate failed. A run in
    which both ranges are infinite leaves the data set undecided.
    """

    predicate: Literal["sensitive"]
    metric: MeasureName
    more: Rates
    less: Rates

    @property
    def compared(self) -> tuple[str, ...]:
        return (*self.more, *self.less)

    def _on_data_set(self, data: str, cells: pd.DataFrame, rules: Rules) -> Effect:
        more, less = (self._ranges(cells, labels) for labels in (self.more, self.less))
        differences = more - less
        measure = MEASURES[self.metric]
        rows = float(cells["n_bound"].mean())
        # of the finite ranges: an infinite mean would make every region infinite or NaN
        reference = float(less[np.isfinite(less)].mean()) if np.isfinite(less).any() else 0.0
        region = rules.threshold * measure.region_at(reference, rows)
        low, high = float(differences.min()), float(differences.max())
        outcome = superiority_outcome(low, high, region)
        if differences.isna().any():  # which the least and the largest leave out
            outcome = Outcome.undecided
        held = supports(outcome, {Outcome.better})
        middle = float(differences.median())
        note, common = "median, least, most of the runs", in_regions(middle, low, high, region)
        return Effect(data, outcome, middle, low, high, note, held, common)

    def _ranges(self, cells: pd.DataFrame, labels: tuple[str, ...]) -> pd.Series[float]:
        """Return the range of the measure over the rates, for each run; infinite if a rate failed."""
        own = cells[cells["method"].isin(labels)]
        values = own[column_of(own, self.metric, "end")].where(own["status"] == "ok")
        losses = loss(values, MEASURES[self.metric].better)
        groups = losses.groupby([own[key] for key in REPLICATE])
        ranges = groups.max() - groups.min()
        return ranges.where(groups.count() == groups.size(), math.inf)


def _band(cells: pd.DataFrame, name: str, rules: Rules) -> Bracket:
    """Return the bracket of the width of the widest run of neighbouring rates that work."""
    measure = MEASURES[name]
    values = cells[column_of(cells, name, "end")].where(cells["status"] == "ok")
    cells = cells.assign(loss=[loss(value, measure.better) for value in values])
    losses = cells.pivot(index=REPLICATE, columns="e_rate", values="loss")  # [units, rates]
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
        return Bracket(0.0, max(gaps), "no rate", open=True)
    runs = zip(starts, ends, strict=True)
    first, last = max(runs, key=lambda run: rates[run[1]] / rates[run[0]])
    low = math.log10(rates[last] / rates[first])
    # beyond either end of the grid a rate may work; the 0 below it cannot be divided by
    high = math.log10(rates[last + 1] / rates[first - 1]) if first > 1 else math.inf
    return Bracket(low, high, f"{rates[first]:g} to {rates[last]:g}", open=True)
