"""The plain facts of a data set: what `svgpbench data show` prints."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from svgpbench_datasets.audit.dependence import signal
from svgpbench_datasets.dataset import Dataset, Floats
from svgpbench_datasets.splits import Split


@dataclass(frozen=True)
class Facts:
    """What can be counted in a data set.

    Attributes:
        rows: N.
        features: D.
        distinct_inputs: rows of X that differ.
        repeated_rows: rows that repeat an earlier row, target included.
        constant: names of columns with one value only.
        target_range: least and greatest target.
        target_values: how many different targets there are.
        classes: rows of each class by its label; empty for regression.
        row_correlation: how strongly the row number goes with the target, from 0 to 1: the absolute
            correlation for regression, the correlation ratio over classes otherwise.
        test_rows: rows of the test part of the split that was looked at.
        test_seen: how many of them have their inputs in the training part too.
        split: which split that was.
    """

    rows: int
    features: int
    distinct_inputs: int
    repeated_rows: int
    constant: tuple[str, ...]
    target_range: tuple[float, float]
    target_values: int
    classes: dict[str, int]
    row_correlation: float
    test_rows: int
    test_seen: int
    split: str


def facts_of(dataset: Dataset, split: Split) -> Facts:
    """Count.

    Args:
        dataset: the data set.
        split: the split whose test part is searched for training rows.

    Returns:
        the facts.
    """
    inputs = row_hashes(dataset.X)
    whole = set(zip(inputs, dataset.y.tolist(), strict=True))
    train = {inputs[row] for row in split.train}
    named = zip(dataset.feature_names, np.ptp(dataset.X, axis=0) == 0, strict=True)
    return Facts(
        rows=len(dataset.y),
        features=dataset.X.shape[1],
        distinct_inputs=len(set(inputs)),
        repeated_rows=len(inputs) - len(whole),
        constant=tuple(name for name, constant in named if constant),
        target_range=(float(dataset.y.min()), float(dataset.y.max())),
        target_values=len(np.unique(dataset.y)),
        classes={
            label: int((dataset.y == number).sum())
            for number, label in enumerate(dataset.class_labels or ())
        },
        row_correlation=row_correlation(dataset),
        test_rows=len(split.test),
        test_seen=sum(inputs[row] in train for row in split.test),
        split=_title(split),
    )


def row_hashes(X: Floats) -> list[bytes]:
    """A hash of each row, equal where rows are."""
    rows = np.ascontiguousarray(X + 0.0)  # -0.0 is 0.0
    return [hashlib.blake2b(row, digest_size=16).digest() for row in rows]


def row_correlation(dataset: Dataset) -> float:
    """How strongly the row number goes with the target, from 0 to 1."""
    number = np.arange(len(dataset.y), dtype=np.float64)
    if np.ptp(dataset.y) == 0 or len(number) < 2:
        return 0.0
    if dataset.task == "regression":
        return float(abs(np.corrcoef(number, dataset.y)[0, 1]))
    members = signal(dataset)
    counts = members.sum(axis=0)
    present = counts > 0
    means = (members.T @ number)[present] / counts[present]
    between = float((counts[present] * np.square(means - number.mean())).sum())
    return float(np.sqrt(between / np.square(number - number.mean()).sum()))


def _title(split: Split) -> str:
    which = f"fold {split.fold} of {split.folds}"
    return f"{split.kind}, {which}" + ("" if split.kind == "fixed" else f", seed {split.seed}")
