"""Predicates on times: of steps, paired by round, and to a quality, paired by seed.

A frame of steps has `problem`, `method`, `round` and `seconds`. If `problem` is categorical, a problem
without times is reported. A frame of training has one row per evaluation: `problem`, `method`, `seed`,
`seconds`, the metrics, and `n_bound`.
"""

from __future__ import annotations

import math
from statistics import median
from typing import Literal, NamedTuple, cast

import numpy as np
import pandas as pd
from pydantic import PositiveFloat

from svgpbench.papers.grades import Grade, Judgement, combined, combined_cases
from svgpbench.papers.predicates.predicate import Predicate, judge_cases
from svgpbench.stats.designs import Design
from svgpbench.stats.differences import interval_outcome
from svgpbench.stats.effects import Effect, Outcome, in_regions
from svgpbench.stats.measures import MEASURES
from svgpbench.stats.rules import RULES, Rules

ROUNDS = 5
"""Fewest rounds for quartiles of a timing."""

REGION = 1.1
"""Ratio beyond which times differ in practice."""

SEEDS = 3
"""Fewest seeds of a training that decide."""


class Quartiles(NamedTuple):
    """Quartiles of a ratio over rounds."""

    low: float
    median: float
    high: float

    def outcome(self, rules: Rules = RULES) -> Outcome:
        """Return the outcome of the quartiles against the region."""
        # of logarithms, in which the region from 1/1.1 to 1.1 is symmetric
        region = rules.threshold * math.log(REGION)
        return interval_outcome(math.log(self.low), math.log(self.high), region)

    def over(self, base: Quartiles) -> Quartiles:
        """Return the ratio to `base`; its ends divide opposite quartiles."""
        return Quartiles(self.low / base.high, self.median / base.median, self.high / base.low)

    def effect(self, subject: str, outcome: str, note: str, supports: bool | None) -> Effect:
        """Return the ratio as an effect of the ledger."""
        middle, low, high = (math.log(x) for x in (self.median, self.low, self.high))
        common = in_regions(middle, low, high, math.log(REGION))
        return Effect(subject, outcome, self.median, self.low, self.high, note, supports, common)


class OfTimes(Predicate):
    """A part about the ratio of times, second method over first."""

    methods: tuple[str, str]

    @property
    def compared(self) -> tuple[str, ...]:
        return self.methods

    def ratios(self, frame: pd.DataFrame) -> dict[str, Quartiles | str]:
        """Return the ratio on each problem, or the reason why there is none."""
        by_problem = frame.groupby("problem", sort=False, observed=False)
        return {str(problem): self._ratio(rounds) for problem, rounds in by_problem}

    def _ratio(self, rounds: pd.DataFrame) -> Quartiles | str:
        # paired by round: what slows the machine for a while slows both methods
        wide = rounds.pivot(index="round", columns="method", values="seconds")
        if without := [method for method in self.methods if method not in wide]:
            return f"no times of {', '.join(without)}"
        first, second = self.methods
        ratios = (wide[second] / wide[first]).dropna()
        if len(ratios) < ROUNDS:
            return f"{len(ratios)} rounds where {ROUNDS} make quartiles"
        return Quartiles(*(float(ratios.quantile(q)) for q in (0.25, 0.5, 0.75)))


class Ratio(OfTimes):
    """A speed-up: the second method takes at least `at_least` times as long as the first, on every problem.

    The lower quartile decides. The part holds if it is at least `at_least`, and fails if it is at most
    `refuted_at`. Between them it is `direction only`. With `at_most` the claim is of a size, such as "about
    5 times"; the part is then also `direction only` if the upper quartile exceeds `at_most`.
    """

    predicate: Literal["ratio"]
    printed_effect: PositiveFloat | None = None
    at_least: PositiveFloat
    at_most: PositiveFloat | None = None
    refuted_at: PositiveFloat = REGION

    @property
    def printed_in_regions(self) -> tuple[float, ...]:
        return (math.log(self.printed_effect) / math.log(REGION),) if self.printed_effect else ()

    def judge(self, frame: pd.DataFrame, rules: Rules = RULES) -> Judgement:
        judged = [self._on_problem(*item, rules) for item in self.ratios(frame).items()]
        return Judgement(combined(grade for grade, _ in judged), tuple(x for _, x in judged))

    def _on_problem(
        self, problem: str, ratio: Quartiles | str, rules: Rules
    ) -> tuple[Grade, Effect]:
        if isinstance(ratio, str):
            return Grade.open, Effect(problem, "", note=ratio)
        grade = Grade.direction
        # a ratio's threshold is halved in its logarithm: 4 becomes 2, and 1 stays 1
        large = self.at_most is not None and ratio.high > self.at_most**rules.threshold
        if ratio.low >= self.at_least**rules.threshold and not large:
            grade = Grade.holds
        elif ratio.low <= self.refuted_at**rules.threshold:
            grade = Grade.fails
        supports = {Grade.holds: True, Grade.fails: False}.get(grade)
        return grade, ratio.effect(problem, "", "median, quartiles", supports)


