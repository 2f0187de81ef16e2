"""Paired differences with their intervals, and what these say.

A frame has a row a cell of one backend: `data`, `method`, `split_seed`, `fold`, `seed`, `perturbation`,
`status`, `n_train`, `n_test` and a column a measure; `unrecorded` has the names of those that a record lacks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import stdtrit

from svgpbench.metrics import loss
from svgpbench.papers.measures import MEASURES, Measure
from svgpbench.papers.verdict import Effect, Outcome

LEVEL = 0.95
STARTS = 5
"""The fewest seeds of one split that make an interval."""

MOST_UNITS = 1000


class Sample(NamedTuple):
    """Numbers of which a mean is wanted, and how far they overlap."""

    values: npt.NDArray[np.floating[Any]]  # one a unit, or a row of several
    overlap: float  # n_test / n_train of folds and random splits, 0 of seeds
    unit: str

    @property
    def mean(self) -> float:
        """Of the units."""
        return float(self.values.mean())

    @property
    def error(self) -> npt.NDArray[np.floating[Any]]:
        """The standard error of the mean of the units."""
        return self.error_of(len(self.values))

    def error_of(self, units: int) -> npt.NDArray[np.floating[Any]]:
        """The standard error of the mean of so many units of the same spread.

        Source: Nadeau and Bengio 2003, the corrected resampled t.
        """
        return np.asarray(self.values.std(axis=0, ddof=1) * math.sqrt(1 / units + self.overlap))

    def half_width(self, units: int) -> float:
        """Half the 95 % interval that so many units of the same spread have."""
        quantile = float(stdtrit(units - 1, 0.5 + LEVEL / 2))  # Student's t
        return quantile * float(self.error_of(units))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the mean."""
        half = self.half_width(len(self.values))
        return self.mean - half, self.mean + half


class TooFewError(ValueError):
    """Too few units for an interval; the message says what is there and what it takes."""


def sampled(values: pd.Series[float] | pd.DataFrame, overlap: float, rows: str) -> Sample:
    """The units among `values`, or among the rows of a frame, indexed by split_seed, fold and seed.

    Of a test score, the splits, seeds averaged first; of a training score, and where there is one split
    alone, the seeds, five at least.

    Raises `TooFewError`.
    """
    splits = values.groupby(level=["split_seed", "fold"]).mean()
    if rows == "test" and len(splits) > 1:
        return Sample(splits.to_numpy(), overlap, "splits")
    starts = values.groupby(level="seed").mean()
    if len(starts) < STARTS:
        count = f"{len(starts)} start{'s' if len(starts) > 1 else ''} a split"
        raise TooFewError(f"{count} where {STARTS} make an interval")
    return Sample(starts.to_numpy(), 0.0, "starts")


def says(low: float, high: float, region: float) -> Outcome:
    """What an interval says: all beyond the region, all inside, or neither."""
    if low > region:
        return Outcome.better
    if high < -region:
        return Outcome.worse
    if -region < low and high < region:
        return Outcome.equal
    return Outcome.undecided


def compare(frame: pd.DataFrame, measure: str, first: str, second: str) -> tuple[Effect, ...]:
    """`first` against `second` on every data set; a positive difference is in favour of `first`."""
    return tuple(
        _on_one(str(data), cells, measure, first, second)
        for data, cells in frame.groupby("data", sort=False)
    )


def compare_runs(frame: pd.DataFrame, measure: str, first: str, second: str) -> tuple[Effect, ...]:
    """As `compare`, without an interval: what is said holds in every run, of one draw too."""
    return tuple(
        _every_run(str(data), cells[cells["perturbation"] == 0], measure, first, second)
        for data, cells in frame.groupby("data", sort=False)
    )


def _every_run(data: str, plain: pd.DataFrame, name: str, first: str, second: str) -> Effect:
    if failed := _failures(data, plain, name, first, second):
        return failed
    delta = _paired(plain, name, first, second)
    low, high = float(delta.min()), float(delta.max())
    outcome = says(low, high, region_of(plain, name, second))
    return Effect(data, outcome, float(delta.median()), low, high, "least, median, most")


