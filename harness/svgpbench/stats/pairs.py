"""Paired differences of two methods on a data set, with intervals and outcomes.

A frame has one row for each cell of one backend. Its columns are `data`, `method`, `split_seed`, `fold`,
`seed`, `perturbation`, `status`, `n_train`, `n_test`, `n_bound` (the rows that the bound covers) and one
column for each measure. `unrecorded` has the names of the measures that a record lacks. If a claim asks for
converged runs, `bound_rise` and `bound_fall` have the change of the bound in the last quarter of a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from svgpbench.metrics import loss
from svgpbench.stats.differences import (
    REPLICATE,
    Floats,
    Sample,
    TooFewError,
    interval_outcome,
    non_inferiority_outcome,
    of_units,
    units_that_decide,
    would_decide,
)
from svgpbench.stats.effects import Effect, Outcome
from svgpbench.stats.measures import MEASURES, Measure
from svgpbench.stats.rules import MOMENT_SEPARATOR, RULES, Rules

CHAOTIC = "chaotic: rounding moves the difference by more than itself"
CHAOTIC_TO_THE_REGION = "chaotic: rounding moves the difference out of the region"
UNLEARNED: Final = 0.95
"""A method has learned nothing if its error is at least this share of the error of the targets' mean."""

SHARES = ("nmae", "nmse")
"""Measures that are relative to the error of the targets' mean."""

READ: Final = {
    *("data", "method", *REPLICATE, "perturbation", "status", "unrecorded"),
    *("n_train", "n_test", "n_bound", "bound_rise", "bound_fall", *SHARES),
}
"""Columns of a frame that a comparison reads beside that of its measure."""

Replicate: TypeAlias = tuple[int, int, int]
"""Split seed, fold and seed of a cell."""


