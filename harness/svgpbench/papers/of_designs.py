"""Predicates of designed experiments: a pair in every run of a cell, a ladder of sizes, factors that decide.

A cell of a grid is a data set of rule 5. It may have one draw, and then there is no interval: a difference
counts where it lies on one side of its region in every run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import Field, model_validator
from scipy.special import stdtrit

from svgpbench.papers.differences import LEVEL
from svgpbench.papers.measures import MeasureName
from svgpbench.papers.of_times import REGION
from svgpbench.papers.pairs import compare, compare_runs
from svgpbench.papers.predicate import Predicate, over_data_sets
from svgpbench.papers.verdict import Effect, Finding, Outcome, Verdict

Floats = npt.NDArray[np.float64]
DRIVES, LEAVES = "drives", "leaves alone"
WANTED = {
    "better": ({Outcome.better}, {Outcome.worse}),
    "equal": ({Outcome.equal}, {Outcome.better, Outcome.worse}),
    "worse": ({Outcome.worse}, {Outcome.better}),
    "not worse": ({Outcome.better, Outcome.equal}, {Outcome.worse}),
}
"""Of every run: what holds, and what refutes wherever it is seen."""


class EveryRun(Predicate):
    """A number of the first method is better than the second's, equal or worse, in every run."""

    predicate: Literal["every-run"]
    metric: MeasureName
    methods: tuple[str, str]
    wanted: Literal["better", "equal", "worse", "not worse"] = "better"

    @property
    def compared(self) -> tuple[str, ...]:
        return self.methods

    def judge(self, frame: pd.DataFrame) -> Finding:
        effects = compare_runs(frame, self.metric, *self.methods)
        good, refuting = WANTED[self.wanted]
        outcomes = [effect.outcome for effect in effects]
        verdict = over_data_sets(
            [outcome in good for outcome in outcomes],
            [outcome not in {*good, Outcome.undecided} for outcome in outcomes],
            [outcome in refuting for outcome in outcomes],
        )
        return Finding(verdict, effects)


class Suffices(Predicate):
    """From some rung of a ladder on the first of each pair is better or equal, over data sets.

    On a data set it holds where the last rung does, and fails where the first is worse on that.
    """

    predicate: Literal["suffices"]
    metric: MeasureName
    ladder: Annotated[dict[str, tuple[str, str]], Field(min_length=2)]  # the smallest first

    @property
    def compared(self) -> tuple[str, ...]:
        return tuple(name for pair in self.ladder.values() for name in pair)

    def judge(self, frame: pd.DataFrame) -> Finding:
        effects = tuple(
            self._on_one(str(data), cells) for data, cells in frame.groupby("data", sort=False)
        )
        worse = [effect.outcome == Outcome.worse for effect in effects]
        holds = [effect.outcome == Outcome.equal for effect in effects]
        return Finding(over_data_sets(holds, worse, worse), effects)

    def _on_one(self, data: str, cells: pd.DataFrame) -> Effect:
        rungs = {rung: compare(cells, self.metric, *pair)[0] for rung, pair in self.ladder.items()}
        *_, last = rungs.values()
        good = {Outcome.better, Outcome.equal}
        if last.outcome not in good:
            note = f"at {list(rungs)[-1]}; {last.note}".removesuffix("; ")
            return Effect(data, last.outcome, last.value, last.low, last.high, note)
        enough = list(rungs)[-1]
        for rung, effect in reversed(rungs.items()):
            if effect.outcome not in good:
                break
            enough = rung
        at = rungs[enough]
        return Effect(data, Outcome.equal, at.value, at.low, at.high, f"from {enough} on")


class Drives(Predicate):
    """A factor of a grid moves the ratio of two methods' T, or with `drives = false` leaves it alone.

    log(T of the second / T of the first) is regressed on all `factors`, in tenfolds where they are positive,
    by least squares over the cells. The factor drives it where its 95 % interval lies outside ± log `ratio`,
    leaves it alone where it lies inside. A run that does not settle stands at its budget; cells where
    neither does, which tell nothing, are left out.
    """

    predicate: Literal["drives"]
    methods: tuple[str, str]
    factor: str
    factors: Annotated[tuple[str, ...], Field(min_length=1)]  # columns
    drives: bool = True

    @model_validator(mode="after")
    def _is_one_of_them(self) -> Drives:
        if self.factor not in self.factors:
            raise ValueError(f"factor {self.factor!r} is not among its factors; add it")
        return self

    @property
    def compared(self) -> tuple[str, ...]:
        return self.methods

    def judge(self, frame: pd.DataFrame) -> Finding:
        cells = pd.DataFrame(self._cells(frame[frame["perturbation"] == 0]))
        design = self._design(cells)
        spare = len(cells) - design.shape[1]
        if spare < 1 or np.linalg.matrix_rank(design) < design.shape[1]:
            note = f"{len(cells)} cells do not tell the factors apart"
            return Finding(Verdict.undecided, (Effect(self.factor, Outcome.undecided, note=note),))
        slope, half = self._slope(design, cells["ratio"].to_numpy(np.float64), spare)
        effect = self._says(slope, half, f"{len(cells)} cells, log ratio a tenfold or a step")
        if effect.outcome == Outcome.undecided:
            return Finding(Verdict.undecided, (effect,))
        held = (effect.outcome == DRIVES) == self.drives
        return Finding(Verdict.reproduced if held else Verdict.not_reproduced, (effect,))

    def _says(self, slope: float, half: float, note: str) -> Effect:
        low, high, region = slope - half, slope + half, math.log(REGION)
        outcome: str = Outcome.undecided
        if low > region or high < -region:
            outcome = DRIVES
        elif -region < low and high < region:
            outcome = LEAVES
        return Effect(self.factor, outcome, slope, low, high, note)

    def _cells(self, frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
        """The levels and the log ratio of each run in which one of the two settles."""
        for _, run in frame.groupby(["data", "split_seed", "fold", "seed"], sort=False):
            by_method = run.set_index("method")
            times = by_method["settled_at"].reindex(list(self.methods))
            if times.isna().any() or np.isinf(times).all():
                continue
            ended = np.minimum(times, by_method["iterations"].reindex(list(self.methods)))
            levels = {factor: float(run[factor].iloc[0]) for factor in self.factors}
            first, second = ended
            yield {**levels, "ratio": math.log(second / first)}

    def _design(self, cells: pd.DataFrame) -> Floats:
        """A column of ones and one a factor [cells, 1 + factors]."""
        columns = [np.ones(len(cells))]
        for factor in self.factors:
            levels = cells[factor].to_numpy(np.float64) if len(cells) else np.empty(0)
            columns.append(np.log10(levels) if np.all(levels > 0.0) else levels)
        return np.stack(columns, axis=1)

    def _slope(self, design: Floats, ratios: Floats, spare: int) -> tuple[float, float]:
        """The factor's coefficient and half its 95 % interval."""
        found, *_ = np.linalg.lstsq(design, ratios)
        variance = float(np.sum((ratios - design @ found) ** 2)) / spare
        at = 1 + self.factors.index(self.factor)
        error = math.sqrt(variance * np.linalg.inv(design.T @ design)[at, at])
        return float(found[at]), float(stdtrit(spare, 0.5 + LEVEL / 2)) * error
