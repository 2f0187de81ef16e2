"""Paired differences of two methods on a data set, with intervals and outcomes.

A frame has one row for each cell of one backend. Its columns are `data`, `method`, `split_seed`, `fold`,
`seed`, `perturbation`, `status`, `n_train`, `n_test`, `n_bound` (the rows that the bound covers) and one
column for each measure. `unrecorded` has the names of the measures that a record lacks. A frame of records
also has, for each measure, its columns at the end of runs (`results.last_quarter`), the `fall` of the bound
there, and `constant_error`, the error rate of the most frequent class.
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
    Judge,
    Sample,
    TooFewError,
    interval_outcome,
    non_inferiority_outcome,
    of_units,
    superiority_outcome,
    units_that_decide,
    would_decide,
)
from svgpbench.stats.effects import Effect, Outcome, in_regions
from svgpbench.stats.measures import MEASURES, Measure, ShareOfGain
from svgpbench.stats.rules import MOMENT_SEPARATOR, RULES, Rules

CHAOTIC = "chaotic: rounding moves the difference by more than itself"
CHAOTIC_TO_THE_REGION = "chaotic: rounding moves the difference out of the region"
NOT_TRACED = "its change over the last quarter is not recorded"
UNLEARNED: Final = 0.95
"""A method has learned nothing if its error is at least this share of the error of a constant."""

SHARES = ("nmae", "nmse")
"""Measures that are relative to the error of the targets' mean."""

READ: Final = {
    *("data", "method", *REPLICATE, "perturbation", "status", "unrecorded"),
    *("n_train", "n_test", "n_bound", "fall", *SHARES, "error_rate", "constant_error"),
}
"""Columns of a frame that a comparison reads beside those of its measure."""

FAVOURED: Final = {
    Outcome.better: 0,
    Outcome.no_worse: 0,
    Outcome.worse: 1,
    Outcome.no_better: 1,
}
"""Position of the method that an outcome favours."""

Replicate: TypeAlias = tuple[int, int, int]
"""Split seed, fold and seed of a cell."""


