"""Union of all predicates, with those that compare the metrics of methods.

A predicate's fields are the keys of a part in a claims file. `judge` is a pure function of a frame of results
and the rules.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Literal, TypeAlias

import pandas as pd
from pydantic import Field, NonNegativeFloat, PositiveFloat, model_validator

from svgpbench.papers.grades import Grade, Judgement, combined, combined_cases
from svgpbench.papers.predicates.averages import Average, Leads, Spread
from svgpbench.papers.predicates.computations import Differs, Exponent, Identity
from svgpbench.papers.predicates.designs import Drives, EveryRun, MoreOften, Suffices
from svgpbench.papers.predicates.predicate import AtTheEnd, Predicate, judge_cases, supports
from svgpbench.papers.predicates.rates import Band, Sensitive, Stands, Tolerates
from svgpbench.papers.predicates.times import AsLong, Gain, Ratio, Reaches
from svgpbench.papers.predicates.traces import Converges, Drifts, Sooner, Within
from svgpbench.stats.designs import Design
from svgpbench.stats.differences import (
    REPLICATE,
    TooFewError,
    interval_outcome,
    non_inferiority_outcome,
    sampled,
    superiority_outcome,
    units_of_width,
    would_decide,
)
from svgpbench.stats.effects import NOT_VOTING, Effect, Outcome
from svgpbench.stats.means import overlap
from svgpbench.stats.measures import CONSTANT, MEASURES, MeasureName, ShareOfGain
from svgpbench.stats.over_sets import data_sets, over_sets
from svgpbench.stats.pairs import NOT_TRACED, PairedRuns, column_of
from svgpbench.stats.ranks import average_ranks
from svgpbench.stats.rules import RULES, Rules


class Ordering(AtTheEnd):
    """A ranking in which each method is better than the next one, over data sets.

    With `at_least` each is only no worse (non-inferior): the whole interval lies above minus the region.
    With `settings` instead of `methods`, each setting has a pair of methods and counts as a case.
    With `gain_share` the region is this share of what the method `gain_of` gains over a constant prediction.
    """

    predicate: Literal["ordering"]
    methods: Annotated[tuple[str, ...], Field(min_length=2)] = ()  # the best first
    settings: dict[str, tuple[str, str]] = Field(default_factory=dict)
    at_least: bool = False
    gain_share: PositiveFloat | None = None
    gain_of: str = ""

    @model_validator(mode="after")
    def _one_of_both(self) -> Ordering:
        if bool(self.methods) == bool(self.settings):
            raise ValueError("an ordering is of `methods` or of `settings`; give one of them")
        return self

    @model_validator(mode="after")
    def _has_a_gain(self) -> Ordering:
        if self.gain_share is None:
            return self
        if self.smallest_effect is not None:
            raise ValueError("gain_share and smallest_effect both set the region; give one of them")
        if self.gain_of not in self.compared:
            raise ValueError("gain_share takes gain_of, one of the methods that are compared")
        if self.metric not in CONSTANT:
            raise ValueError(f"gain_share is for the metrics {', '.join(CONSTANT)}")
        return self

    @property
    def compared(self) -> tuple[str, ...]:
        return self.methods or tuple(name for pair in self.settings.values() for name in pair)

    def lacks(self, design: Design) -> str:
        return design.lacks_interval(self.metric, sets_are_units=True)

    def judge(self, frame: pd.DataFrame, rules: Rules = RULES) -> Judgement:
        smallest: float | ShareOfGain | None = self.smallest_effect
        if self.gain_share is not None:
            smallest = ShareOfGain(self.gain_share, self.gain_of)
        cases = data_sets(frame, self.metric, smallest)
        if self.settings:
            return judge_cases(
                replace(effect, of=f"{setting}, {effect.of}" if len(cases) > 1 else setting)
                for setting, pair in self.settings.items()
                for effect in self._pair(cases, *pair, rules)
            )
        pairs = [self._pair(cases, *pair, rules) for pair in pairwise(self.methods)]
        end = column_of(frame, self.metric, "end")
        ranks = average_ranks(frame, end, MEASURES[self.metric].better, self.methods)
        effects = tuple(effect for pair in pairs for effect in pair)
        return Judgement(combined(judge_cases(pair).grade for pair in pairs), effects, ranks)

    def shown_by(self, effects: Iterable[Effect], lasting: Iterable[Effect] = ()) -> str:
        # the region of a gain differs by data set, so that no unit is shared
        return "" if self.gain_share is not None else super().shown_by(effects, lasting)

    def _pair(
        self, cases: Sequence[PairedRuns], first: str, second: str, rules: Rules
    ) -> list[Effect]:
        judge = non_inferiority_outcome if self.at_least else superiority_outcome
        effects = over_sets(cases, first, second, rules, judge)
        good = {Outcome.better, Outcome.no_worse} if self.at_least else {Outcome.better}
        suffix = f": {first} against {second}" if len(self.methods) > 2 else ""
        return [
            replace(effect, of=f"{effect.of}{suffix}", held=supports(effect.outcome, good))
            for effect in effects
        ]


class Equality(AtTheEnd):
    """Practical equivalence of two methods: the interval of their difference lies inside the region."""

    predicate: Literal["equality"]
    methods: tuple[str, str]

    @property
    def compared(self) -> tuple[str, ...]:
        return self.methods

    def lacks(self, design: Design) -> str:
        return design.lacks_interval(self.metric, sets_are_units=True)

    def judge(self, frame: pd.DataFrame, rules: Rules = RULES) -> Judgement:
        cases = data_sets(frame, self.metric, self.smallest_effect)
        comparisons = over_sets(cases, *self.methods, rules, interval_outcome)
        effects = tuple(replace(x, held=supports(x.outcome, {Outcome.equal})) for x in comparisons)
        # not `judge_cases`, which asks for `worse` alone: better on one set refutes equality too
        return Judgement(combined_cases(effects, [x.held is False for x in effects]), effects)


class Monotone(Predicate):
    """A monotone trend: a measure of one method gets better as a setting rises.

    The part is mixed if the measure gets better at one step of the setting and worse at another. Otherwise
    it is open if a step is undecided or none counts, holds if a step is better, and fails if none is.
    """

    predicate: Literal["monotone"]
    metric: MeasureName
    method: str
    setting: str  # a column of the frame

    @property
    def compared(self) -> tuple[str, ...]:
        return (self.method,)

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.setting,)

    def lacks(self, design: Design) -> str:
        return design.lacks_interval(self.metric, sets_are_units=True)

    def judge(self, frame: pd.DataFrame, rules: Rules = RULES) -> Judgement:
        cells = frame[frame["method"] == self.method]
        values = sorted(cells[self.setting].unique())
        # each value of the setting plays a method: values are compared as methods are
        cells = cells.assign(method=cells[self.setting].map(str))
        held = {Outcome.better: True, Outcome.worse: False}
        effects: tuple[Effect, ...] = ()
        for low, high in pairwise(map(str, values)):
            cases = data_sets(cells[cells["method"].isin([low, high])], self.metric)
            effects += tuple(
                replace(x, of=f"{x.of}, {low} to {high}", held=held.get(Outcome(x.outcome)))
                for x in over_sets(cases, high, low, rules, interval_outcome)
            )
        outcomes = {effect.outcome for effect in effects} - NOT_VOTING
        if {Outcome.better, Outcome.worse} <= outcomes:
            return Judgement(Grade.mixed, effects)
        if Outcome.undecided in outcomes or not outcomes:
            return Judgement(Grade.open, effects)
        return Judgement(Grade.holds if Outcome.better in outcomes else Grade.fails, effects)


class Number(AtTheEnd):
    """Agreement of a method's mean with a printed number, on one data set.

    The part fails if the number lies outside our interval widened by the printed spread and the measure's
    region. It holds inside. It is open there if our interval is wider than `gap`, the difference on which
    the authors' claim relies. It is also open if cells failed or are too few for an interval.
    """

    predicate: Literal["number"]
    method: str
    printed: float
    spread: NonNegativeFloat = 0.0
    gap: PositiveFloat

    @property
    def compared(self) -> tuple[str, ...]:
        return (self.method,)

    def lacks(self, design: Design) -> str:
        return design.lacks_interval(self.metric)

    def judge(self, frame: pd.DataFrame, rules: Rules = RULES) -> Judgement:
        cells = frame[(frame["method"] == self.method) & (frame["perturbation"] == 0)]
        data, measure = str(cells["data"].iloc[0]), MEASURES[self.metric]
        if failed := int(((cells["status"] != "ok") | cells[self.metric].isna()).sum()):
            effect = Effect(data, "", note=f"{failed} of {len(cells)} cells failed")
            return Judgement(Grade.open, (effect,))
        end = column_of(cells, self.metric, "end")
        values = cells.set_index(REPLICATE)[end]
        try:
            sample = sampled(values, overlap(cells), measure.rows)
        except TooFewError as error:
            effect = Effect(data, "", float(values.mean()), note=str(error))
            return Judgement(Grade.open, (effect,))
        margin = 0.0
        if rules.drift:
            change = cells[end] - cells[column_of(cells, self.metric, "before")]
            margin = rules.drift * abs(float(change.mean()))
            if math.isnan(margin):
                effect = Effect(data, "", sample.mean, *sample.interval, NOT_TRACED)
                return Judgement(Grade.open, (effect,))
        low, high = sample.interval[0] - margin, sample.interval[1] + margin
        region = measure.region_at(self.printed, float(cells["n_bound"].mean()))
        slack = self.spread + rules.threshold * region
        grade, outcome = Grade.fails, "not as printed"
        note = f"printed {self.printed:g}"
        if low - slack <= self.printed <= high + slack:
            grade, outcome = Grade.holds, "as printed"
            # such an interval could hold the number of the method beside it in print, too
            if high - low > self.gap:
                grade, outcome = Grade.open, "too wide"
                units = units_of_width(sample, self.gap)
                note = f"{note}; {would_decide(units, sample.unit)}"
        held = {Grade.holds: True, Grade.fails: False}.get(grade)
        return Judgement(grade, (Effect(data, outcome, sample.mean, low, high, note, held),))


AnyPredicate: TypeAlias = Annotated[
    Ordering
    | Equality
    | Monotone
    | Ratio
    | AsLong
    | Gain
    | Reaches
    | Stands
    | Band
    | Sensitive
    | Tolerates
    | Number
    | Within
    | Sooner
    | Converges
    | Drifts
    | EveryRun
    | MoreOften
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
