"""Predicates on one number over all data sets, such as a printed mean, a best median or a spread.

Our data sets are not exactly those of the print. For a statistic over them, the interval is a 95 % bootstrap
over data sets and shows how much it depends on their choice. The units of `Spread` are splits or starts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import Field, model_validator

from svgpbench.metrics import loss
from svgpbench.papers.grades import Grade, Judgement, over_cases
from svgpbench.papers.predicates.predicate import AtTheEnd, Predicate
from svgpbench.stats.differences import TooFewError, sampled, says
from svgpbench.stats.effects import Effect, Outcome
from svgpbench.stats.measures import MEASURES, MeasureName
from svgpbench.stats.pairs import is_learned, unconverged
from svgpbench.stats.ranks import FEWEST, LEVEL, RESAMPLES
from svgpbench.stats.rules import RULES, Rules

Floats: TypeAlias = npt.NDArray[np.float64]
STATISTICS: Mapping[str, Callable[..., Any]] = {
    "mean": np.mean,
    "median": np.median,
    "rank": np.mean,
}
SPREAD_REGION = 1.1
"""Ratio within which standard deviations over data sets count as equal."""


class OverSets(Predicate):
    """A statistic over data sets of a method's means on them; `rank` is the mean rank among `field`."""

    metric: MeasureName
    statistic: Literal["mean", "median", "rank"]
    method: str
    field: tuple[str, ...] = ()  # methods to rank, or to compare with

    @property
    def compared(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.method, *self.field)))

    def drawn(self, frame: pd.DataFrame) -> tuple[pd.Series[float], pd.DataFrame, str]:
        """Return the statistic of each method, its resamples [resamples, methods] and an error text.

        The text is empty unless data sets are too few or cells failed; both frames are empty then.
        """
        learned = frame.groupby("data")["data"].transform(
            lambda data: is_learned(frame.loc[data.index])
        )
        means = _means(frame[learned.astype(bool)], self.metric, self.compared)
        if len(means) < FEWEST:
            why = f"{len(means)} data sets where {FEWEST} make an interval"
            return pd.Series(dtype=float), pd.DataFrame(), why
        if self.statistic == "rank":
            better = MEASURES[self.metric].better
            means = means.map(lambda x: loss(x, better)).rank(axis=1, na_option="bottom")
        elif means.isna().any(axis=None):
            failed = ", ".join(means.columns[means.isna().any()])
            return pd.Series(dtype=float), pd.DataFrame(), f"failed cells of {failed}"
        values, of = means.to_numpy(), STATISTICS[self.statistic]
        rows = np.random.default_rng(0).integers(len(values), size=(RESAMPLES, len(values)))
        resampled = pd.DataFrame(of(values[rows], axis=1), columns=means.columns)
        return pd.Series(of(values, axis=0), means.columns), resampled, ""


class Average(OverSets):
    """A statistic beside the printed one of other data sets; shown, but not graded."""

    predicate: Literal["average"]
    printed: float

    @model_validator(mode="after")
    def _is_a_condition(self) -> Average:
        if self.core:
            raise ValueError("a number printed of other data sets is never core; leave core out")
        return self

    def judge(self, frame: pd.DataFrame, rules: Rules = RULES) -> Judgement:
        values, resampled, why = self.drawn(frame)
        name = f"{self.statistic} over data sets"
        if why:
            return Judgement(Grade.not_testable, (Effect(name, "", note=why),))
        low, high = _interval(resampled[self.method])
        sets = frame["data"].nunique()
        note = f"printed {self.printed:g} of other sets; bootstrap over {sets} data sets"
        effect = Effect(name, "", float(values[self.method]), low, high, note)
        return Judgement(Grade.not_testable, (effect,))


