"""Centre and scale with the statistics of the training part only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from svgpbench_datasets.dataset import Dataset, Floats
from svgpbench_datasets.errors import DataError
from svgpbench_datasets.splits import Split


@dataclass(frozen=True, eq=False)
class Standardiser:
    """Per-column mean [D] and scale [D] of a training part; a constant column has scale 1."""

    mean: Floats
    scale: Floats

    @classmethod
    def fit(cls, X_train: Floats) -> Standardiser:
        """Take mean and population standard deviation of each column.

        A column is constant when its standard deviation is at most 1e-12 max(1, |mean|): it
        keeps scale 1, so it becomes 0 and never NaN.

        Args:
            X_train: the training inputs, [n, D].

        Returns:
            the standardiser.

        Raises:
            DataError: numbers so large that their mean or spread overflows.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            # the mean of equal numbers can differ from them in the last digit
            equal = (X_train == X_train[0]).all(axis=0)
            mean = np.where(equal, X_train[0], X_train.mean(axis=0))
            spread = np.sqrt(np.square(X_train - mean).mean(axis=0))
        if not (np.isfinite(mean).all() and np.isfinite(spread).all()):
            column = int(np.argmin(np.isfinite(mean) & np.isfinite(spread))) + 1
            raise DataError(f"column {column} is too large to standardise in float64; rescale it")
        constant = spread <= 1e-12 * np.maximum(1.0, np.abs(mean))
        return cls(_frozen(mean), _frozen(np.where(constant, 1.0, spread)))

    @classmethod
    def identity(cls, X_train: Floats) -> Standardiser:
        """Leave every column as it is."""
        columns = X_train.shape[1]
        return cls(_frozen(np.zeros(columns)), _frozen(np.ones(columns)))

    def apply(self, X: Floats) -> Floats:
        """Standardise columns: [n, D] to [n, D]."""
        return (X - self.mean) / self.scale


@dataclass(frozen=True, eq=False)
class Prepared:
    """A data set split and standardised, ready to train on; its arrays are read-only.

    Attributes:
        X_train: standardised training inputs, [n, D].
        y_train: training targets, [n]: standardised for regression, class numbers otherwise.
        X_test: test inputs in the training part's units, [m, D].
        y_test: test targets in the training part's units, [m].
        y_mean: what was subtracted from y; 0 for classification.
        y_scale: what y was divided by; 1 for classification.
        standardiser: the inputs' mean and scale.
        fingerprint: the data set's.
        split_hash: the split's.
    """

    X_train: Floats
    y_train: Floats
    X_test: Floats
    y_test: Floats
    y_mean: float
    y_scale: float
    standardiser: Standardiser
    fingerprint: str
    split_hash: str


def prepare(
    dataset: Dataset, split: Split, *, standardise_x: bool = True, standardise_y: bool = True
) -> Prepared:
    """Split a data set and standardise it with the training part's statistics.

    Args:
        dataset: the data set, N rows.
        split: a split of exactly N rows.
        standardise_x: whether to standardise the inputs.
        standardise_y: whether to standardise a regression target; labels never are.

    Returns:
        the training and test parts.

    Raises:
        DataError: a split made for another number of rows.
    """
    rows, split_rows = dataset.y.size, split.train.size + split.test.size
    if split_rows != rows or max(split.train[-1], split.test[-1]) >= rows:
        raise DataError(
            f"the split is of {split_rows} rows but data set {dataset.name!r} has {rows}; "
            "make the split for this data set"
        )
    X_train, y_train = dataset.X[split.train], dataset.y[split.train]
    standardiser = Standardiser.fit(X_train) if standardise_x else Standardiser.identity(X_train)
    y_mean, y_scale = 0.0, 1.0
    if standardise_y and dataset.task == "regression":
        target = Standardiser.fit(y_train[:, None])
        y_mean, y_scale = float(target.mean[0]), float(target.scale[0])
    return Prepared(
        X_train=_frozen(standardiser.apply(X_train)),
        y_train=_frozen((y_train - y_mean) / y_scale),
        X_test=_frozen(standardiser.apply(dataset.X[split.test])),
        y_test=_frozen((dataset.y[split.test] - y_mean) / y_scale),
        y_mean=y_mean,
        y_scale=y_scale,
        standardiser=standardiser,
        fingerprint=dataset.fingerprint,
        split_hash=split.hash,
    )


def _frozen(array: Floats) -> Floats:
    array.setflags(write=False)
    return array