class AsLong(OfTimes):
    """Equal times of two methods on every problem: the quartiles of the ratio lie inside the region.

    The part fails if both quartiles lie outside on the same side, and is open otherwise.
    """

    predicate: Literal["as-long"]

    def judge(self, frame: pd.DataFrame, rules: Rules = RULES) -> Judgement:
        effects = tuple(self._on_problem(*item, rules) for item in self.ratios(frame).items())
        grades = {True: Grade.holds, False: Grade.fails, None: Grade.open}
        return Judgement(combined(grades[effect.held] for effect in effects), effects)

    def _on_problem(self, problem: str, ratio: Quartiles | str, rules: Rules) -> Effect:
        if isinstance(ratio, str):
            return Effect(problem, "", note=ratio)
        outcome = ratio.outcome(rules)
        supports = None if outcome == Outcome.undecided else outcome == Outcome.equal
        return ratio.effect(problem, outcome, "median, quartiles", supports)


class Gain(OfTimes):
    """A gain in the ratio: it is larger on the other problems than on the problem `than`.

    A problem supports the claim if its lower quartile over the upper quartile of `than` exceeds the region.
    """

    predicate: Literal["gain"]
    than: str  # the problem that the others are compared with

    def judge(self, frame: pd.DataFrame, rules: Rules = RULES) -> Judgement:
        ratios = self.ratios(frame)
        base = ratios.pop(self.than)
        return judge_cases(self._against(*item, base, rules) for item in ratios.items())

    def _against(
        self, problem: str, ratio: Quartiles | str, base: Quartiles | str, rules: Rules
    ) -> Effect:
        if isinstance(ratio, str):
            return Effect(problem, Outcome.undecided, note=ratio)
        if isinstance(base, str):
            return Effect(problem, Outcome.undecided, note=f"{self.than}: {base}")
        gain = ratio.over(base)
        note = f"{ratio.median:.3g} against {base.median:.3g}"
        outcome = gain.outcome(rules)
        supports = None if outcome == Outcome.undecided else outcome == Outcome.better
        return gain.effect(problem, outcome, note, supports)


class Reaches(Predicate):
    """Faster training: the first method reaches the second's final quality in less time, on every seed.

    The quality is the second method's last value, relaxed by the measure's region of practical equivalence.
    Times are interpolated between evaluations. If the first method never reaches the quality, the ratio is 0.
    """

    predicate: Literal["reaches"]
    metric: Literal["elbo", "nlpd"]
    methods: tuple[str, str]

    @property
    def compared(self) -> tuple[str, ...]:
        return self.methods

    def lacks(self, design: Design) -> str:
        return "" if design.starts >= SEEDS else f"{SEEDS} starts"

    def judge(self, frame: pd.DataFrame, rules: Rules = RULES) -> Judgement:
        effects = tuple(
            self._on_problem(str(problem), evaluations, rules)
            for problem, evaluations in frame.groupby("problem")
        )
        return Judgement(
            combined_cases(effects, [effect.held is False for effect in effects]), effects
        )

    def _on_problem(self, problem: str, evaluations: pd.DataFrame, rules: Rules) -> Effect:
        first, second = (
            cast("dict[int, pd.DataFrame]", dict(list(runs.groupby("seed"))))
            for runs in (evaluations[evaluations["method"] == name] for name in self.methods)
        )
        seeds = sorted(first.keys() & second.keys())
        ratios = [self._ratio(first[seed], second[seed], rules) for seed in seeds]
        if len(ratios) < SEEDS:
            return Effect(problem, "", note=f"{len(ratios)} seeds where {SEEDS} are needed")
        low, high = min(ratios), max(ratios)
        region = rules.threshold * math.log(REGION)
        outcome = interval_outcome(log_of(low), log_of(high), region)
        supports = None if outcome == Outcome.undecided else outcome == Outcome.better
        note = f"median, least and most of {len(ratios)} seeds"
        middle = median(ratios)
        common = in_regions(log_of(middle), log_of(low), log_of(high), math.log(REGION))
        return Effect(problem, outcome, middle, low, high, note, supports, common)

    def _ratio(self, first: pd.DataFrame, second: pd.DataFrame, rules: Rules) -> float:
        """Return the seconds to the quality, second method over first; 0 if the first never reaches it."""
        measure = MEASURES[self.metric]
        sign = 1.0 if measure.better == "higher" else -1.0
        last = float(second[self.metric].iloc[-1])
        region = rules.threshold * measure.region_at(last, float(second["n_bound"].iloc[-1]))
        first_seconds, second_seconds = (
            _seconds_to(run, sign * run[self.metric], sign * last - region)
            for run in (first, second)
        )
        if not first_seconds:  # the first evaluation may be at 0 s
            return math.inf if second_seconds else 1.0
        return second_seconds / first_seconds


def log_of(ratio: float) -> float:
    """Return the logarithm of a ratio, −∞ of 0."""
    return math.log(ratio) if ratio else -math.inf


def _seconds_to(run: pd.DataFrame, score: pd.Series[float], target: float) -> float:
    """Return the seconds until a score reaches a target, interpolated linearly; ∞ if it never does."""
    seconds, scores = run["seconds"].to_numpy(), score.to_numpy()
    reached = np.flatnonzero(scores >= target)
    if not len(reached):
        return math.inf
    index = reached[0]
    if index == 0:
        return float(seconds[0])
    # np.interp wants rising scores: one is below the target here, the next is not
    step = slice(index - 1, index + 1)
    return float(np.interp(target, scores[step], seconds[step]))
