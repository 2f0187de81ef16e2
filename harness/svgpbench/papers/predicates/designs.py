"""Predicates of designed experiments: comparison in every run, ladder of sizes, effect of a factor.

A cell of a grid counts as a data set. It may have one draw and then no interval. `EveryRun` therefore asks
where the difference lies against its region in every run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import Field, model_validator
from scipy.special import betaincinv, stdtrit

from svgpbench.metrics import loss
from svgpbench.papers.grades import Grade, Judgement, combined_cases
from svgpbench.papers.predicates.predicate import AtTheEnd, Predicate, judge_cases, supports
from svgpbench.papers.predicates.times import REGION
from svgpbench.papers.predicates.traces import RUN, AtTolerances, convergence_times
from svgpbench.stats.designs import Design
from svgpbench.stats.differences import (
    LEVEL,
    Judge,
    interval_outcome,
    non_inferiority_outcome,
    superiority_outcome,
)
from svgpbench.stats.effects import Effect, Outcome
from svgpbench.stats.measures import MEASURES, MeasureName
from svgpbench.stats.over_sets import data_sets
from svgpbench.stats.pairs import PairedRuns, column_of, is_learned
from svgpbench.stats.rules import RULES, Rules

Floats = npt.NDArray[np.float64]
DRIVES, LEAVES = "drives", "leaves alone"
QUESTIONS: Mapping[str, Judge] = {
    "better": superiority_outcome,
    "equal": interval_outcome,
    "worse": interval_outcome,
    "no worse": non_inferiority_outcome,
}
"""For each `wanted`: the question that a comparison answers."""

DECIDING_OUTCOMES = {
    "better": ({Outcome.better}, {Outcome.worse}),
    "equal": ({Outcome.equal}, {Outcome.better, Outcome.worse}),
    "worse": ({Outcome.worse}, {Outcome.better}),
    "no worse": ({Outcome.no_worse}, {Outcome.worse}),
}
"""For each `wanted`: outcomes that hold, and outcomes that refute if they occur on any data set."""

FEWEST_RUNS = 6
"""The fewest runs in which a share of 1 has a 95 % interval above one half: 2.5 % ** (1 / 6) > .5."""


class EveryRun(AtTheEnd):
    """A relation in every run: the first method's measure is better, equal, worse or no worse."""

    predicate: Literal["every-run"]
    methods: tuple[str, str]
    wanted: Literal["better", "equal", "worse", "no worse"] = "better"

    @property
    def compared(self) -> tuple[str, ...]:
        return self.methods

    def judge(self, frame: pd.DataFrame, rules: Rules = RULES) -> Judgement:
        comparisons = [
            case.every_run(*self.methods, rules, QUESTIONS[self.wanted])
            for case in data_sets(frame, self.metric, self.smallest_effect)
        ]
        good, refuting = DECIDING_OUTCOMES[self.wanted]
        effects = tuple(replace(x, held=supports(x.outcome, good)) for x in comparisons)
        worst = [effect.outcome in refuting for effect in effects]
        return Judgement(combined_cases(effects, worst), effects)

    def shown_by(self, effects: Iterable[Effect], lasting: Iterable[Effect] = ()) -> str:
        return ""  # from the least to the largest difference is no interval


class MoreOften(Predicate):
    """A direction without a size: of the runs in which two methods differ, the first is more often better.

    The share of these runs has an exact 95 % interval of the binomial distribution. The part is `direction
    only` if it lies above one half, fails if it lies below, and is open otherwise.
    """

    predicate: Literal["more-often"]
    metric: MeasureName
    methods: tuple[str, str]

    @property
    def compared(self) -> tuple[str, ...]:
        return self.methods

    def lacks(self, design: Design) -> str:
        return "" if design.runs >= FEWEST_RUNS else f"{FEWEST_RUNS} runs of each method"

    def judge(self, frame: pd.DataFrame, rules: Rules = RULES) -> Judgement:
        plain = frame[frame["perturbation"] == 0].groupby("data").filter(is_learned)
        plain = plain[plain["status"] == "ok"]
        end = column_of(plain, self.metric, "end")
        losses = loss(plain[end].astype(float), MEASURES[self.metric].better)
        wide = losses.set_axis(pd.MultiIndex.from_frame(plain[[*RUN, "method"]])).unstack("method")
        # a method has no column if all its runs failed
        first, second = (wide.get(name, math.nan) for name in self.methods)
        gains = pd.Series(second - first, wide.index).dropna()
        # runs without a difference drop out, as in a sign test: they favour neither
        won, lost = int((gains > 0).sum()), int((gains < 0).sum())
        if not won + lost:
            effect = Effect("all runs", Outcome.undecided, note="no two runs differ")
            return Judgement(Grade.open, (effect,))
        tail = (1 - LEVEL) / 2
        # a binomial tail is an incomplete beta function of the share (Clopper and Pearson 1934)
        low = float(betaincinv(won, lost + 1, tail)) if won else 0.0
        high = float(betaincinv(won + 1, lost, 1 - tail)) if lost else 1.0
        grade, outcome = Grade.open, Outcome.undecided
        if low > 0.5:
            grade, outcome = Grade.direction, Outcome.better
        elif high < 0.5:
            grade, outcome = Grade.fails, Outcome.worse
        note = f"better in {won} runs, worse in {lost}, the same in {len(gains) - won - lost}"
        held = {Grade.direction: True, Grade.fails: False}.get(grade)
        effect = Effect("all runs", outcome, won / (won + lost), low, high, note, held)
        return Judgement(grade, (effect,))