class OneDataSet:
    """The cells of one data set and one measure, arranged once to compare any two methods."""

    def __init__(self, data: str, cells: pd.DataFrame, name: str) -> None:
        self.data, self.measure = data, MEASURES[name]
        plain = cells[cells["perturbation"] == 0]
        replicas = cells[cells["perturbation"] > 0]
        self._plain = _Wide(plain, name)
        self._replicas = _Wide(replicas, name, self._plain.replicates) if len(replicas) else None
        absent = plain[name].isna()
        if "unrecorded" in plain:  # a record that was made without the measure is no failure
            absent &= ~plain["unrecorded"].map(lambda names: name in names)
        bad = (plain["status"] != "ok") | absent
        facts = pd.DataFrame(
            {
                "cells": 1,
                "failed": bad.astype(int),
                "overlap": plain["n_test"] / plain["n_train"],
                "n_bound": plain["n_bound"],
            }
        )
        self._facts = facts.groupby(plain["method"]).sum().to_dict("index")
        self._means = plain.groupby("method")[name].mean().to_dict()
        self._learned = is_learned(plain)
        self._ends = plain

    def effect(
        self,
        first: str,
        second: str,
        rules: Rules = RULES,
        *,
        no_worse: bool = False,
        converged: bool = False,
    ) -> Effect:
        """Compare `first` with `second`; a positive difference is in favour of `first`.

        Args:
            first: the method that should be better.
            second: the other method.
            rules: the size of the region, and whether a chaotic difference is undecided.
            no_worse: test non-inferiority: the interval must lie above −region.
            converged: return undecided if a bound still rises or falls back at the end of a run.
        """
        if beforehand := self._beforehand(first, second, rules, converged):
            return beforehand
        delta = self._plain.delta(first, second)
        paired = ~np.isnan(delta)
        splits, starts = self._plain.units(delta, paired)
        mean, overlap = float(splits.mean()), self._mean_of("overlap", first, second)
        try:
            sample = of_units(splits, starts, overlap, self.measure.rows)
        except TooFewError as error:
            return Effect(self.data, Outcome.undecided, mean, note=str(error))
        low, high = sample.interval
        region = self.region(first, second, rules)
        outcome, note = _outcome_and_note(sample, splits, self.measure, region, no_worse)
        if rules.chaos and self._is_chaotic(delta, first, second, region if no_worse else 0.0):
            outcome, note = Outcome.undecided, CHAOTIC_TO_THE_REGION if no_worse else CHAOTIC
        return Effect(self.data, outcome, mean, low, high, note)

    def every_run(
        self,
        first: str,
        second: str,
        rules: Rules = RULES,
        *,
        no_worse: bool = False,
        converged: bool = False,
    ) -> Effect:
        """Compare as `effect` does, but without an interval: the outcome must hold in every run.

        The effect has the median, the least and the largest difference. One run is enough.
        """
        if beforehand := self._beforehand(first, second, rules, converged):
            return beforehand
        delta = self._plain.delta(first, second)
        delta = delta[~np.isnan(delta)]
        low, high = float(delta.min()), float(delta.max())
        judge = non_inferiority_outcome if no_worse else interval_outcome
        outcome = judge(low, high, self.region(first, second, rules))
        note = "median, least, most of the runs"
        return Effect(self.data, outcome, float(np.median(delta)), low, high, note)

    def has(self, *methods: str) -> bool:
        """Return True if every given method has cells."""
        return self._plain.has(*methods)

    def region(self, first: str, second: str, rules: Rules = RULES) -> float:
        """Return half the width of the measure's region of practical equivalence."""
        rows = self._mean_of("n_bound", first, second)
        return rules.threshold * self.measure.region_at(float(self._means[second]), rows)

    def _mean_of(self, fact: str, *methods: str) -> float:
        """Return the mean of a fact over the cells of some methods."""
        facts = [self._facts[method] for method in methods]
        return float(sum(row[fact] for row in facts) / sum(row["cells"] for row in facts))

    def _beforehand(self, first: str, second: str, rules: Rules, converged: bool) -> Effect | None:
        """Return the outcome that needs no interval, or None if an interval is needed.

        It is `not learned` if no method learns the data set. Otherwise the method with fewer failed cells
        is better. It is undecided if both have as many failures, no cells pair or a run has not converged.
        """
        if not self._learned:
            return Effect(self.data, Outcome.not_learned, note="no method learns this data set")
        first_failed, second_failed = (int(self._facts[x]["failed"]) for x in (first, second))
        if first_failed or second_failed:
            note = f"failed cells: {first_failed} of {first}, {second_failed} of {second}"
            if first_failed == second_failed:
                return Effect(self.data, Outcome.undecided, note=note)
            outcome = Outcome.worse if first_failed > second_failed else Outcome.better
            return Effect(self.data, outcome, note=note)
        delta = self._plain.delta(first, second)
        if np.isnan(delta).all():
            note = f"no pair of records has {self.measure.title}"
            return Effect(self.data, Outcome.undecided, note=note)
        if converged and (note := unconverged(self._ends, (first, second), rules)):
            return Effect(self.data, Outcome.undecided, float(np.nanmean(delta)), note=note)
        return None

    def _is_chaotic(self, delta: Floats, first: str, second: str, region: float) -> bool:
        """Return True if rounding moves the mean difference by more than its distance from −region.

        Rounding is the perturbation of the inputs in replicas. Both means are over the cells that have a
        plain run and a replica.
        """
        if self._replicas is None or not self._replicas.has(first, second):
            return False
        perturbed = self._replicas.delta(first, second)
        shared = ~np.isnan(delta) & ~np.isnan(perturbed)
        if not shared.any():
            return False
        mean, perturbed_mean = (
            float(self._plain.units(x, shared)[0].mean()) for x in (delta, perturbed)
        )
        return abs(perturbed_mean - mean) > abs(mean + region)


def unconverged(cells: pd.DataFrame, methods: Sequence[str], rules: Rules = RULES) -> str:
    """Return a text on the first method that has not converged or is unstable, or an empty text.

    All conditions are on the last quarter of a run. A method has not converged if the median rise of its
    bound over cells exceeds the region. It is unstable at its rate if the bound of any cell falls by more
    than the region below an earlier value. It is not known to have converged if the bound of a cell lacks
    two finite values. A method cut off at an earlier moment, which its name tells, is not checked.
    """
    for method in methods:
        runs = cells[(cells["method"] == method) & (cells["perturbation"] == 0)]
        if MOMENT_SEPARATOR in method or "bound_rise" not in runs:
            continue
        region = rules.threshold * MEASURES["elbo"].region_at(0.0, float(runs["n_bound"].mean()))
        rise = float(runs["bound_rise"].median(skipna=False))
        fall = float(runs["bound_fall"].max())
        if np.isnan(rise):
            why = "its bound lacks two finite values in the last quarter"
            return f"{method} is not known to have converged: {why}"
        if rise > region:
            return f"{method} has not converged: its bound rose by {rise:.3g} in the last quarter"
        if fall > region:
            return f"{method} is unstable at its rate: its bound fell by {fall:.3g} in the last quarter"
    return ""


