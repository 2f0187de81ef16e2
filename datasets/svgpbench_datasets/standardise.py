"""Standardisation with the statistics of the training part only; no copy of the table is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from svgpbench_datasets.dataset import Dataset, Floats, sealed
from svgpbench_datasets.errors import DataError
from svgpbench_datasets.splits import Indices, Split

ROWS_AT_ONCE = 1 << 16
"""Number of rows processed at a time, so that a large table is never copied as a whole."""


@dataclass(frozen=True, eq=False)
class Standardiser:
    """Mean [D] and scale [D] of the columns of a training part; a constant column has scale 1."""

    mean: Floats
    scale: Floats

    @classmethod
    def fit(cls, X: Floats, rows: Indices | None = None, names: Sequence[str] = ()) -> Standardiser:
        """Compute mean and population standard deviation of each column of X [N, D].

        `rows` selects rows; None for all. `names` are column names for the error message;
        without them columns are numbered from 1.

        A column is constant if its standard deviation is at most 1e-12 max(1, |mean|). Its
        scale is 1, so that it becomes 0 and never NaN.

        Raises:
            DataError: a mean or a standard deviation overflows.
        """
        train = np.arange(len(X)) if rows is None else rows
        first, n = X[train[0]], len(train)
        with np.errstate(over="ignore", invalid="ignore"):
            # the mean of equal numbers can differ from them in the last digit
            equal = np.logical_and.reduce([(part == first).all(0) for part in _parts(X, train)])
            mean = np.where(equal, first, sum(part.sum(axis=0) for part in _parts(X, train)) / n)
            squares = sum(np.square(part - mean).sum(axis=0) for part in _parts(X, train))
            spread = np.sqrt(squares / n)
        if not (np.isfinite(mean).all() and np.isfinite(spread).all()):
            column = int(np.argmin(np.isfinite(mean) & np.isfinite(spread)))
            name = repr(names[column]) if names else str(column + 1)
            raise DataError(f"column {name} is too large to standardise in float64; rescale it")
        constant = spread <= 1e-12 * np.maximum(1.0, np.abs(mean))
        return cls(sealed(mean), sealed(np.where(constant, 1.0, spread)))

    @classmethod
    def identity(cls, X: Floats) -> Standardiser:
        """Return a standardiser that leaves every column unchanged."""
        columns = X.shape[1]
        return cls(sealed(np.zeros(columns)), sealed(np.ones(columns)))

    def apply(self, X: Floats) -> Floats:
        """Standardise columns: [n, D] to [n, D]."""
        return (X - self.mean) / self.scale


@dataclass(frozen=True, eq=False)
class StandardisedRows:
    """Rows [n, D] of a table in standard units, computed on access.

    It is indexed by rows like an array. `np.asarray` computes all rows.
    """

    table: Floats  # [N, D]
    rows: Indices  # row numbers in `table`, [n]
    standardiser: Standardiser

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (n, D)."""
        return len(self.rows), self.table.shape[1]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: slice | NDArray[Any]) -> Floats:
        """Return rows by slice, mask or indices, [m, D]; indices of several axes give [..., D]."""
        return self.standardiser.apply(self.table[self.rows[index]])

    def __array__(
        self, dtype: DTypeLike | None = None, *, copy: bool | None = None
    ) -> NDArray[Any]:
        if copy is False:
            raise ValueError("standardised rows are made on demand: they cannot be had uncopied")
        return np.asarray(self[:], dtype=dtype)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Data set split and standardised for training; its arrays are read-only."""

    X_train: StandardisedRows  # [n, D]; a view of the data set's table
    y_train: Floats  # [n], standardised for regression, class numbers otherwise
    X_test: StandardisedRows  # standardised as the training part, [m, D]
    y_test: Floats  # standardised as the training part, [m]
    y_mean: float  # mean subtracted from y; 0 for classification
    y_scale: float  # divisor of y; 1 for classification
    standardiser: Standardiser  # standardiser of the inputs
    fingerprint: str  # fingerprint of the data set
    split_hash: str


def prepare(
    dataset: Dataset, split: Split, *, standardise_x: bool = True, standardise_y: bool = True
) -> Prepared:
    """Split a data set and standardise it with the statistics of the training part.

    Class labels are not standardised.

    Raises:
        DataError: the split was made for another number of rows, or a column overflows.
    """
    rows, split_rows = dataset.y.size, split.train.size + split.test.size
    if split_rows != rows or max(split.train[-1], split.test[-1]) >= rows:
        raise DataError(
            f"the split is of {split_rows} rows but data set {dataset.name!r} has {rows}; "
            "make the split for this data set"
        )
    return _prepared(dataset, split.train, split.test, split.hash, standardise_x, standardise_y)


def prepare_whole(
    dataset: Dataset, *, standardise_x: bool = True, standardise_y: bool = True
) -> Prepared:
    """Return all rows as training part, standardised with their own statistics; no test rows."""
    rows, no_rows = np.arange(dataset.y.size), np.arange(0)
    return _prepared(dataset, rows, no_rows, "", standardise_x, standardise_y)


def _prepared(
    dataset: Dataset,
    train: Indices,
    test: Indices,
    split_hash: str,
    standardise_x: bool,
    standardise_y: bool,
) -> Prepared:
    X, y_train = dataset.X, dataset.y[train]
    names = dataset.feature_names
    standardiser = Standardiser.fit(X, train, names) if standardise_x else Standardiser.identity(X)
    y_mean, y_scale = 0.0, 1.0
    if standardise_y and dataset.task == "regression":
        target = Standardiser.fit(y_train[:, None], names=[dataset.target_name])
        y_mean, y_scale = float(target.mean[0]), float(target.scale[0])
    return Prepared(
        X_train=StandardisedRows(X, train, standardiser),
        y_train=sealed((y_train - y_mean) / y_scale),
        X_test=StandardisedRows(X, test, standardiser),
        y_test=sealed((dataset.y[test] - y_mean) / y_scale),
        y_mean=y_mean,
        y_scale=y_scale,
        standardiser=standardiser,
        fingerprint=dataset.fingerprint,
        split_hash=split_hash,
    )


def _parts(X: Floats, rows: Indices) -> Iterator[Floats]:
    for start in range(0, len(rows), ROWS_AT_ONCE):
        yield X[rows[start : start + ROWS_AT_ONCE]]
