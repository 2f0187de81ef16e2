"""Paired differences of two methods on a data set, with their intervals, and what these say.

A frame has a row a cell of one backend: `data`, `method`, `split_seed`, `fold`, `seed`, `perturbation`,
`status`, `n_train`, `n_test` and a column a measure; `unrecorded` has the names of those that a record lacks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from svgpbench.metrics import loss
from svgpbench.papers.differences import (
    REPLICATE,
    Floats,
    Sample,
    TooFewError,
    of_units,
    says,
    units_that_decide,
    would_decide,
)
from svgpbench.papers.measures import MEASURES, Measure
from svgpbench.papers.verdict import Effect, Outcome

CHAOTIC = "chaotic: rounding moves the difference by more than itself"


class OneDataSet:
    """The cells of one data set in a measure, arranged once for any two of their methods."""

    def __init__(self, data: str, cells: pd.DataFrame, name: str) -> None:
        self.data, self.measure = data, MEASURES[name]
        plain = cells[cells["perturbation"] == 0]
        replicas = cells[cells["perturbation"] > 0]
        self._plain = _Wide(plain, name)
        self._replicas = _Wide(replicas, name, self._plain.index) if len(replicas) else None
        bad = (plain["status"] != "ok") | (plain[name].isna() & ~_unrecorded(plain, name))
        facts = pd.DataFrame(
            {
                "cells": 1,
                "failed": bad.astype(int),
                "overlap": plain["n_test"] / plain["n_train"],
                "n_train": plain["n_train"],
            }
        )
        self._facts = facts.groupby(plain["method"]).sum().to_dict("index")
        self._means = plain.groupby("method")[name].mean().to_dict()

    def effect(self, first: str, second: str) -> Effect:
        """`first` against `second`; a positive difference is in favour of `first`."""
        if beforehand := self._beforehand(first, second):
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
        outcome, note = _settled(sample, splits, self.measure, self.region(first, second))
        if self._is_chaotic(delta, first, second):
            outcome, note = Outcome.undecided, CHAOTIC
        return Effect(self.data, outcome, mean, low, high, note)

    def every_run(self, first: str, second: str) -> Effect:
        """As `effect`, without an interval: what is said holds in every run, of one draw too."""
        if beforehand := self._beforehand(first, second):
            return beforehand
        delta = self._plain.delta(first, second)
        delta = delta[~np.isnan(delta)]
        low, high = float(delta.min()), float(delta.max())
        outcome = says(low, high, self.region(first, second))
        return Effect(self.data, outcome, float(np.median(delta)), low, high, "least, median, most")

    def has(self, *methods: str) -> bool:
        """Whether there are cells of all of them."""
        return self._plain.has(*methods)

    def region(self, first: str, second: str) -> float:
        """Half the width of the measure's region of practical equivalence."""
        n_train = self._mean_of("n_train", first, second)
        return self.measure.region_at(float(self._means[second]), n_train)

    def _mean_of(self, fact: str, *methods: str) -> float:
        """Of the cells of some methods."""
        facts = [self._facts[method] for method in methods]
        return float(sum(of[fact] for of in facts) / sum(of["cells"] for of in facts))

    def _beforehand(self, first: str, second: str) -> Effect | None:
        """The outcome where cells failed, whoever fails more often being worse, or where none are paired."""
        mine, other = (int(self._facts[method]["failed"]) for method in (first, second))
        if not mine and not other:
            if not np.isnan(self._plain.delta(first, second)).all():
                return None
            note = f"no pair of records has {self.measure.title}"
            return Effect(self.data, Outcome.undecided, note=note)
        note = f"failed cells: {mine} of {first}, {other} of {second}"
        if mine == other:
            return Effect(self.data, Outcome.undecided, note=note)
        outcome = Outcome.worse if mine > other else Outcome.better
        return Effect(self.data, outcome, note=note)

    def _is_chaotic(self, delta: Floats, first: str, second: str) -> bool:
        """Whether a perturbation of the inputs by rounding moves the mean by more than itself.

        The mean is that of the cells which ran perturbed, too.
        """
        if self._replicas is None or not self._replicas.has(first, second):
            return False
        perturbed = self._replicas.delta(first, second)
        shared = ~np.isnan(delta) & ~np.isnan(perturbed)
        mean, moved = (float(self._plain.units(x, shared)[0].mean()) for x in (delta, perturbed))
        return abs(moved - mean) > abs(mean)


class _Wide:
    """A row a replicate, or those of `index`; a column a method: losses, NaN where there is no number."""

    def __init__(self, cells: pd.DataFrame, name: str, index: pd.Index[Any] | None = None) -> None:
        better = MEASURES[name].better
        values = cells.assign(loss=cells[name].map(lambda value: loss(value, better)))
        wide = values.pivot(index=REPLICATE, columns="method", values="loss")
        wide = wide if index is None else wide.reindex(index)
        self.index = wide.index
        self._columns = {str(method): wide[method].to_numpy(dtype=float) for method in wide}
        self._split = wide.groupby(level=["split_seed", "fold"]).ngroup().to_numpy()
        self._start = wide.groupby(level="seed").ngroup().to_numpy()

    def has(self, *methods: str) -> bool:
        """Whether all of them are there."""
        return all(method in self._columns for method in methods)

    def delta(self, first: str, second: str) -> Floats:
        """Differences on the same split and seed, positive in favour of `first`."""
        return np.asarray(self._columns[second] - self._columns[first])

    def units(self, values: Floats, kept: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """The means of those kept over each split, and over each start."""
        return _means(values[kept], self._split[kept]), _means(values[kept], self._start[kept])


def _means(values: Floats, groups: npt.NDArray[np.integer[Any]]) -> Floats:
    """The mean of each group that has a value, in the order of groups."""
    counts = np.bincount(groups)
    return np.asarray(np.bincount(groups, weights=values)[counts > 0] / counts[counts > 0])


def compare(frame: pd.DataFrame, measure: str, first: str, second: str) -> tuple[Effect, ...]:
    """`first` against `second` on every data set; a positive difference is in favour of `first`."""
    return tuple(one.effect(first, second) for one in data_sets(frame, measure))


def compare_runs(frame: pd.DataFrame, measure: str, first: str, second: str) -> tuple[Effect, ...]:
    """As `compare`, without an interval: what is said holds in every run, of one draw too."""
    return tuple(one.every_run(first, second) for one in data_sets(frame, measure))


def data_sets(frame: pd.DataFrame, measure: str) -> list[OneDataSet]:
    """The data sets of a frame in their order, each arranged for any two methods that it has."""
    return [
        OneDataSet(str(data), cells, measure) for data, cells in frame.groupby("data", sort=False)
    ]


def _settled(
    sample: Sample, splits: Floats, measure: Measure, region: float
) -> tuple[Outcome, str]:
    """The outcome, and a note on it; `splits`: the mean of each."""
    outcome = says(*sample.interval, region)
    if outcome == Outcome.undecided:
        return outcome, would_decide(units_that_decide(sample, region), sample.unit)
    agree = bool((splits > 0).all() or (splits < 0).all())
    if measure.rows == "training" and outcome != Outcome.equal and not agree:
        return Outcome.undecided, "splits differ in sign"
    return outcome, "on this split" if len(splits) == 1 else ""


def _unrecorded(cells: pd.DataFrame, name: str) -> pd.Series[bool]:
    """Which cells have a record that was made without a measure: it says nothing for or against a method."""
    if "unrecorded" not in cells:
        return pd.Series(False, index=cells.index)
    return cells["unrecorded"].map(lambda names: name in names)
