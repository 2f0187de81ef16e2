"""The plain facts of a data set: what `svgpbench data show` prints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from svgpbench_datasets.audit.dependence import linear_r2, nearest_ratio, previous_ratio, signal
from svgpbench_datasets.dataset import Dataset, Floats
from svgpbench_datasets.reading.tables import NONE_MISSING, Missing
from svgpbench_datasets.splits import Indices, Split

ALIKE = 0.1
"""Standard deviations of the target within which a test row's target is told by its twins'."""


@dataclass(frozen=True)
class Flag:
    """One thing to know before trusting a result."""

    kind: str
    text: str  # what was found, with its numbers
    leak: bool = False  # whether it hands test targets to the model; else it is a note


@dataclass(frozen=True)
class Facts:
    """What can be counted in a data set."""

    rows: int
    features: int
    distinct_inputs: int
    repeated_rows: int  # that repeat an earlier row, target included
    constant_columns: tuple[str, ...]
    missing_cells: dict[str, int]  # of each column that is used, in the files
    missing_rows: int  # of the files, with such a cell
    target_range: tuple[float, float]
    target_values: int  # that differ
    classes: dict[str, int]  # rows of each class by its label; empty for regression
    row_correlation: float  # |correlation| of row number and target, or number of the class
    row_correlation_ratio: float  # see `row_correlation_ratio`
    previous_ratio: float  # how unlike the target of the row before is: 0 alike, 1 as any two
    nearest_ratio: float  # the same for the row with the nearest inputs
    linear_r2: float  # of a fit to all rows; over one column a class for classification
    test_rows: int  # of the split that was looked at
    test_seen: int  # that have their inputs in the training part too
    test_told: int  # of which the training part tells the target too, see `with_twins`
    split: str


def facts_of(dataset: Dataset, split: Split, missing: Missing = NONE_MISSING) -> Facts:
    """Count what is in a data set, in its files, and in training of the test part of a split."""
    X, y, target = dataset.X, dataset.y, signal(dataset)
    inputs = same_rows(X.T)
    named = zip(dataset.feature_names, np.ptp(X, axis=0) == 0, strict=True)
    seed = "" if split.kind == "fixed" else f", seed {split.seed}"
    twins, agreeing = with_twins(inputs, y, split)
    return Facts(
        rows=len(y),
        features=X.shape[1],
        distinct_inputs=int(inputs.max()) + 1,
        repeated_rows=len(y) - int(same_rows([inputs.astype(np.float64), y]).max()) - 1,
        constant_columns=tuple(name for name, constant in named if constant),
        missing_cells=dict(missing.cells),
        missing_rows=missing.rows,
        target_range=(float(y.min()), float(y.max())),
        target_values=len(np.unique(y)),
        classes={
            label: int((y == number).sum())
            for number, label in enumerate(dataset.class_labels or ())
        },
        row_correlation=row_correlation(dataset),
        row_correlation_ratio=row_correlation_ratio(dataset),
        previous_ratio=previous_ratio(target),
        nearest_ratio=nearest_ratio(X, target),
        linear_r2=linear_r2(X, target),
        test_rows=len(split.test),
        test_seen=twins,
        test_told=agreeing,
        split=f"{split.kind}, fold {split.fold} of {split.folds}" + seed,
    )


def row_correlation(dataset: Dataset) -> float:
    """The absolute correlation of the row number with the target, from 0 to 1."""
    if np.ptp(dataset.y) == 0:
        return 0.0
    return float(abs(np.corrcoef(np.arange(len(dataset.y)), dataset.y)[0, 1]))


def row_correlation_ratio(dataset: Dataset) -> float:
    """The correlation ratio of the row number over the classes, from 0 to 1; 0 for regression.

    It asks no order of the classes; of two it is the absolute correlation.
    """
    if dataset.task == "regression" or np.ptp(dataset.y) == 0:
        return 0.0
    number = np.arange(len(dataset.y), dtype=np.float64)
    members = signal(dataset)
    counts = members.sum(axis=0)
    present = counts > 0
    means = (members.T @ number)[present] / counts[present]
    between = float((counts[present] * np.square(means - number.mean())).sum())
    return float(np.sqrt(between / np.square(number - number.mean()).sum()))


def same_rows(columns: Iterable[Floats]) -> Indices:
    """Number the distinct rows of a table from 0, equal rows alike: from its columns [n] each, to [n].

    No copy of the table is made.
    """
    numbers: Any = 0
    for column in columns:
        codes, values = pd.factorize(column)
        numbers, _ = pd.factorize(numbers * len(values) + codes)
    return np.asarray(numbers, np.int64)


def with_twins(distinct: Indices, y: Floats, split: Split) -> tuple[int, int]:
    """How many test rows have the inputs of a training row, and of how many that tells the target y [n].

    It does where the mean of the twins' targets is within a tenth of the standard deviation.
    `distinct` is which distinct input each row has, [n].
    """
    most = int(distinct.max()) + 1
    twins = np.bincount(distinct[split.train], minlength=most)
    totals = np.bincount(distinct[split.train], weights=y[split.train], minlength=most)
    at = distinct[split.test]
    has = twins[at] > 0
    agrees = np.abs(y[split.test][has] - totals[at[has]] / twins[at[has]]) <= ALIKE * y.std()
    return int(has.sum()), int(agrees.sum())
