"""The words that a claim is decided with: each from a frame of results to a verdict with its figures.

A predicate's fields are the keys of a part in a claims file; `judge` is a pure function of a frame.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Literal, TypeAlias

import numpy as np
import pandas as pd
from pydantic import Field, NonNegativeFloat, PositiveFloat, model_validator

from svgpbench.config import Strict
from svgpbench.papers.differences import (
    TooFewError,
    compare,
    sampled,
    units_of_width,
    would_decide,
)
from svgpbench.papers.measures import MEASURES, MeasureName
from svgpbench.papers.ranks import average_ranks
from svgpbench.papers.verdict import Effect, Finding, Outcome, Verdict, combined

ROUNDS = 5
"""The fewest rounds of a timing that have quartiles worth the name."""


class Predicate(Strict, ABC):
    """A part of a claim: which artefact's records decide it, and how."""

    says: str  # the part in a few words
    artefact: str

    @abstractmethod
    def judge(self, frame: pd.DataFrame) -> Finding:
        """The verdict on a frame of results."""

    @property
    def compared(self) -> tuple[str, ...]:
        """Labels of the methods it is about."""
        return ()


def over_data_sets(held: Sequence[bool], failed: Sequence[bool], worst: Sequence[bool]) -> Verdict:
    """One verdict from those on several data sets.

    Reproduced where it held on more than half and is at its worst on none; not reproduced where it failed
    on more than half; partly where it held on some and failed on others; else undecided.
    """
    half = len(held) / 2
    if sum(held) > half and not any(worst):
        return Verdict.reproduced
    if sum(failed) > half:
        return Verdict.not_reproduced
    return Verdict.partly if any(held) and any(failed) else Verdict.undecided


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
            return Finding(self._of_pair([effect.outcome for effect in effects]), effects)
        pairs = [compare(frame, self.metric, *pair) for pair in pairwise(self.methods)]
        verdict = combined(self._of_pair([effect.outcome for effect in pair]) for pair in pairs)
        ranks = average_ranks(frame, self.metric, MEASURES[self.metric].better, self.methods)
        return Finding(verdict, tuple(effect for pair in pairs for effect in pair), ranks)

    def _over_settings(self, frame: pd.DataFrame) -> Iterator[Effect]:
        several = frame["data"].nunique() > 1
        for setting, pair in self.settings.items():
            for effect in compare(frame, self.metric, *pair):
                yield replace(effect, of=f"{setting}, {effect.of}" if several else setting)

    def _of_pair(self, outcomes: Sequence[str]) -> Verdict:
        good = {Outcome.better, Outcome.equal} if self.at_least else {Outcome.better}
        bad = {Outcome.better, Outcome.equal, Outcome.worse} - good
        return over_data_sets(
            [outcome in good for outcome in outcomes],
            [outcome in bad for outcome in outcomes],
            [outcome == Outcome.worse for outcome in outcomes],
        )


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


class Ratio(Predicate):
    """The second method takes at least so many times as long as the first, paired by round.

    The lower quartile decides: reproduced from `at_least` on, not reproduced up to `refuted_at`, partly
    between. The frame has `method`, `round` and `seconds`.
    """

    predicate: Literal["ratio"]
    methods: tuple[str, str]
    at_least: PositiveFloat
    refuted_at: PositiveFloat = 1.1

    @property
    def compared(self) -> tuple[str, ...]:
        return self.methods

    def judge(self, frame: pd.DataFrame) -> Finding:
        wide = frame.pivot(index="round", columns="method", values="seconds")
        first, second = self.methods
        if without := [method for method in self.methods if method not in wide]:
            note = f"no times of {', '.join(without)}"
            return Finding(Verdict.undecided, (Effect("time ratio", "", note=note),))
        ratios = (wide[second] / wide[first]).dropna()
        if len(ratios) < ROUNDS:
            note = f"{len(ratios)} rounds where {ROUNDS} make quartiles"
            return Finding(Verdict.undecided, (Effect("time ratio", "", note=note),))
        low, median, high = (float(ratios.quantile(q)) for q in (0.25, 0.5, 0.75))
        verdict = Verdict.partly
        if low >= self.at_least:
            verdict = Verdict.reproduced
        elif low <= self.refuted_at:
            verdict = Verdict.not_reproduced
        return Finding(verdict, (Effect("time ratio", "", median, low, high, "quartiles"),))


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


class Computed(Predicate):
    """Decided by a frame that is computed: of its rows by `check`, some or all."""

    checks: tuple[str, ...] = ()  # all of them, where none is named


class Identity(Computed):
    """Every `residual` of the frame is within a tolerance; exact claims have no interval."""

    predicate: Literal["identity"]
    tolerance: PositiveFloat = 1e-8

    def judge(self, frame: pd.DataFrame) -> Finding:
        worst = float(frame["residual"].abs().max())
        return _of_residuals(frame, "largest residual", worst, worst <= self.tolerance)


class Differs(Computed):
    """Every `residual` of the frame is at least so large: what is printed does not hold as it stands."""

    predicate: Literal["differs"]
    at_least: PositiveFloat = 1e-3

    def judge(self, frame: pd.DataFrame) -> Finding:
        least = float(frame["residual"].abs().min())
        return _of_residuals(frame, "least residual", least, least >= self.at_least)


def _of_residuals(frame: pd.DataFrame, what: str, extreme: float, holds: bool) -> Finding:
    """The verdict where every residual is a number; undecided where one is not, or there is none."""
    missing = int(frame["residual"].isna().sum())
    if frame.empty or missing:
        note = f"{missing} of {len(frame)} residuals are not numbers"
        return Finding(Verdict.undecided, (Effect(what, "", note=note),))
    verdict = Verdict.reproduced if holds else Verdict.not_reproduced
    return Finding(verdict, (Effect(what, "", extreme),))


class Exponent(Computed):
    """A counted cost grows as a power of one size, fitted over a decade and more."""

    predicate: Literal["exponent"]
    cost: str  # a column
    size: str  # a column
    power: float
    within: PositiveFloat = 0.05

    def judge(self, frame: pd.DataFrame) -> Finding:
        sizes, costs = (frame[column].to_numpy(float) for column in (self.size, self.cost))
        name = f"exponent of {self.size}"
        if sizes.max() < 10 * sizes.min():
            return Finding(Verdict.undecided, (Effect(name, "", note="less than a decade"),))
        slope = float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])
        near = abs(slope - self.power) <= self.within
        verdict = Verdict.reproduced if near else Verdict.not_reproduced
        return Finding(verdict, (Effect(name, "", slope),))


AnyPredicate: TypeAlias = Annotated[
    Ordering | Equality | Monotone | Ratio | Number | Identity | Differs | Exponent,
    Field(discriminator="predicate"),
]
