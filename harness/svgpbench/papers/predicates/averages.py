"""Predicates on one number over all data sets, such as a printed mean, a best median or a spread.

Our data sets are not exactly those of the print. For a statistic over them, the interval is a 95 % bootstrap
over data sets and shows how much it depends on their choice. The units of `Spread` are splits or starts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import Field, model_validator

from svgpbench.metrics import loss
from svgpbench.papers.grades import Grade, Judgement
from svgpbench.papers.predicates.predicate import AtTheEnd, Predicate, judge_cases
from svgpbench.stats.designs import Design
from svgpbench.stats.differences import (
    REPLICATE,
    TooFewError,
    bootstrap,
    interval_outcome,
    percentile_interval,
    sampled,
)
from svgpbench.stats.effects import Effect, Outcome
from svgpbench.stats.means import overlap
from svgpbench.stats.measures import MEASURES, MeasureName
from svgpbench.stats.pairs import NOT_TRACED, column_of, is_learned
from svgpbench.stats.ranks import FEWEST, TIE_DIGITS, means_on_sets
from svgpbench.stats.rules import RULES, Rules

Floats: TypeAlias = npt.NDArray[np.float64]
STATISTICS: Mapping[str, Callable[..., Any]] = {
    "mean": np.mean,
    "median": np.median,
    "rank": np.mean,
}
SPREAD_REGION = 1.1
"""Ratio within which standard deviations over data sets count as equal."""


class OverDataSets(NamedTuple):
    """A statistic of each method over data sets, or why there is none."""

    values: pd.Series[float]  # [methods]
    resampled: pd.DataFrame  # [resamples, methods]
    sets: int  # that count
    why_not: str = (
        ""  # data sets are too few, cells failed, or numbers before the end are not recorded
    )


class AveragedOverDataSets(Predicate):
    """A statistic over data sets of a method's means on them; `rank` is the mean rank among `field`."""

    metric: MeasureName
    statistic: Literal["mean", "median", "rank"]
    method: str
    field: tuple[str, ...] = ()  # methods to rank, or to compare with

    @property
    def compared(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.method, *self.field)))

    def bootstrap(self, frame: pd.DataFrame, when: str = "end", *, of_losses: bool) -> OverDataSets:
        """Return the statistic of each method with its bootstrap over data sets.

        `when` is "end", or "before" for a quarter of the run earlier. With `of_losses` the numbers of runs
        are losses, which are lower for a better value; ranks need them.
        """

        def none(why: str, sets: int = 0) -> OverDataSets:
            return OverDataSets(pd.Series(dtype=float), pd.DataFrame(), sets, why)

        plain = frame[frame["perturbation"] == 0]
        plain = plain.groupby("data").filter(is_learned)
        plain = plain[plain["method"].isin(self.compared)]
        numbers = plain[column_of(plain, self.metric, when)].where(plain["status"] == "ok")
        ended = plain[self.metric].notna() & (plain["status"] == "ok")
        if (ended & numbers.isna()).any():
            return none(NOT_TRACED)
        if of_losses:
            # of each run: the distance of a mean from a target is not the mean distance
            numbers = loss(numbers, MEASURES[self.metric].better)
        means = means_on_sets(plain, numbers, [*self.compared])
        if len(means) < FEWEST:
            return none(f"{len(means)} data sets where {FEWEST} make an interval", len(means))
        if self.statistic == "rank":
            means = means.round(TIE_DIGITS).rank(axis=1, na_option="bottom")
        elif means.isna().any(axis=None):
            failed = ", ".join(means.columns[means.isna().any()])
            return none(f"failed cells of {failed}", len(means))
        values, statistic = means.to_numpy(), STATISTICS[self.statistic]
        # the same sets for all methods of a resample: their differences stay paired by data set
        resampled = pd.DataFrame(bootstrap(values, statistic), columns=means.columns)
        return OverDataSets(
            pd.Series(statistic(values, axis=0), means.columns), resampled, len(means)
        )


class Average(AveragedOverDataSets):
    """A statistic beside the printed one of other data sets; shown, but not graded."""

    predicate: Literal["average"]
    printed: float

    @model_validator(mode="after")
    def _is_a_condition(self) -> Average:
        if self.core:
            raise ValueError("a number printed of other data sets is never core; leave core out")
        return self

    def judge(self, frame: pd.DataFrame, rules: Rules = RULES) -> Judgement:
        found = self.bootstrap(frame, of_losses=self.statistic == "rank")
        name = f"{self.statistic} over data sets"
        if found.why_not:
            return Judgement(Grade.not_testable, (Effect(name, "", note=found.why_not),))
        low, high = map(float, percentile_interval(found.resampled[self.method]))
        note = f"printed {self.printed:g} of other sets; bootstrap over {found.sets} data sets"
        effect = Effect(name, "", float(found.values[self.method]), low, high, note)
        return Judgement(Grade.not_testable, (effect,))


