"""Centre and scale with the statistics of the training part only; a table is held once."""

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
"""Rows of a table that are worked on at a time, so that a large one is never copied whole."""


@dataclass(frozen=True, eq=False)
class Standardiser:
    """Per-column mean [D] and scale [D] of a training part; a constant column has scale 1."""

    mean: Floats
    scale: Floats

    @classmethod
    def fit(cls, X: Floats, rows: Indices | None = None, names: Sequence[str] = ()) -> Standardiser:
        """Take mean and population standard deviation of each column of X [N, D], over some rows or all.

        `names` are those of the columns, for the error; they are counted from 1 without any.

        A column is constant when its standard deviation is at most 1e-12 max(1, |mean|): it
        keeps scale 1, so it becomes 0 and never NaN.

        Raises:
            DataError: numbers so large that their mean or spread overflows.
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
        """Leave every column as it is."""
        columns = X.shape[1]
        return cls(sealed(np.zeros(columns)), sealed(np.ones(columns)))

    def apply(self, X: Floats) -> Floats:
        """Standardise columns: [n, D] to [n, D]."""
        return (X - self.mean) / self.scale


@dataclass(frozen=True, eq=False)
class StandardisedRows:
    """Rows [n, D] of a table in standard units, worked out when they are asked for.

    It is indexed by rows as an array is, and NumPy takes it for one: `np.asarray` makes all of it.
    """

    table: Floats  # [N, D]
    rows: Indices  # which rows of it these are, [n]
    standardiser: Standardiser

    @property
    def shape(self) -> tuple[int, int]:
        """(n, D)."""
        return len(self.rows), self.table.shape[1]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, chosen: slice | NDArray[Any]) -> Floats:
        """Rows by a slice, numbers or a mask: [m, D]; numbers of several axes [..., D]."""
        return self.standardiser.apply(self.table[self.rows[chosen]])

    def __array__(
        self, dtype: DTypeLike | None = None, *, copy: bool | None = None
    ) -> NDArray[Any]:
        if copy is False:
            raise ValueError("standardised rows are made on demand: they cannot be had uncopied")
        return np.asarray(self[:], dtype=dtype)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A data set split and standardised, ready to train on; its arrays are read-only."""

    X_train: StandardisedRows  # [n, D]; the data set's own table is behind them
    y_train: Floats  # [n], standardised for regression, class numbers otherwise
    X_test: StandardisedRows  # in the training part's units, [m, D]
    y_test: Floats  # in the training part's units, [m]
    y_mean: float  # what was subtracted from y; 0 for classification
    y_scale: float  # what y was divided by; 1 for classification
    standardiser: Standardiser  # of the inputs
    fingerprint: str  # the data set's
    split_hash: str


def prepare(
    dataset: Dataset, split: Split, *, standardise_x: bool = True, standardise_y: bool = True
) -> Prepared:
    """Split a data set of N rows and standardise it with the training part's statistics; labels stay.

    Raises:
        DataError: a split made for another number of rows.
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
    """All rows of a data set to train on, standardised with their own statistics, and none to test."""
    rows, none = np.arange(dataset.y.size), np.arange(0)
    return _prepared(dataset, rows, none, "", standardise_x, standardise_y)


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
