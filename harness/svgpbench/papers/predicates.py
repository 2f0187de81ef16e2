"""The words that a claim is decided with: each from a frame of results to a verdict with its figures.

A predicate's fields are the keys of a part in a claims file; `judge` is a pure function of a frame.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Literal, TypeAlias

import pandas as pd
from pydantic import Field, NonNegativeFloat, PositiveFloat, model_validator

from svgpbench.papers.differences import (
    TooFewError,
    sampled,
    units_of_width,
    would_decide,
)
from svgpbench.papers.measures import MEASURES, MeasureName
from svgpbench.papers.of_averages import Average, Leads, Spread
from svgpbench.papers.of_computations import Differs, Exponent, Identity
from svgpbench.papers.of_designs import Drives, EveryRun, Suffices
from svgpbench.papers.of_rates import Band, Stands
from svgpbench.papers.of_times import AsLong, Gain, Ratio
from svgpbench.papers.of_traces import Sooner, Within
from svgpbench.papers.pairs import compare
from svgpbench.papers.predicate import Predicate, better_over_data_sets, over_data_sets
from svgpbench.papers.ranks import average_ranks
from svgpbench.papers.verdict import Effect, Finding, Outcome, Verdict, combined


class Ordering(Predicate):
    """Each method is better than the next one, or with `at_least` better or equal, over data sets.

    With `settings` in place of `methods`, over settings: each has its pair, and is a data set of the rule.
    """

    predicate: Literal["ordering"]
    metric: MeasureName
    methods: Annotated[tuple[str, ...], Field(min_length=2)] = ()  # the best first
    settings: dict[str, tuple[str, str]] = Field(default_factory=dict)
    at_least: bool = False

    @model_validator(mode="after")
    def _one_of_both(self) -> Ordering:
        if bool(self.methods) == bool(self.settings):
            raise ValueError("an ordering is of `methods` or of `settings`; give one of them")
        return self

    @property
    def compared(self) -> tuple[str, ...]:
        return self.methods or tuple(name for pair in self.settings.values() for name in pair)

    def judge(self, frame: pd.DataFrame) -> Finding:
        if self.settings:
            effects = tuple(self._over_settings(frame))
            return Finding(
                better_over_data_sets([effect.outcome for effect in effects], self.at_least),
                effects,
            )
        pairs = [compare(frame, self.metric, *pair) for pair in pairwise(self.methods)]
        verdict = combined(
            better_over_data_sets([effect.outcome for effect in pair], self.at_least)
            for pair in pairs
        )
        ranks = average_ranks(frame, self.metric, MEASURES[self.metric].better, self.methods)
        return Finding(verdict, tuple(effect for pair in pairs for effect in pair), ranks)

    def _over_settings(self, frame: pd.DataFrame) -> Iterator[Effect]:
        several = frame["data"].nunique() > 1
        for setting, pair in self.settings.items():
            for effect in compare(frame, self.metric, *pair):
                yield replace(effect, of=f"{setting}, {effect.of}" if several else setting)


class Equality(Predicate):
    """Two methods are within the measure's region of each other."""

    predicate: Literal["equality"]
    metric: MeasureName
    methods: tuple[str, str]

    @property
    def compared(self) -> tuple[str, ...]:
        return self.methods

    def judge(self, frame: pd.DataFrame) -> Finding:
        effects = compare(frame, self.metric, *self.methods)
        differ = [effect.outcome in (Outcome.better, Outcome.worse) for effect in effects]
        equal = [effect.outcome == Outcome.equal for effect in effects]
        return Finding(over_data_sets(equal, differ, differ), effects)


class Monotone(Predicate):
    """A measure of one method gets better as a setting rises, and worse at no step of it.

    Partly where it gets better at one step and worse at another; not reproduced where it never gets better.
    """

    predicate: Literal["monotone"]
    metric: MeasureName
    method: str
    setting: str  # a column

    @property
    def compared(self) -> tuple[str, ...]:
        return (self.method,)

    def judge(self, frame: pd.DataFrame) -> Finding:
        mine = frame[frame["method"] == self.method]
        values = sorted(mine[self.setting].unique())
        mine = mine.assign(method=mine[self.setting].map(str))
        effects = tuple(
            Effect(f"{effect.of}, {low} to {high}", *_numbers(effect))
            for low, high in pairwise(map(str, values))
            for effect in compare(mine[mine["method"].isin([low, high])], self.metric, high, low)
        )
        outcomes = {effect.outcome for effect in effects}
        if {Outcome.better, Outcome.worse} <= outcomes:
            return Finding(Verdict.partly, effects)
        if Outcome.undecided in outcomes:
            return Finding(Verdict.undecided, effects)
        rises = Outcome.better in outcomes
        return Finding(Verdict.reproduced if rises else Verdict.not_reproduced, effects)


def _numbers(effect: Effect) -> tuple[str, float | None, float | None, float | None, str]:
    return effect.outcome, effect.value, effect.low, effect.high, effect.note


class Number(Predicate):
    """A method's mean agrees with a printed figure, on one data set.

    Undecided where our interval is wider than `gap`, the difference that the authors rest on; reproduced
    where the figure is inside the interval widened by the printed spread and the measure's region.
    """

    predicate: Literal["number"]
    metric: MeasureName
    method: str
    printed: float
    spread: NonNegativeFloat = 0.0
    gap: PositiveFloat

    @property
    def compared(self) -> tuple[str, ...]:
        return (self.method,)

    def judge(self, frame: pd.DataFrame) -> Finding:
        cells = frame[(frame["method"] == self.method) & (frame["perturbation"] == 0)]
        data, measure = str(cells["data"].iloc[0]), MEASURES[self.metric]
        if failed := int(((cells["status"] != "ok") | cells[self.metric].isna()).sum()):
            effect = Effect(data, "", note=f"{failed} of {len(cells)} cells failed")
            return Finding(Verdict.undecided, (effect,))
        values = cells.set_index(["split_seed", "fold", "seed"])[self.metric]
        overlap = float((cells["n_test"] / cells["n_train"]).mean())
        try:
            sample = sampled(values, overlap, measure.rows)
        except TooFewError as error:
            effect = Effect(data, "", float(values.mean()), note=str(error))
            return Finding(Verdict.undecided, (effect,))
        low, high = sample.interval
        slack = self.spread + measure.region_at(self.printed, float(cells["n_train"].mean()))
        verdict, outcome = Verdict.not_reproduced, "not as printed"
        note = "" if sample.unit == "splits" else "on this split"
        if high - low > self.gap:
            verdict, outcome = Verdict.undecided, "too wide"
            note = would_decide(units_of_width(sample, self.gap), sample.unit)
        elif low - slack <= self.printed <= high + slack:
            verdict, outcome = Verdict.reproduced, "as printed"
        return Finding(verdict, (Effect(data, outcome, sample.mean, low, high, note),))


AnyPredicate: TypeAlias = Annotated[
    Ordering
    | Equality
    | Monotone
    | Ratio
    | AsLong
    | Gain
    | Stands
    | Band
    | Number
    | Within
    | Sooner
    | EveryRun
    | Suffices
    | Drives
    | Average
    | Leads
    | Spread
    | Identity
    | Differs
    | Exponent,
    Field(discriminator="predicate"),
]
