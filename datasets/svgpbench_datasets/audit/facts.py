"""The plain facts of a data set: what `svgpbench data show` prints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from svgpbench_datasets.audit.dependence import signal
from svgpbench_datasets.audit.predictability import linear_r2, nearest_ratio, previous_ratio
from svgpbench_datasets.audit.same_rows import same_rows, with_twins
from svgpbench_datasets.dataset import Dataset
from svgpbench_datasets.missing import NONE_MISSING, Missing
from svgpbench_datasets.splits import Split


@dataclass(frozen=True)
class Flag:
    """One thing to know before trusting a result.

    Attributes:
        kind: a short name.
        text: what was found, with its numbers.
        leak: whether it hands test targets to the model; else it is a note.
    """

    kind: str
    text: str
    leak: bool = False


@dataclass(frozen=True)
class Facts:
    """What can be counted in a data set.

    Attributes:
        rows: N.
        features: D.
        distinct_inputs: rows of X that differ.
        repeated_rows: rows that repeat an earlier row, target included.
        constant_columns: names of columns with one value only.
        missing_cells: for each column that is used, the cells without a value in the files.
        missing_rows: rows of the files with such a cell.
        target_range: least and greatest target.
        target_values: how many different targets there are.
        classes: rows of each class by its label; empty for regression.
        row_correlation: the absolute correlation of the row number with the target, or with the
            number of the class.
        row_correlation_ratio: the correlation ratio of the row number over the classes, from 0 to
            1, which asks no order of them; for two classes the absolute correlation; for
            regression 0.
        previous_ratio: how unlike the target is to that of the row before: 0 alike, 1 as any two.
        nearest_ratio: the same for the row with the nearest inputs.
        linear_r2: R² of a linear fit to all rows; over one column a class for classification.
        test_rows: rows of the test part of the split that was looked at.
        test_seen: how many of them have their inputs in the training part too.
        test_told: of how many of those the training part tells the target too, see `with_twins`.
        split: which split that was.
    """

    rows: int
    features: int
    distinct_inputs: int
    repeated_rows: int
    constant_columns: tuple[str, ...]
    missing_cells: dict[str, int]
    missing_rows: int
    target_range: tuple[float, float]
    target_values: int
    classes: dict[str, int]
    row_correlation: float
    row_correlation_ratio: float
    previous_ratio: float
    nearest_ratio: float
    linear_r2: float
    test_rows: int
    test_seen: int
    test_told: int
    split: str


def facts_of(dataset: Dataset, split: Split, missing: Missing = NONE_MISSING) -> Facts:
    """Count.

    Args:
        dataset: the data set.
        split: the split whose test part is searched for training rows.
        missing: what its files lack.

    Returns:
        the facts.
    """
    X, y, target = dataset.X, dataset.y, signal(dataset)
    inputs = same_rows(X.T)
    named = zip(dataset.feature_names, np.ptp(X, axis=0) == 0, strict=True)
    twins, agreeing = with_twins(inputs, y, split)
    return Facts(
        rows=len(y),
        features=X.shape[1],
        distinct_inputs=int(inputs.max()) + 1,
        repeated_rows=len(y) - int(same_rows([inputs.astype(np.float64), y]).max()) - 1,
        constant_columns=tuple(name for name, constant in named if constant),
        missing_cells=missing.cells,
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
        split=_title(split),
    )


def row_correlation(dataset: Dataset) -> float:
    """The absolute correlation of the row number with the target, from 0 to 1."""
    if np.ptp(dataset.y) == 0:
        return 0.0
    return float(abs(np.corrcoef(np.arange(len(dataset.y)), dataset.y)[0, 1]))


def row_correlation_ratio(dataset: Dataset) -> float:
    """The correlation ratio of the row number over the classes, from 0 to 1; 0 for regression."""
    if dataset.task == "regression" or np.ptp(dataset.y) == 0:
        return 0.0
    number = np.arange(len(dataset.y), dtype=np.float64)
    members = signal(dataset)
    counts = members.sum(axis=0)
    present = counts > 0
    means = (members.T @ number)[present] / counts[present]
    between = float((counts[present] * np.square(means - number.mean())).sum())
    return float(np.sqrt(between / np.square(number - number.mean()).sum()))


def _title(split: Split) -> str:
    which = f"fold {split.fold} of {split.folds}"
    return f"{split.kind}, {which}" + ("" if split.kind == "fixed" else f", seed {split.seed}")