def is_learned(plain: pd.DataFrame) -> bool:
    """Return True if a method beats the mean of the targets on the data set, or if no record tells.

    The best mean of `nmae`, or of `nmse` if that is not recorded, must be below `UNLEARNED`.
    """
    for share in SHARES:
        if share in plain and plain[share].notna().any():
            return bool(plain.groupby("method")[share].mean().min() < UNLEARNED)
    return True


class _Wide:
    """Losses of each replicate [rows] and method [columns], NaN where there is none.

    The rows are those of `replicates` if they are given.
    """

    def __init__(
        self, cells: pd.DataFrame, name: str, replicates: Sequence[Replicate] | None = None
    ) -> None:
        cell_replicates = list(zip(*(cells[key] for key in REPLICATE), strict=True))
        self.replicates = sorted(set(cell_replicates)) if replicates is None else replicates
        rows = {replicate: row for row, replicate in enumerate(self.replicates)}
        self._columns = {
            str(method): np.full(len(rows), np.nan) for method in cells["method"].unique()
        }
        losses = loss(cells[name].to_numpy(dtype=float), MEASURES[name].better)
        for method, replicate, value in zip(cells["method"], cell_replicates, losses, strict=True):
            if replicate in rows:
                self._columns[method][rows[replicate]] = value
        self._split = _numbered([(split_seed, fold) for split_seed, fold, _ in self.replicates])
        self._start = _numbered([seed for *_, seed in self.replicates])

    def has(self, *methods: str) -> bool:
        """Return True if every given method has a column."""
        return all(method in self._columns for method in methods)

    def delta(self, first: str, second: str) -> Floats:
        """Return the difference of each replicate, positive in favour of `first`."""
        return np.asarray(self._columns[second] - self._columns[first])

    def units(self, values: Floats, mask: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """Return the means of the masked values over each split, and over each start."""
        return _means(values[mask], self._split[mask]), _means(values[mask], self._start[mask])


def _numbered(labels: Sequence[Any]) -> npt.NDArray[np.int64]:
    """Return the position of each label among the sorted distinct labels."""
    positions = {label: index for index, label in enumerate(sorted(set(labels)))}
    return np.array([positions[label] for label in labels], dtype=np.int64)


def _means(values: Floats, groups: npt.NDArray[np.integer[Any]]) -> Floats:
    """Return the mean of each group that has a value, in the order of groups."""
    counts = np.bincount(groups)
    return np.asarray(np.bincount(groups, weights=values)[counts > 0] / counts[counts > 0])


def compare(
    frame: pd.DataFrame,
    measure: str,
    first: str,
    second: str,
    rules: Rules = RULES,
    *,
    no_worse: bool = False,
    converged: bool = False,
    every_run: bool = False,
) -> tuple[Effect, ...]:
    """Compare `first` with `second` on every data set, by `OneDataSet.effect` or `OneDataSet.every_run`."""
    effect = OneDataSet.every_run if every_run else OneDataSet.effect
    return tuple(
        effect(data_set, first, second, rules, no_worse=no_worse, converged=converged)
        for data_set in data_sets(frame, measure)
    )


def data_sets(frame: pd.DataFrame, measure: str) -> list[OneDataSet]:
    """Return one `OneDataSet` for each data set of a frame, in their order."""
    narrow = frame[[name for name in frame if name in READ or name == measure]]
    return [
        OneDataSet(str(data), cells, measure) for data, cells in narrow.groupby("data", sort=False)
    ]


def _outcome_and_note(
    sample: Sample, splits: Floats, measure: Measure, region: float, no_worse: bool
) -> tuple[Outcome, str]:
    """Return the outcome and a note on it; `splits` has the mean difference of each split."""
    judge = non_inferiority_outcome if no_worse else interval_outcome
    outcome = judge(*sample.interval, region)
    if outcome == Outcome.undecided:
        return outcome, would_decide(units_that_decide(sample, region, judge), sample.unit)
    least = -region if no_worse else 0.0
    agree = bool((splits > least).all() or (splits < least).all())
    if measure.rows == "training" and outcome != Outcome.equal and not agree:
        return Outcome.undecided, "splits differ in sign"
    return outcome, "on this split" if len(splits) == 1 else ""