class Suffices(AtTheEnd):
    """A sufficient size: from some rung of a ladder on, the first method is no worse (non-inferior).

    A data set supports the claim if its last rung is no worse. It contradicts the claim if the first method
    is worse at the last rung.
    """

    predicate: Literal["suffices"]
    ladder: Annotated[dict[str, tuple[str, str]], Field(min_length=2)]  # smallest rung first

    @property
    def compared(self) -> tuple[str, ...]:
        return tuple(name for pair in self.ladder.values() for name in pair)

    def lacks(self, design: Design) -> str:
        return design.lacks_interval(self.metric)

    def judge(self, frame: pd.DataFrame, rules: Rules = RULES) -> Judgement:
        return judge_cases(
            self._on_data_set(str(data), cells, rules)
            for data, cells in frame.groupby("data", sort=False)
        )

    def _on_data_set(self, data: str, cells: pd.DataFrame, rules: Rules) -> Effect:
        case = PairedRuns(data, cells, self.metric, self.smallest_effect)
        rungs = {
            rung: case.effect(*pair, rules, non_inferiority_outcome)
            for rung, pair in self.ladder.items()
        }
        *_, last = rungs.values()
        if last.outcome != Outcome.no_worse:
            note = f"at {list(rungs)[-1]}; {last.note}".removesuffix("; ")
            supports = False if last.outcome == Outcome.worse else None
            return replace(last, of=data, note=note, held=supports)
        enough = list(rungs)[-1]
        # from above: a rung counts only if every larger one is no worse too
        for rung, effect in reversed(rungs.items()):
            if effect.outcome != Outcome.no_worse:
                break
            enough = rung
        return replace(rungs[enough], of=data, note=f"from {enough} on", held=True)


class Drives(AtTolerances):
    """The effect of a grid's factor on the ratio of two methods' T; with `drives = false`, no effect.

    T is the convergence time in iterations. log(T of the second / T of the first) is regressed on all
    `factors` by least squares over the runs. Factors enter as log10 if all their levels are positive. The
    factor drives the ratio if its 95 % interval lies outside ± log `REGION`, and leaves it alone if inside.
    T of a run that does not converge is its budget. Runs where neither method converges are left out.
    """

    predicate: Literal["drives"]
    methods: tuple[str, str]
    factor: str
    factors: Annotated[tuple[str, ...], Field(min_length=1)]  # columns of the frame
    drives: bool = True

    @model_validator(mode="after")
    def _is_one_of_them(self) -> Drives:
        if self.factor not in self.factors:
            raise ValueError(f"factor {self.factor!r} is not among its factors; add it")
        return self

    @property
    def compared(self) -> tuple[str, ...]:
        return self.methods

    @property
    def columns(self) -> tuple[str, ...]:
        return self.factors

    def lacks(self, design: Design) -> str:
        enough = len(self.factors) + 2  # the constant, and one run to estimate the variance
        return "" if design.runs >= enough else f"{enough} runs of each method"

    def judge_at(self, frame: pd.DataFrame, tolerance: float, rules: Rules) -> Judgement | None:
        cells = self._cells(frame, tolerance, rules)
        if cells.empty:
            return None
        columns = [np.ones(len(cells))]
        for factor in self.factors:
            levels = cells[factor].to_numpy(np.float64)
            columns.append(np.log10(levels) if np.all(levels > 0.0) else levels)
        design: Floats = np.stack(columns, axis=1)
        # without a spare run the fit is exact, and its variance would divide by 0
        spare = len(cells) - design.shape[1]
        if spare < 1 or np.linalg.matrix_rank(design) < design.shape[1]:
            note = f"{len(cells)} cells do not tell the factors apart"
            return Judgement(Grade.open, (Effect(self.factor, Outcome.undecided, note=note),))
        ratios = cells["ratio"].to_numpy(np.float64)
        coefficients, *_ = np.linalg.lstsq(design, ratios)
        variance = float(np.sum((ratios - design @ coefficients) ** 2)) / spare
        index = 1 + self.factors.index(self.factor)
        error = math.sqrt(variance * np.linalg.inv(design.T @ design)[index, index])
        slope, half = float(coefficients[index]), float(stdtrit(spare, 0.5 + LEVEL / 2)) * error
        low, high, region = slope - half, slope + half, rules.threshold * math.log(REGION)
        outcome: str = Outcome.undecided
        if low > region or high < -region:
            outcome = DRIVES
        elif -region < low and high < region:
            outcome = LEAVES
        supports = None if outcome == Outcome.undecided else (outcome == DRIVES) == self.drives
        grade = {True: Grade.holds, False: Grade.fails, None: Grade.open}[supports]
        note = f"{len(cells)} cells, log ratio a tenfold or a step"
        return Judgement(grade, (Effect(self.factor, outcome, slope, low, high, note, supports),))

    def _cells(self, frame: pd.DataFrame, tolerance: float, rules: Rules) -> pd.DataFrame:
        """Return factors and log ratio of the runs in which a method converges and none fails."""
        times = convergence_times(frame, self.methods, tolerance, rules)
        cells = frame[frame["method"].isin(self.methods)].set_index([*RUN, "method"])
        budgets = cells["iterations"].unstack().reindex(times.index)[list(self.methods)]
        levels = cells.groupby(level=RUN)[list(self.factors)].first().reindex(times.index)
        first, second = np.minimum(times.to_numpy(), budgets.to_numpy()).T
        failed, censored = np.isnan(times.to_numpy()), np.isinf(times.to_numpy())
        # where both are censored the ratio is that of the budgets, not of the methods
        informative = ~failed.any(axis=1) & ~censored.all(axis=1)
        runs: pd.DataFrame = levels.assign(ratio=np.log(second / first)).loc[informative]
        return runs
