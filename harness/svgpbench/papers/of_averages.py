"""Predicates of one number over all data sets, such as a printed mean, a best median or a spread.

Data sets are the unit: ours are not those of the print, or not all of them, so that an interval says how far
the number hangs on which they are. It is a bootstrap's over data sets, 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import Field, NonNegativeFloat, PositiveFloat, model_validator

from svgpbench.metrics import loss
from svgpbench.papers.differences import TooFewError, sampled, says
from svgpbench.papers.measures import MEASURES, MeasureName
from svgpbench.papers.predicate import Predicate, better_over_data_sets
from svgpbench.papers.ranks import FEWEST, LEVEL, RESAMPLES
from svgpbench.papers.verdict import Effect, Finding, Outcome, Verdict

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
        means = _means(frame, self.metric, self.compared)
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
    """The statistic agrees with a printed one.

    As `number`: undecided where our interval is wider than `gap`, the difference that the authors rest on;
    reproduced where the print lies in the interval widened by the printed spread and the measure's region.
    """

    predicate: Literal["average"]
    printed: float
    spread: NonNegativeFloat = 0.0
    gap: PositiveFloat

    def judge(self, frame: pd.DataFrame) -> Finding:
        values, resampled, why = self.drawn(frame)
        name = f"{self.statistic} over data sets"
        if why:
            return Finding(Verdict.undecided, (Effect(name, "", note=why),))
        low, high = _interval(resampled[self.method])
        slack = self.spread
        if self.statistic != "rank":
            slack += MEASURES[self.metric].region_at(self.printed, float(frame["n_train"].mean()))
        verdict, outcome = Verdict.not_reproduced, "not as printed"
        if high - low > self.gap:
            verdict, outcome = Verdict.undecided, "too wide"
        elif low - slack <= self.printed <= high + slack:
            verdict, outcome = Verdict.reproduced, "as printed"
        sets = frame["data"].nunique()
        note = f"printed {self.printed:g}; bootstrap over {sets} data sets"
        return Finding(
            verdict, (Effect(name, outcome, float(values[self.method]), low, high, note),)
        )


class Leads(OverSets):
    """A method has the best statistic of a field: that of every other is worse in 95 % of resamples.

    Not reproduced where that of another is better in as many; else undecided.
    """

    predicate: Literal["leads"]
    field: Annotated[tuple[str, ...], Field(min_length=2)]

    @model_validator(mode="after")
    def _is_in_its_field(self) -> Leads:
        if self.method not in self.field:
            raise ValueError(f"method {self.method!r} is not in its field; name it there")
        return self

    def judge(self, frame: pd.DataFrame) -> Finding:
        values, resampled, why = self.drawn(frame)
        if why:
            return Finding(Verdict.undecided, (Effect(self.method, Outcome.undecided, note=why),))
        better = "lower" if self.statistic == "rank" else MEASURES[self.metric].better
        losses = resampled.map(lambda x: loss(x, better))
        lost = values.map(lambda x: loss(x, better))
        effects = tuple(
            self._against(other, values, lost, losses)
            for other in self.field
            if other != self.method
        )
        outcomes = {effect.outcome for effect in effects}
        verdict = Verdict.undecided
        if outcomes == {Outcome.better}:
            verdict = Verdict.reproduced
        elif Outcome.worse in outcomes:
            verdict = Verdict.not_reproduced
        return Finding(verdict, effects)

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
        return Effect(f"against {other}", says(low, high, 0.0), gain, low, high, note)


class Spread(Predicate):
    """A measure of the first method differs less among data sets, such as outputs, than every other's.

    The unit is the split: of each, the logarithm of the ratio of standard deviations over data sets; rule 5
    with the other methods as data sets.
    """

    predicate: Literal["spread"]
    metric: MeasureName
    methods: Annotated[tuple[str, ...], Field(min_length=2)]  # that of the least spread first

    @property
    def compared(self) -> tuple[str, ...]:
        return self.methods

    def judge(self, frame: pd.DataFrame) -> Finding:
        plain = frame[frame["perturbation"] == 0]
        effects = tuple(self._against(plain, other) for other in self.methods[1:])
        return Finding(better_over_data_sets([effect.outcome for effect in effects]), effects)

    def _against(self, plain: pd.DataFrame, other: str) -> Effect:
        pair = plain[plain["method"].isin([self.methods[0], other])]
        of = f"against {other}"
        if failed := int(((pair["status"] != "ok") | pair[self.metric].isna()).sum()):
            return Effect(of, Outcome.undecided, note=f"{failed} of {len(pair)} cells failed")
        keys = ["method", "split_seed", "fold", "seed"]
        deviations = pair.groupby(keys)[self.metric].std(ddof=1).unstack("method")
        ratios = (deviations[other] / deviations[self.methods[0]]).map(math.log)
        overlap = float((pair["n_test"] / pair["n_train"]).mean())
        try:
            sample = sampled(ratios, overlap, MEASURES[self.metric].rows)
        except TooFewError as error:
            return Effect(of, Outcome.undecided, math.exp(float(ratios.mean())), note=str(error))
        low, high = sample.interval
        outcome = says(low, high, math.log(SPREAD_REGION))
        mean, least, most = (math.exp(x) for x in (sample.mean, low, high))
        return Effect(of, outcome, mean, least, most, "ratio of standard deviations over data sets")


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