class Leads(OverSets, AtTheEnd):
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

    def judge(self, frame: pd.DataFrame, rules: Rules = RULES) -> Judgement:
        values, resampled, why = self.drawn(frame)
        if not why and self.converged:
            why = _unconverged_in(frame, self.compared, rules)
        if why:
            return Judgement(Grade.open, (Effect(self.method, Outcome.undecided, note=why),))
        better = "lower" if self.statistic == "rank" else MEASURES[self.metric].better
        losses = resampled.map(lambda x: loss(x, better))
        lost = values.map(lambda x: loss(x, better))
        effects = tuple(
            self._against(other, values, lost, losses)
            for other in self.field
            if other != self.method
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
        other: str,
        values: pd.Series[float],
        lost: pd.Series[float],
        losses: pd.DataFrame,  # [resamples, methods]; their mean is not the statistic
    ) -> Effect:
        low, high = _interval(losses[other] - losses[self.method])
        note = f"{self.statistic} {values[self.method]:.3g} against {values[other]:.3g}"
        gain = float(lost[other] - lost[self.method])
        outcome = says(low, high, 0.0)
        held = {Outcome.better: True, Outcome.worse: False}.get(outcome)
        return Effect(f"against {other}", outcome, gain, low, high, note, held)


def _unconverged_in(frame: pd.DataFrame, methods: Sequence[str], rules: Rules) -> str:
    """Return the number of data sets with unconverged runs and the first reason; empty if there are none."""
    why = [
        found
        for _, cells in frame.groupby("data", sort=False)
        if (found := unconverged(cells, methods, rules))
    ]
    if not why:
        return ""
    return f"not converged on {len(why)} of {frame['data'].nunique()} data sets: {why[0]}"


class Spread(AtTheEnd):
    """The smallest spread of a measure over data sets, such as outputs, is the first method's.

    Each run gives the log ratio of standard deviations over data sets. Splits are the units; with one split,
    or for a training measure, starts are. Each other method is a case.
    """

    predicate: Literal["spread"]
    metric: MeasureName
    methods: Annotated[tuple[str, ...], Field(min_length=2)]  # that of the smallest spread first

    @property
    def compared(self) -> tuple[str, ...]:
        return self.methods

    def judge(self, frame: pd.DataFrame, rules: Rules = RULES) -> Judgement:
        plain = frame[frame["perturbation"] == 0]
        effects = tuple(self._against(plain, other, rules) for other in self.methods[1:])
        worst = [effect.outcome == Outcome.worse for effect in effects]
        return Judgement(over_cases(effects, worst), effects)

    def _against(self, plain: pd.DataFrame, other: str, rules: Rules) -> Effect:
        pair = plain[plain["method"].isin([self.methods[0], other])]
        of = f"against {other}"
        if failed := int(((pair["status"] != "ok") | pair[self.metric].isna()).sum()):
            return Effect(of, Outcome.undecided, note=f"{failed} of {len(pair)} cells failed")
        if self.converged and (why := _unconverged_in(pair, (self.methods[0], other), rules)):
            return Effect(of, Outcome.undecided, note=why)
        keys = ["method", "split_seed", "fold", "seed"]
        deviations = pair.groupby(keys)[self.metric].std(ddof=1).unstack("method")
        ratios = (deviations[other] / deviations[self.methods[0]]).map(math.log)
        overlap = float((pair["n_test"] / pair["n_train"]).mean())
        try:
            sample = sampled(ratios, overlap, MEASURES[self.metric].rows)
        except TooFewError as error:
            return Effect(of, Outcome.undecided, math.exp(float(ratios.mean())), note=str(error))
        low, high = sample.interval
        outcome = says(low, high, rules.threshold * math.log(SPREAD_REGION))
        held = None if outcome == Outcome.undecided else outcome == Outcome.better
        mean, least, most = (math.exp(x) for x in (sample.mean, low, high))
        note = "ratio of standard deviations over data sets"
        return Effect(of, outcome, mean, least, most, note, held)


def _means(frame: pd.DataFrame, metric: str, methods: tuple[str, ...]) -> pd.DataFrame:
    """Return means [data sets, methods] of the sets with cells of every method; NaN if a cell failed."""
    plain = frame[(frame["perturbation"] == 0) & frame["method"].isin(methods)]
    values = plain[metric].where(plain["status"] == "ok")
    of_set = values.groupby([plain["data"], plain["method"]])
    means = of_set.agg(lambda x: x.mean(skipna=False)).unstack()
    whole = of_set.size().unstack().reindex(columns=methods).notna().all(axis="columns")
    return means.reindex(columns=methods)[whole]


def _interval(values: pd.Series[float]) -> tuple[float, float]:
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