class Leads(AveragedOverDataSets, AtTheEnd):
    """The lead of one method: its statistic is the best of a field.

    The part holds if the 95 % bootstrap interval of the difference favours the method against every other.
    It fails if an interval favours another method, and is open otherwise.
    """

    predicate: Literal["leads"]
    field: Annotated[tuple[str, ...], Field(min_length=2)]

    @model_validator(mode="after")
    def _is_in_its_field(self) -> Leads:
        if self.method not in self.field:
            raise ValueError(f"method {self.method!r} is not in its field; name it there")
        return self

    def lacks(self, design: Design) -> str:
        return "" if design.sets >= FEWEST else f"{FEWEST} data sets"

    def judge(self, frame: pd.DataFrame, rules: Rules = RULES) -> Judgement:
        found = before = self.bootstrap(frame, of_losses=True)
        if rules.drift and not found.why_not:
            before = self.bootstrap(frame, "before", of_losses=True)
        if why := before.why_not:
            return Judgement(Grade.open, (Effect(self.method, Outcome.undecided, note=why),))
        changes = found.values - before.values
        effects = tuple(
            self._against(
                rival,
                found.values,
                found.resampled,
                rules.drift * abs(float(changes[rival] - changes[self.method])),
            )
            for rival in self.field
            if rival != self.method
        )
        outcomes = {effect.outcome for effect in effects}
        grade = Grade.open
        if outcomes == {Outcome.better}:
            grade = Grade.holds
        elif Outcome.worse in outcomes:
            grade = Grade.fails
        return Judgement(grade, effects)

    def _against(
        self,
        rival: str,
        losses: pd.Series[float],
        resampled: pd.DataFrame,  # [resamples, methods]; their mean is not the statistic
        margin: float,
    ) -> Effect:
        ends = percentile_interval(resampled[rival] - resampled[self.method])
        low, high = float(ends[0]) - margin, float(ends[1]) + margin
        turned = self.statistic != "rank" and MEASURES[self.metric].better == "higher"
        ours, other = ((-x if turned else x) for x in (losses[self.method], losses[rival]))
        note = f"{self.statistic} {ours:.3g} against {other:.3g}"
        gain = float(losses[rival] - losses[self.method])
        outcome = interval_outcome(low, high, 0.0)
        supports = {Outcome.better: True, Outcome.worse: False}.get(outcome)
        return Effect(f"against {rival}", outcome, gain, low, high, note, supports)


class Spread(AtTheEnd):
    """The smallest spread of a measure over data sets, such as outputs, is the first method's.

    Each run gives the log ratio of standard deviations over data sets. Splits are the units; with one split,
    or for a training measure, starts are. Each other method is a case.
    """

    predicate: Literal["spread"]
    methods: Annotated[tuple[str, ...], Field(min_length=2)]  # that of the smallest spread first

    @property
    def compared(self) -> tuple[str, ...]:
        return self.methods

    def lacks(self, design: Design) -> str:
        return design.lacks_interval(self.metric) if design.sets > 1 else "2 data sets"

    def judge(self, frame: pd.DataFrame, rules: Rules = RULES) -> Judgement:
        plain = frame[frame["perturbation"] == 0]
        return judge_cases(self._against(plain, rival, rules) for rival in self.methods[1:])

    def _against(self, plain: pd.DataFrame, rival: str, rules: Rules) -> Effect:
        pair = plain[plain["method"].isin([self.methods[0], rival])]
        subject = f"against {rival}"
        if failed := int(((pair["status"] != "ok") | pair[self.metric].isna()).sum()):
            return Effect(subject, Outcome.undecided, note=f"{failed} of {len(pair)} cells failed")
        ratios = self._log_ratios(pair, rival, "end")
        if without := int((~np.isfinite(ratios)).sum()):
            note = f"no spread over data sets in {without} of {len(ratios)} runs"
            return Effect(subject, Outcome.undecided, note=note)
        margin = 0.0
        if rules.drift:
            margin = rules.drift * abs(
                float((ratios - self._log_ratios(pair, rival, "before")).mean())
            )
        try:
            sample = sampled(ratios, overlap(pair), MEASURES[self.metric].rows)
        except TooFewError as error:
            return Effect(
                subject, Outcome.undecided, math.exp(float(ratios.mean())), note=str(error)
            )
        low, high = sample.interval[0] - margin, sample.interval[1] + margin
        outcome = interval_outcome(low, high, rules.threshold * math.log(SPREAD_REGION))
        supports = None if outcome == Outcome.undecided else outcome == Outcome.better
        mean, least, most = (math.exp(x) for x in (sample.mean, low, high))
        note = "ratio of standard deviations over data sets"
        return Effect(subject, outcome, mean, least, most, note, supports)

    def _log_ratios(self, pair: pd.DataFrame, rival: str, when: str) -> pd.Series[float]:
        """Return the log ratio of standard deviations over data sets of each run."""
        column = column_of(pair, self.metric, when)
        deviations = pair.groupby(["method", *REPLICATE])[column].std(ddof=1).unstack("method")
        # the mean of logarithms only changes its sign if the two methods are swapped
        ratios = deviations[rival] / deviations[self.methods[0]]
        with np.errstate(divide="ignore"):  # of a method without spread: ±∞, or NaN
            return pd.Series(np.log(ratios), ratios.index)
