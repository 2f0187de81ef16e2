"""Predicates of times, which are ratios paired by round: rule 8.

A frame has `problem`, `method`, `round` and `seconds`; where `problem` is categorical, a problem that has no
times is told.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import pandas as pd
from pydantic import PositiveFloat

from svgpbench.papers.differences import says
from svgpbench.papers.predicate import Predicate, better_over_data_sets
from svgpbench.papers.verdict import Effect, Finding, Outcome, Verdict, combined

ROUNDS = 5
"""The fewest rounds of a timing that have quartiles worth the name."""

REGION = 1.1
"""A ratio of times matters beyond it."""


class Quartiles(NamedTuple):
    """Of a ratio, over rounds."""

    low: float
    median: float
    high: float

    def outcome(self) -> Outcome:
        """What they say against the region."""
        return says(math.log(self.low), math.log(self.high), math.log(REGION))

    def over(self, other: Quartiles) -> Quartiles:
        """How many times as large as another, from quartile to quartile."""
        return Quartiles(self.low / other.high, self.median / other.median, self.high / other.low)

    def effect(self, of: str, outcome: str, note: str) -> Effect:
        """As the ledger shows it."""
        return Effect(of, outcome, self.median, self.low, self.high, note)


class OfTimes(Predicate):
    """How many times as long as the first method the second takes."""

    methods: tuple[str, str]

    @property
    def compared(self) -> tuple[str, ...]:
        return self.methods

    def ratios(self, frame: pd.DataFrame) -> dict[str, Quartiles | str]:
        """The ratio on each problem, or why there is none."""
        by_problem = frame.groupby("problem", sort=False, observed=False)
        return {str(problem): self._ratio(rounds) for problem, rounds in by_problem}

    def _ratio(self, rounds: pd.DataFrame) -> Quartiles | str:
        wide = rounds.pivot(index="round", columns="method", values="seconds")
        if without := [method for method in self.methods if method not in wide]:
            return f"no times of {', '.join(without)}"
        first, second = self.methods
        ratios = (wide[second] / wide[first]).dropna()
        if len(ratios) < ROUNDS:
            return f"{len(ratios)} rounds where {ROUNDS} make quartiles"
        return Quartiles(*(float(ratios.quantile(q)) for q in (0.25, 0.5, 0.75)))


class Ratio(OfTimes):
    """The second method takes at least so many times as long as the first, on every problem.

    The lower quartile decides: reproduced from `at_least` on, not reproduced up to `refuted_at`, partly
    between.
    """

    predicate: Literal["ratio"]
    at_least: PositiveFloat
    refuted_at: PositiveFloat = REGION

    def judge(self, frame: pd.DataFrame) -> Finding:
        found = [self._on(*each) for each in self.ratios(frame).items()]
        return Finding(combined(v for v, _ in found), tuple(effect for _, effect in found))

    def _on(self, problem: str, ratio: Quartiles | str) -> tuple[Verdict, Effect]:
        if isinstance(ratio, str):
            return Verdict.undecided, Effect(problem, "", note=ratio)
        verdict = Verdict.partly
        if ratio.low >= self.at_least:
            verdict = Verdict.reproduced
        elif ratio.low <= self.refuted_at:
            verdict = Verdict.not_reproduced
        return verdict, ratio.effect(problem, "", "quartiles")


class AsLong(OfTimes):
    """The two methods take as long, on every problem: the quartiles of the ratio lie inside the region.

    Not reproduced where both lie beyond it on one side; else undecided.
    """

    predicate: Literal["as_long"]

    def judge(self, frame: pd.DataFrame) -> Finding:
        found = [self._on(*each) for each in self.ratios(frame).items()]
        return Finding(combined(v for v, _ in found), tuple(effect for _, effect in found))

    def _on(self, problem: str, ratio: Quartiles | str) -> tuple[Verdict, Effect]:
        if isinstance(ratio, str):
            return Verdict.undecided, Effect(problem, "", note=ratio)
        outcome = ratio.outcome()
        verdict = Verdict.undecided if outcome == Outcome.undecided else Verdict.not_reproduced
        verdict = Verdict.reproduced if outcome == Outcome.equal else verdict
        return verdict, ratio.effect(problem, outcome, "quartiles")


class Gain(OfTimes):
    """The ratio is larger on the other problems than on one, by rule 5 with problems as data sets.

    It is where the lower quartile of one lies beyond the upper quartile of the other, and beyond the region.
    """

    predicate: Literal["gain"]
    than: str  # the problem that the others are compared with

    def judge(self, frame: pd.DataFrame) -> Finding:
        ratios = self.ratios(frame)
        than = ratios.pop(self.than)
        effects = tuple(self._against(*each, than) for each in ratios.items())
        return Finding(better_over_data_sets([effect.outcome for effect in effects]), effects)

    def _against(self, problem: str, one: Quartiles | str, than: Quartiles | str) -> Effect:
        if isinstance(one, str):
            return Effect(problem, Outcome.undecided, note=one)
        if isinstance(than, str):
            return Effect(problem, Outcome.undecided, note=f"{self.than}: {than}")
        ratio = one.over(than)
        note = f"{one.median:.3g} against {than.median:.3g}"
        return ratio.effect(problem, ratio.outcome(), note)
