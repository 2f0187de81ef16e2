"""Predicates on traces: when a bound converges, which method converges sooner, and how θ moves afterwards.

Convergence has three tolerances. A claim is graded at each, and the grades are combined. A run that has not
converged at the end of its budget is censored: it is slower than any run that has. A tolerance at which all
runs are censored does not count.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import PositiveFloat

from svgpbench.papers.grades import Grade, Judgement, combined, combined_cases
from svgpbench.papers.predicates.predicate import Predicate, supports
from svgpbench.papers.predicates.times import log_of
from svgpbench.stats.convergence import BoundTrace
from svgpbench.stats.differences import (
    REPLICATE,
    TooFewError,
    interval_outcome,
    sampled,
    superiority_outcome,
)
from svgpbench.stats.effects import Effect, Outcome, in_regions
from svgpbench.stats.measures import MeasureName
from svgpbench.stats.pairs import column_of
from svgpbench.stats.rules import RULES, Rules

INSIDE, SOME, OUTSIDE = "inside", "some inside", "outside"
TURNS = "turns with the tolerance"
RUN = ["data", *REPLICATE]
"""Columns that identify a run of each method."""

BUDGET = " budget"
"""Suffix of the columns with the last iteration of runs."""

REGION = 1.1
"""Ratio within which convergence times count as equal."""


class Within(Predicate):
    """A range for the numbers of one method: every cell lies between `at_least` and `at_most`.

    The part is mixed if only some cells do, and open if a cell failed or has no number.
    """

    predicate: Literal["within"]
    metric: MeasureName
    method: str
    at_least: float = -math.inf
    at_most: float = math.inf

    @property
    def compared(self) -> tuple[str, ...]:
        return (self.method,)

    def judge(self, frame: pd.DataFrame, rules: Rules = RULES) -> Judgement:
        cells = frame[(frame["method"] == self.method) & (frame["perturbation"] == 0)]
        # a failed run has numbers of its trace too, up to its failure
        values = cells[column_of(cells, self.metric, "end")].where(cells["status"] == "ok")
        by_data = values.groupby(cells["data"], sort=False)
        return _judge_range(by_data, self.at_least, self.at_most)


def _judge_range(
    by_data: Iterable[tuple[Any, pd.Series[float]]], at_least: float, at_most: float
) -> Judgement:
    """Grade by data sets: all must be inside; mixed if some runs are; open if one is undecided."""
    effects = []
    for data, values in by_data:
        if failed := int(values.isna().sum()):
            note = f"{failed} of {len(values)} cells have no number"
            effects.append(Effect(str(data), Outcome.undecided, note=note))
            continue
        inside = values.between(at_least, at_most)
        outcome = INSIDE if inside.all() else SOME if inside.any() else OUTSIDE
        note = f"{int(inside.sum())} of {len(values)} runs; median, least, most"
        held = {INSIDE: True, OUTSIDE: False}.get(outcome)
        middle = float(np.quantile(values, 0.5, method="lower"))  # an infinite time has no mean
        least, most = float(values.min()), float(values.max())
        effects.append(Effect(str(data), outcome, middle, least, most, note, held))
    outcomes = {effect.outcome for effect in effects}
    grade = Grade.holds if outcomes == {INSIDE} else Grade.fails
    if not outcomes or Outcome.undecided in outcomes:
        grade = Grade.open
    elif len(outcomes) > 1 or outcomes == {SOME}:
        grade = Grade.mixed
    return Judgement(grade, tuple(effects))


class AtTolerances(Predicate):
    """A part graded at each tolerance of convergence; mixed if it holds at one and fails at another."""

    @abstractmethod
    def judge_at(self, frame: pd.DataFrame, tolerance: float, rules: Rules) -> Judgement | None:
        """Grade the part at one tolerance; None if all runs are censored there."""

    def judge(self, frame: pd.DataFrame, rules: Rules = RULES) -> Judgement:
        plain = frame[frame["perturbation"] == 0]
        judgements = {x: self.judge_at(plain, x, rules) for x in rules.tolerances}
        uncensored = {x: judgement for x, judgement in judgements.items() if judgement is not None}
        groups: dict[str, list[str]] = {}
        for tolerance, judgement in judgements.items():
            key = judgement.grade if judgement else "censored"
            groups.setdefault(key, []).append(f"{100 * tolerance:g} %")
        # such as `holds at 5 % and 1 %, censored at 0.1 %`
        note = ", ".join(f"{key} at {' and '.join(group)}" for key, group in groups.items())
        if not uncensored:
            effect = Effect("every data set", Outcome.undecided, note="all runs are censored")
            return Judgement(Grade.open, (effect,), note=note)
        grade = combined(judgement.grade for judgement in uncensored.values())
        effects_by_data: dict[str, dict[float, Effect]] = {}
        for tolerance, judgement in uncensored.items():
            for effect in judgement.effects:
                effects_by_data.setdefault(effect.of, {})[tolerance] = effect
        effects = tuple(map(_over_tolerances, effects_by_data.values()))
        agree = len({x and x.grade for x in judgements.values()}) == 1
        return Judgement(grade, effects, note="" if agree else note)


def _over_tolerances(effects: Mapping[float, Effect]) -> Effect:
    """Return one data set's effect at the middle uncensored tolerance.

    If its outcome changes with the tolerance, the note lists the outcomes.
    """
    middle = list(effects.values())[(len(effects) - 1) // 2]
    if len({effect.outcome for effect in effects.values()}) == 1:
        return middle
    note = ", ".join(f"{effect.outcome} at {100 * x:g} %" for x, effect in effects.items())
    return replace(middle, outcome=TURNS, note=note, held=None)


class Converges(AtTolerances):
    """A range for the iterations in which a method's bound converges, in every run.

    The range is `at_least` to `at_most` iterations. Convergence is relative to the way from a start to the
    best bound. The start is the largest first bound of the method and of those in `beside`.
    """

    predicate: Literal["converges"]
    method: str
    beside: tuple[str, ...] = ()
    at_least: float = 0.0
    at_most: float = math.inf

    @property
    def compared(self) -> tuple[str, ...]:
        return (self.method, *self.beside)

    def judge_at(self, frame: pd.DataFrame, tolerance: float, rules: Rules) -> Judgement:
        times = convergence_times(frame, self.compared, tolerance, rules)[self.method]
        least, most = self.at_least * rules.threshold, self.at_most * rules.threshold
        return _judge_range(times.groupby(level="data", sort=False), least, most)


class Sooner(AtTolerances):
    """Sooner convergence: T of the second method over T of the first exceeds `ratio`.

    T is the convergence time in iterations. The 95 % interval of the mean log ratio over starts decides;
    with fewer than five starts, or with `every_run`, every run must agree. The part is `direction only` if
    it would hold with `REGION` instead of a larger `ratio`. With `faster = false`, the two must be within
    the ratio of each other.
    """

    predicate: Literal["sooner"]
    methods: tuple[str, str]
    ratio: PositiveFloat = REGION
    faster: bool = True
    every_run: bool = False

    @property
    def compared(self) -> tuple[str, ...]:
        return self.methods

    def judge_at(self, frame: pd.DataFrame, tolerance: float, rules: Rules) -> Judgement | None:
        times = convergence_times(frame, self.methods, tolerance, rules)
        times = times.join(_budgets(frame, self.methods).add_suffix(BUDGET))
        claimed = self._graded(times, self.ratio**rules.threshold)
        if claimed is None or claimed.grade == Grade.holds or not self.faster:
            return claimed
        if self.ratio > REGION:
            sooner = self._graded(times, REGION**rules.threshold)
            if sooner is not None and sooner.grade == Grade.holds:
                return replace(claimed, grade=Grade.direction)
        return claimed

    def _graded(self, times: pd.DataFrame, ratio: float) -> Judgement | None:
        effects = [
            effect
            for data, of_data in times.groupby(level="data", sort=False)
            if (effect := self._on_data_set(str(data), of_data, ratio)) is not None
        ]
        if not effects:
            return None
        worst = [self.faster and effect.outcome == Outcome.worse for effect in effects]
        return Judgement(combined_cases(effects, worst), tuple(effects))

    def _on_data_set(self, data: str, times: pd.DataFrame, ratio: float) -> Effect | None:
        """Compare the two methods; None if both methods are censored in every run."""
        both = times[list(self.methods)]
        if failed := int(both.isna().any(axis=1).sum()):
            note = f"{failed} of {len(times)} pairs have a cell that failed"
            return Effect(data, Outcome.undecided, note=note)
        times = times.loc[~np.isinf(both.to_numpy()).all(axis=1)]
        if times.empty:
            return None
        first, second = (times[name] for name in self.methods)
        middle, low, high = self._ratio_and_ends(times)
        judge = superiority_outcome if self.faster else interval_outcome
        outcome = judge(log_of(low), log_of(high), math.log(ratio))
        good = {Outcome.better} if self.faster else {Outcome.equal}
        counts = f"sooner in {int((second > first).sum())} of {len(times)} runs"
        note = f"{counts}, later in {int((second < first).sum())}"
        common = in_regions(log_of(middle), log_of(low), log_of(high), math.log(REGION))
        held = supports(outcome, good)
        return Effect(data, outcome, middle, low, high, note, held, common)

    def _ratio_and_ends(self, times: pd.DataFrame) -> tuple[float, float, float]:
        """Return the mean ratio with its interval over starts, or the median, least and largest ratio.

        In a mean, T of a run that has not converged is its budget, which moves the ratio towards 1.
        """
        first, second = self.methods
        if not self.every_run:
            # of logarithms, so that twice as soon and twice as late average to no difference
            logs = self._log_time(times, second) - self._log_time(times, first)
            try:
                # T is of the bound, a training score: its units are starts, averaged over splits
                sample = sampled(logs, 0.0, "training")
            except TooFewError:
                pass
            else:
                low, high = (math.exp(x) for x in sample.interval)
                return math.exp(sample.mean), low, high
        ratios = times[second] / times[first]
        middle = float(np.quantile(ratios, 0.5, method="lower"))
        return middle, float(ratios.min()), float(ratios.max())

    @staticmethod
    def _log_time(times: pd.DataFrame, method: str) -> pd.Series[float]:
        """Return the logarithm of each run's T, or of its budget if it has not converged."""
        capped = times[[method, f"{method}{BUDGET}"]].min(axis="columns")
        return capped.map(math.log).droplevel("data")


