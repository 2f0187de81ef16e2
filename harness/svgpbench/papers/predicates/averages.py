"""Predicates of one number over all data sets, such as a printed mean, a best median or a spread.

Data sets are the unit: ours are not those of the print, or not all of them, so that an interval says how far
the number hangs on which they are. It is a bootstrap's over data sets, 95 %.
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
"""Standard deviations over outputs within this ratio are equal."""


class OverSets(Predicate):
    """A statistic over data sets of a method's means on them; a rank is that among `field`."""

    metric: MeasureName
    statistic: Literal["mean", "median", "rank"]
    method: str
    field: tuple[str, ...] = ()  # the methods that are ranked, or compared with

    @property
    def compared(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.method, *self.field)))

    def drawn(self, frame: pd.DataFrame) -> tuple[pd.Series[float], pd.DataFrame, str]:
        """The statistic of each method, that of each resample of the data sets, and why there is none."""
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
    """The statistic beside the one that is printed of other data sets: shown, and not graded."""

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
    """A method has the best statistic of a field: that of every other is worse in 95 % of resamples.

    It fails where that of another is better in as many; else it is open.
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
        losses: pd.DataFrame,  # of the resamples, whose mean is not that of the data sets
    ) -> Effect:
        low, high = _interval(losses[other] - losses[self.method])
        note = f"{self.statistic} {values[self.method]:.3g} against {values[other]:.3g}"
        gain = float(lost[other] - lost[self.method])
        outcome = says(low, high, 0.0)
        held = {Outcome.better: True, Outcome.worse: False}.get(outcome)
        return Effect(f"against {other}", outcome, gain, low, high, note, held)


def _unconverged_in(frame: pd.DataFrame, methods: Sequence[str], rules: Rules) -> str:
    """Say on how many data sets a run has not converged, and why on the first; empty where on none."""
    why = [
        found
        for _, cells in frame.groupby("data", sort=False)
        if (found := unconverged(cells, methods, rules))
    ]
    if not why:
        return ""
    return f"not converged on {len(why)} of {frame['data'].nunique()} data sets: {why[0]}"


class Spread(AtTheEnd):
    """A measure of the first method differs less among data sets, such as outputs, than every other's.

    The unit is the split: of each, the logarithm of the ratio of standard deviations over data sets. The
    other methods are the cases.
    """

    predicate: Literal["spread"]
    metric: MeasureName
    methods: Annotated[tuple[str, ...], Field(min_length=2)]  # that of the least spread first

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
    """A row a data set that has cells of every method, a column a method; NaN where a cell failed."""
    plain = frame[(frame["perturbation"] == 0) & frame["method"].isin(methods)]
    values = plain[metric].where(plain["status"] == "ok")
    of_set = values.groupby([plain["data"], plain["method"]])
    means = of_set.agg(lambda x: x.mean(skipna=False)).unstack()
    whole = of_set.size().unstack().reindex(columns=methods).notna().all(axis="columns")
    return means.reindex(columns=methods)[whole]


def _interval(values: pd.Series[float]) -> tuple[float, float]:
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
