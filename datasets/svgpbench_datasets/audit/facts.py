"""Facts of a data set, as `svgpbench data show` prints them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from svgpbench_datasets.audit.dependence import (
    linear_r2,
    nearest_ratio,
    previous_ratio,
    target_columns,
)
from svgpbench_datasets.dataset import Dataset, Floats
from svgpbench_datasets.reading.tables import NONE_MISSING, Missing
from svgpbench_datasets.splits import Indices, Split
from svgpbench_datasets.standardise import column_statistics

ALIKE = 0.1
"""Largest distance of a test target from its twins' mean, in standard deviations, to count as revealed."""
LEAKED, FEWEST_LEAKED = 0.01, 5
"""It is a leak if training reveals the target of at least this share and number of test rows."""


@dataclass(frozen=True)
class Flag:
    """Finding that affects how far a result can be trusted."""

    kind: str
    text: str  # finding, with its numbers
    leak: bool = False  # True if it reveals test targets to the model; else a note


@dataclass(frozen=True)
class AuditFacts:
    """Counts and statistics of a data set."""

    rows: int
    features: int
    distinct_inputs: int
    repeated_rows: int  # rows that repeat an earlier row, target included
    constant_columns: tuple[str, ...]
    missing_cells: dict[str, int]  # by used column with missing values, in the files
    missing_rows: int  # rows of the files with a missing cell
    target_range: tuple[float, float]
    target_values: int  # number of distinct values
    classes: dict[str, int]  # rows of each class by its label; empty for regression
    row_correlation: float  # |correlation| of row number and target (or class number)
    row_correlation_ratio: float  # see `row_correlation_ratio`
    previous_ratio: float  # difference from the previous row's target: 0 equal, 1 as random
    nearest_ratio: float  # the same for the row with the nearest inputs
    linear_r2: float  # of a fit to all rows; classes are one-hot columns
    test_rows: int  # number of test rows of `split`; 0 if all rows train
    test_seen: int  # test rows whose inputs are in the training part too
    test_told: int  # of these, rows whose target is revealed, see `count_twins`
    split: str  # of several splits the one that reveals most, and how many of them leak


class Twins(NamedTuple):
    """Test rows of a split that repeat the inputs of training rows."""

    test_rows: int
    seen: int  # test rows whose inputs are in the training part too
    told: int  # of these, rows whose target is revealed, see `count_twins`

    @property
    def leak(self) -> bool:
        """True if enough targets are revealed to move a score."""
        return self.told >= max(FEWEST_LEAKED, LEAKED * self.test_rows)


def facts_of(dataset: Dataset, *splits: Split, missing: Missing = NONE_MISSING) -> AuditFacts:
    """Compute the facts of a data set, including test rows of its splits that repeat training rows."""
    X, y, target = dataset.X, dataset.y, target_columns(dataset)
    inputs = same_rows(X.T)
    named = zip(dataset.feature_names, column_statistics(X).constant, strict=True)
    twins, split = _worst_split(inputs, target, splits)
    return AuditFacts(
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
        test_rows=twins.test_rows,
        test_seen=twins.seen,
        test_told=twins.told,
        split=split,
    )


def row_correlation(dataset: Dataset) -> float:
    """Return the absolute correlation of the row number with the target, from 0 to 1."""
    if np.ptp(dataset.y) == 0:
        return 0.0
    return float(abs(np.corrcoef(np.arange(len(dataset.y)), dataset.y)[0, 1]))


def rank_correlation(first: Floats, second: Floats) -> float:
    """Return Spearman's rank correlation of two columns, from -1 to 1; 0 if one is constant."""
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    return float(pd.Series(first).corr(pd.Series(second), method="spearman"))


def row_correlation_ratio(dataset: Dataset) -> float:
    """Return the correlation ratio of the row number over the classes, from 0 to 1; 0 for regression.

    It does not depend on the order of the classes. For two classes it is the absolute correlation.
    """
    if dataset.task == "regression" or np.ptp(dataset.y) == 0:
        return 0.0
    number = np.arange(len(dataset.y), dtype=np.float64)
    members = target_columns(dataset)
    counts = members.sum(axis=0)
    present = counts > 0
    means = (members.T @ number)[present] / counts[present]
    between = float((counts[present] * np.square(means - number.mean())).sum())
    return float(np.sqrt(between / np.square(number - number.mean()).sum()))


def same_rows(columns: Iterable[Floats]) -> Indices:
    """Number the distinct rows of a table from 0; return the number of each row, [n].

    `columns` are the columns of the table, [n] each. The table is not copied.
    """
    numbers: Any = 0
    for column in columns:
        codes, values = pd.factorize(column)
        # numbered anew after each column: a product over all columns would overflow int64
        numbers, _ = pd.factorize(numbers * len(values) + codes)
    return np.asarray(numbers, np.int64)


def _worst_split(inputs: Indices, target: Floats, splits: Sequence[Split]) -> tuple[Twins, str]:
    """Return the twins and the name of the split that reveals the largest share of its test targets."""
    if not splits:
        return Twins(0, 0, 0), "no test rows"
    counted = [
        (Twins(len(split.test), *count_twins(inputs, target, split)), split) for split in splits
    ]
    twins, split = max(counted, key=lambda one: (one[0].told / one[0].test_rows, one[0].seen))
    seed = "" if split.kind in ("fixed", "blocks", "column") else f", seed {split.seed}"
    leaking = sum(one.leak for one, _ in counted)
    others = f"; {leaking} of {len(splits)} splits leak" if leaking and len(splits) > 1 else ""
    return twins, f"{split.kind}, fold {split.fold} of {split.folds}{seed}{others}"


def count_twins(distinct: Indices, target: Floats, split: Split) -> tuple[int, int]:
    """Count the test rows with a training row of equal inputs (a twin), and those whose target is revealed.

    A target is revealed if the mean of its twins' targets is within 0.1 standard deviations, in each
    column. `distinct` [n] numbers the distinct inputs; the target [n, K] is that of `target_columns`.
    """
    most = int(distinct.max()) + 1
    twins = np.bincount(distinct[split.train], minlength=most)
    rows = split.test[twins[distinct[split.test]] > 0]
    inputs = distinct[rows]
    revealed = np.ones(len(rows), dtype=bool)
    # a column for each class: the mean of class numbers would be near those of other classes
    for column in target.T:
        totals = np.bincount(distinct[split.train], weights=column[split.train], minlength=most)
        revealed &= np.abs(column[rows] - totals[inputs] / twins[inputs]) <= ALIKE * column.std()
    return len(rows), int(revealed.sum())