def _budgets(frame: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """Return the last evaluated iteration of each run [runs, methods]; NaN if it has none."""
    cells = frame[frame["method"].isin(methods)]
    last = [
        trace.iterations[-1] if len(trace.iterations) else math.nan
        for trace in cells["bound_trace"]
    ]
    return cells.assign(last=last).set_index([*RUN, "method"])["last"].unstack("method")


class Drifts(AtTolerances):
    """A drift of θ: after the bound has converged, the largest range of log θ is at least `at_least`.

    θ is the variance, the mean lengthscale and the noise variance. Every run must drift.
    """

    predicate: Literal["drifts"]
    method: str
    beside: tuple[str, ...] = ()
    at_least: PositiveFloat

    @property
    def compared(self) -> tuple[str, ...]:
        return (self.method, *self.beside)

    def judge_at(self, frame: pd.DataFrame, tolerance: float, rules: Rules) -> Judgement:
        times = convergence_times(frame, self.compared, tolerance, rules)[self.method]
        thetas = frame[frame["method"] == self.method].set_index(RUN)["theta"].reindex(times.index)
        drifts = pd.Series(map(_range_after, thetas, times), times.index, dtype=float)
        by_data = drifts.groupby(level="data", sort=False)
        return _judge_range(by_data, self.at_least * rules.threshold, math.inf)


def _range_after(theta: pd.DataFrame, time: float) -> float:
    """Return the largest range over the columns of log θ from iteration `time` on; NaN if it has no rows."""
    after = theta[theta.index >= time]
    return float((after.max() - after.min()).max()) if len(after) else math.nan


def convergence_times(
    cells: pd.DataFrame, methods: Sequence[str], tolerance: float, rules: Rules = RULES
) -> pd.DataFrame:
    """Return T of each run [runs, methods], in iterations.

    T is NaN for a failed cell and infinite if censored. Runs are indexed by `RUN`, with the data sets in
    their order. `cells` has a `bound_trace` for each cell.
    """
    runs: dict[tuple[Any, ...], dict[str, tuple[BoundTrace, bool]]] = {}
    columns = (cells[key] for key in (*RUN, "method", "bound_trace", "status"))
    for *run, method, trace, status in zip(*columns, strict=True):
        if method in methods:
            runs.setdefault(tuple(run), {})[method] = trace, status == "ok"
    order = {data: index for index, data in enumerate(cells["data"].unique())}
    keys = sorted(runs, key=lambda key: (order[key[0]], key[1:]))
    times = []
    for key in keys:
        firsts = (trace.start for trace, _ in runs[key].values())
        starts = [start for start in firsts if not math.isnan(start)]
        # one start for all, the best: a method's own poor start would widen its tolerance
        start = (min if rules.lower_start else max)(starts, default=0.0)
        times.append(
            {
                method: trace.converges(start, tolerance) if ended else math.nan
                for method, (trace, ended) in runs[key].items()
            }
        )
    index = pd.MultiIndex.from_tuples(keys, names=RUN)
    return pd.DataFrame(times, index, columns=list(dict.fromkeys(methods)), dtype=float)