class PairedRuns:
    """The cells of one data set and one measure, arranged once to compare any two methods.

    `smallest` is the smallest difference that matters, in the unit that data sets share, or a share of a
    method's gain; the default is the region of the measure.
    """

    def __init__(
        self,
        data: str,
        cells: pd.DataFrame,
        name: str,
        smallest: float | ShareOfGain | None = None,
    ) -> None:
        plain = cells[cells["perturbation"] == 0]
        means = plain.groupby("method")[column_of(plain, name, "end")].mean().to_dict()
        self.data, self._means = data, means
        self.measure = (
            smallest.applied_to(MEASURES[name], name, means.get(smallest.method, np.nan))
            if isinstance(smallest, ShareOfGain)
            else MEASURES[name].with_smallest(smallest)
        )
        replicas = cells[cells["perturbation"] > 0]
        end, before, median = (column_of(cells, name, key) for key in ("end", "before", "median"))
        self._plain = _WideFrame(plain, end, self.measure)
        # with the rows of the plain runs, from which they are subtracted
        self._before = _WideFrame(plain, before, self.measure, self._plain.replicates)
        self._median = _WideFrame(plain, median, self.measure, self._plain.replicates)
        self._replicas = {
            column: _WideFrame(replicas, column, self.measure, self._plain.replicates)
            for column in ((end, median) if len(replicas) else ())
        }
        self._end, self._middle = end, median
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
        by_method = plain.groupby("method")
        self._facts = facts.groupby(plain["method"]).sum().to_dict("index")
        self._falls = by_method["fall"].median().to_dict() if "fall" in plain else {}
        self._shares = shares_of_a_constant(plain)

    def effect(
        self, first: str, second: str, rules: Rules = RULES, judge: Judge = interval_outcome
    ) -> Effect:
        """Compare `first` with `second`; a positive difference is in favour of `first`.

        Args:
            first: the method that should be better.
            second: the other method.
            rules: the size of the region, whether a chaotic difference is undecided, and by how many times
                its change over the last quarter the interval is widened.
            judge: the question: whether they differ, `first` is better, or `first` is no worse.
        """
        if beforehand := self._without_statistics(first, second):
            return beforehand
        delta, paired = self._delta(first, second, rules)
        # equal in every run, such as no drop of the bound for either: there is nothing to test
        if judge is superiority_outcome and not delta[paired].any():
            return Effect(self.data, Outcome.same, 0.0, 0.0, 0.0)
        splits, starts = self._plain.units(delta, paired)
        mean, overlap = float(splits.mean()), self._mean_of("overlap", first, second)
        try:
            sample = of_units(splits, starts, overlap, self.measure.rows)
        except TooFewError as error:
            return Effect(self.data, Outcome.undecided, mean, note=str(error))
        region = self.region(first, second, rules)
        # what still moves could go on moving: the interval is widened by a multiple of the last change
        margin = rules.drift * abs(self._change(first, second)) if rules.drift else 0.0
        low, high = sample.interval[0] - margin, sample.interval[1] + margin
        outcome, note = _outcome_and_note(sample, margin, splits, self.measure, region, judge)
        to_region = judge is non_inferiority_outcome
        distance = region if to_region else 0.0
        if rules.chaos and self._is_chaotic(delta, first, second, distance, rules):
            outcome, note = Outcome.undecided, CHAOTIC_TO_THE_REGION if to_region else CHAOTIC
        if unstable := self._favours_unstable(outcome, first, second, rules):
            outcome, note = Outcome.undecided, unstable
        note = self._with_untrained(note, first, second)
        # effects of several measures share an axis in units of their regions
        common = in_regions(mean, low, high, region)
        return Effect(self.data, outcome, mean, low, high, note, in_regions=common)

    def every_run(
        self, first: str, second: str, rules: Rules = RULES, judge: Judge = interval_outcome
    ) -> Effect:
        """Compare as `effect` does, but without an interval: the outcome must hold in every run.

        The effect has the median, the least and the largest difference. One run is enough.
        """
        if beforehand := self._without_statistics(first, second):
            return beforehand
        delta, paired = self._delta(first, second, rules)
        delta = delta[paired]
        if judge is superiority_outcome and not delta.any():
            return Effect(self.data, Outcome.same, 0.0, 0.0, 0.0)
        middle, low, high = float(np.median(delta)), float(delta.min()), float(delta.max())
        if rules.drift:
            moved = np.abs(self._plain.delta(first, second) - self._before.delta(first, second))
            # each run by its own change: without an interval there is no mean to widen
            margins = rules.drift * moved[paired]
            low, high = float((delta - margins).min()), float((delta + margins).max())
        region = self.region(first, second, rules)
        outcome, note = judge(low, high, region), ""
        if np.isnan(low):
            outcome, note = Outcome.undecided, NOT_TRACED
        elif unstable := self._favours_unstable(outcome, first, second, rules):
            outcome, note = Outcome.undecided, unstable
        note = note or "median, least, most of the runs"
        common = in_regions(middle, low, high, region)
        return Effect(self.data, outcome, middle, low, high, note, in_regions=common)

    def has(self, *methods: str) -> bool:
        """Return True if every given method has cells."""
        return self._plain.has(*methods)

    def region(self, first: str, second: str, rules: Rules = RULES) -> float:
        """Return half the width of the region of practical equivalence, in the unit of the measure."""
        rows = self._mean_of("n_bound", first, second)
        return rules.threshold * self.measure.region_at(float(self._means[second]), rows)

    def in_shared_unit(self, first: str, second: str, rules: Rules) -> tuple[float, float] | None:
        """Return the mean difference and its change over the last quarter, in the unit that sets share.

        None if it cannot be averaged over data sets: a method failed, did not train or has no pair.
        """
        if self._without_statistics(first, second) or self.untrained(first, second):
            return None
        delta, paired = self._delta(first, second, rules)
        unit = self.measure.unit_at(
            float(self._means[second]), self._mean_of("n_bound", first, second)
        )
        return float(delta[paired].mean()) / unit, self._change(first, second) / unit

    def lacks_interval(self, first: str, second: str) -> bool:
        """Return True if the methods have pairs, but too few splits and starts for an interval."""
        if self._without_statistics(first, second):
            return False
        delta = self._plain.delta(first, second)
        try:
            of_units(*self._plain.units(delta, ~np.isnan(delta)), 0.0, self.measure.rows)
        except TooFewError:
            return True
        return False

    def untrained(self, *methods: str) -> list[str]:
        """Return the methods that did not train, where another method of the data set did."""
        return [x for x in methods if self._shares.get(x, 0.0) >= UNLEARNED]

    def is_unstable(self, method: str, rules: Rules = RULES) -> bool:
        """Return True if the bound of the median run falls by more than its region in the last quarter."""
        # `NAME @ 500` is one look at a trace, which has no last quarter to fall in
        if MOMENT_SEPARATOR in method or method not in self._falls:
            return False
        rows = self._mean_of("n_bound", method)
        region = rules.threshold * MEASURES["elbo"].region_at(0.0, rows)
        return bool(self._falls[method] > region)

    def _delta(self, first: str, second: str, rules: Rules) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return the difference of each replicate, and where it is a number.

        Where a method is unstable, both have their medians over the last quarter.
        """
        # the last look at a bound that falls by more than matters is luck: medians are not
        unstable = self.is_unstable(first, rules) or self.is_unstable(second, rules)
        delta = (self._median if unstable else self._plain).delta(first, second)
        return delta, ~np.isnan(delta)

    def _change(self, first: str, second: str) -> float:
        """Return the change of the mean difference over the last quarter, NaN if it is not recorded."""
        changes = self._plain.delta(first, second) - self._before.delta(first, second)
        known = ~np.isnan(changes)
        return float(self._plain.units(changes, known)[0].mean()) if known.any() else np.nan

    def _favours_unstable(self, outcome: Outcome, first: str, second: str, rules: Rules) -> str:
        """Return a text if the question is whether a decision lasts, and it favours an unstable method."""
        if not rules.drift or outcome not in FAVOURED:
            return ""
        favoured = (first, second)[FAVOURED[outcome]]
        if not self.is_unstable(favoured, rules):
            return ""
        fall = self._falls[favoured]
        return (
            f"{favoured} is unstable at its rate: its bound fell by {fall:.3g} in the last quarter"
        )

    def _with_untrained(self, note: str, *methods: str) -> str:
        untrained = [f"{method} did not train" for method in self.untrained(*methods)]
        return "; ".join(filter(None, [note, *untrained]))

    def _mean_of(self, fact: str, *methods: str) -> float:
        """Return the mean of a fact over the cells of some methods."""
        facts = [self._facts[method] for method in methods]
        return float(sum(row[fact] for row in facts) / sum(row["cells"] for row in facts))

    def _without_statistics(self, first: str, second: str) -> Effect | None:
        """Return the outcome that needs no interval, or None if an interval is needed.

        It is `not learned` if no method learns the data set. Otherwise the method with fewer failed cells
        is better. It is undecided if both have as many failures, or no cells pair.
        """
        if self._shares and min(self._shares.values()) >= UNLEARNED:
            return Effect(self.data, Outcome.not_learned, note="no method learns this data set")
        first_failed, second_failed = (int(self._facts[x]["failed"]) for x in (first, second))
        # a mean over the cells that are left would flatter the method that lost the harder ones
        if first_failed or second_failed:
            note = f"failed cells: {first_failed} of {first}, {second_failed} of {second}"
            if first_failed == second_failed:
                return Effect(self.data, Outcome.undecided, note=note)
            outcome = Outcome.worse if first_failed > second_failed else Outcome.better
            return Effect(self.data, outcome, note=note)
        if np.isnan(self._plain.delta(first, second)).all():
            note = f"no pair of records has {self.measure.title}"
            return Effect(self.data, Outcome.undecided, note=note)
        return None

    def _is_chaotic(
        self, delta: Floats, first: str, second: str, region: float, rules: Rules
    ) -> bool:
        """Return True if rounding moves the mean difference by more than its distance from −region.

        Rounding is the perturbation of the inputs in replicas. Both means are over the cells that have a
        plain run and a replica.
        """
        unstable = self.is_unstable(first, rules) or self.is_unstable(second, rules)
        replicas = self._replicas.get(self._middle if unstable else self._end)
        if replicas is None or not replicas.has(first, second):
            return False
        perturbed = replicas.delta(first, second)
        # replicas exist for some cells only; the plain mean must be over the same ones
        shared = ~np.isnan(delta) & ~np.isnan(perturbed)
        if not shared.any():
            return False
        mean, perturbed_mean = (
            float(self._plain.units(x, shared)[0].mean()) for x in (delta, perturbed)
        )
        return abs(perturbed_mean - mean) > abs(mean + region)


def column_of(frame: pd.DataFrame, name: str, key: str) -> str:
    """Return the column with a measure's `end`, `before` or `median`; the measure's own if it has none."""
    column = f"{name}, {key}"
    return column if column in frame else name


def shares_of_a_constant(plain: pd.DataFrame) -> dict[str, float]:
    """Return each method's error on a data set as a share of that of the best constant prediction.

    It is the mean nMAE, the mean nMSE if that is not recorded, or the mean error rate over the error rate
    of the most frequent class. Empty if no record tells.
    """
    by_method = plain.groupby("method")
    for share in SHARES:
        if share in plain and plain[share].notna().any():
            return {str(key): float(x) for key, x in by_method[share].mean().dropna().items()}
    if "constant_error" in plain and plain["constant_error"].notna().any():
        shares = plain["error_rate"] / plain["constant_error"]
        means = shares.groupby(plain["method"]).mean().dropna()
        return {str(key): float(x) for key, x in means.items()}
    return {}


def is_learned(plain: pd.DataFrame) -> bool:
    """Return True if a method does better on the data set than a constant, or if no record tells."""
    shares = shares_of_a_constant(plain)
    return not shares or min(shares.values()) < UNLEARNED


class _WideFrame:
    """Losses of each replicate [rows] and method [columns], NaN where there is none.

    The rows are those of `replicates` if they are given.
    """

    def __init__(
        self,
        cells: pd.DataFrame,
        column: str,
        measure: Measure,
        replicates: Sequence[Replicate] | None = None,
    ) -> None:
        cell_replicates = list(zip(*(cells[key] for key in REPLICATE), strict=True))
        self.replicates = sorted(set(cell_replicates)) if replicates is None else replicates
        rows = {replicate: row for row, replicate in enumerate(self.replicates)}
        self._columns = {
            str(method): np.full(len(rows), np.nan) for method in cells["method"].unique()
        }
        losses = loss(cells[column].to_numpy(dtype=float), measure.better)
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


def _outcome_and_note(
    sample: Sample,
    margin: float,
    splits: Floats,
    measure: Measure,
    region: float,
    judge: Judge,
) -> tuple[Outcome, str]:
    """Return the outcome and a note on it.

    Args:
        sample: the units of the difference.
        margin: what each end of the interval is moved outwards.
        splits: the mean difference of each split, which must agree for a measure of the training rows.
        measure: the measure.
        region: half the width of the region of practical equivalence.
        judge: the question.
    """
    low, high = sample.interval[0] - margin, sample.interval[1] + margin
    if np.isnan(margin):
        return Outcome.undecided, NOT_TRACED
    outcome = judge(low, high, region)
    if outcome == Outcome.undecided:
        if margin and judge(*sample.interval, region) != Outcome.undecided:
            return outcome, "its change over the last quarter could carry it over"
        return outcome, would_decide(units_that_decide(sample, region, judge), sample.unit)
    # every split must lie on the decided side: of +region, of −region, or of 0
    least = region if outcome == Outcome.no_better else 0.0
    if judge is non_inferiority_outcome:
        least = -region
    agree = bool((splits > least).all() or (splits < least).all())
    # the units are starts, averaged over splits: the interval says nothing about other splits
    if measure.rows == "training" and outcome != Outcome.equal and not agree:
        return Outcome.undecided, "splits differ in sign"
    return outcome, "on this split" if len(splits) == 1 else ""