def _on_one(data: str, cells: pd.DataFrame, name: str, first: str, second: str) -> Effect:
    measure = MEASURES[name]
    plain = cells[cells["perturbation"] == 0]
    if failed := _failures(data, plain, name, first, second):
        return failed
    delta = _paired(plain, name, first, second)
    if delta.empty:
        return Effect(data, Outcome.undecided, note=f"no pair of records has {measure.title}")
    overlap = float((plain["n_test"] / plain["n_train"]).mean())
    region = region_of(plain, name, second)
    mean = float(delta.groupby(level=["split_seed", "fold"]).mean().mean())
    try:
        sample = sampled(delta, overlap, measure.rows)
    except TooFewError as error:
        return Effect(data, Outcome.undecided, mean, note=str(error))
    low, high = sample.interval
    outcome, note = _settled(sample, delta, measure, region)
    replicas = cells[cells["perturbation"] > 0]
    if len(replicas) and _chaotic(delta, _paired(replicas, name, first, second)):
        outcome, note = (
            Outcome.undecided,
            "chaotic: rounding moves the difference by more than itself",
        )
    return Effect(data, outcome, mean, low, high, note)


def region_of(plain: pd.DataFrame, name: str, second: str) -> float:
    """Half the width of a measure's region of practical equivalence on the cells of one data set."""
    reference = float(plain.loc[plain["method"] == second, name].mean())
    return MEASURES[name].region_at(reference, float(plain["n_train"].mean()))


def _settled(
    sample: Sample, delta: pd.Series[float], measure: Measure, region: float
) -> tuple[Outcome, str]:
    """The outcome, and a note on it."""
    outcome = says(*sample.interval, region)
    if outcome == Outcome.undecided:
        return outcome, would_decide(units_that_decide(sample, region), sample.unit)
    means = delta.groupby(level=["split_seed", "fold"]).mean()
    agree = bool((means > 0).all() or (means < 0).all())
    if measure.rows == "training" and outcome != Outcome.equal and not agree:
        return Outcome.undecided, "splits differ in sign"
    return outcome, "on this split" if len(means) == 1 else ""


def would_decide(units: int | None, unit: str) -> str:
    """What a note says of how many would."""
    return f"{units or 'no number of'} {unit} would decide"


def _failures(data: str, plain: pd.DataFrame, name: str, first: str, second: str) -> Effect | None:
    """The outcome where cells failed: whoever fails more often is worse."""
    bad = (plain["status"] != "ok") | (plain[name].isna() & ~_unrecorded(plain, name))
    mine, other = (int((bad & (plain["method"] == method)).sum()) for method in (first, second))
    if not mine and not other:
        return None
    note = f"failed cells: {mine} of {first}, {other} of {second}"
    if mine == other:
        return Effect(data, Outcome.undecided, note=note)
    return Effect(data, Outcome.worse if mine > other else Outcome.better, note=note)


def _unrecorded(cells: pd.DataFrame, name: str) -> pd.Series[bool]:
    """Which cells have a record that was made without a measure: it says nothing for or against a method."""
    if "unrecorded" not in cells:
        return pd.Series(False, index=cells.index)
    return cells["unrecorded"].map(lambda names: name in names)


def _paired(cells: pd.DataFrame, name: str, first: str, second: str) -> pd.Series[float]:
    """Differences on the same split and seed, positive in favour of `first`."""
    keys = ["split_seed", "fold", "seed"]
    better = MEASURES[name].better
    values = cells.assign(loss=cells[name].map(lambda value: loss(value, better)))
    wide = values.pivot(index=keys, columns="method", values="loss")
    return (wide[second] - wide[first]).dropna()


def _chaotic(delta: pd.Series[float], perturbed: pd.Series[float]) -> bool:
    """Whether a perturbation of the inputs by rounding moves the mean by more than itself.

    The mean is that of the cells which ran perturbed, too.
    """
    shared = delta.index.intersection(perturbed.index)
    mean, moved = (
        float(x.loc[shared].groupby(level=["split_seed", "fold"]).mean().mean())
        for x in (delta, perturbed)
    )
    return abs(moved - mean) > abs(mean)


def units_that_decide(sample: Sample, region: float) -> int | None:
    """The fewest units of the same mean and spread that would decide; None where no number would."""
    mean = sample.mean
    return _fewest(sample, lambda h: says(mean - h, mean + h, region) != Outcome.undecided)


def units_of_width(sample: Sample, width: float) -> int | None:
    """The fewest units of the same spread whose interval is no wider; None where no number is enough."""
    return _fewest(sample, lambda half: 2 * half <= width)


def _fewest(sample: Sample, enough: Callable[[float], bool]) -> int | None:
    """The fewest units beyond those there are whose half interval is enough."""
    more = range(len(sample.values) + 1, MOST_UNITS + 1)
    return next((units for units in more if enough(sample.half_width(units))), None)
