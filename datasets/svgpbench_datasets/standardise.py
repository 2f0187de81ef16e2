"""Standardisation with the statistics of the training part only; no copy of the table is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from svgpbench_datasets.dataset import Dataset, Floats, sealed
from svgpbench_datasets.errors import DataError
from svgpbench_datasets.splits import Indices, Split

ROWS_AT_ONCE = 1 << 16
"""Number of rows processed at a time, so that a large table is never copied as a whole."""


CONSTANT = 1e-12
"""Largest standard deviation of a constant column, relative to |mean|: 4,500 units in the last place.

It has no unit: a column in tesla or metres is constant exactly if it is in other units.
"""
_ORDINARY = (1e-100, 1e100)
"""Magnitudes of a column whose squares and sums stay inside float64."""


class ColumnStatistics(NamedTuple):
    """Mean, population standard deviation and constancy of columns, each [D]."""

    mean: Floats
    spread: Floats
    constant: NDArray[np.bool_]


def column_statistics(
    X: Floats, rows: Indices | None = None, names: Sequence[str] = ()
) -> ColumnStatistics:
    """Compute the statistics of each column of X [N, D]; arguments as `Standardiser.fit`.

    Raises:
        DataError: the range of a column overflows, or its standard deviation underflows.
    """
    train = np.arange(len(X)) if rows is None else rows
    first, n = X[train[0]], len(train)
    largest = np.maximum.reduce([np.abs(part).max(axis=0) for part in _parts(X, train)])
    unit = _unit(largest)
    # the mean of equal numbers can differ from them in the last digit
    equal = np.logical_and.reduce([(part == first).all(axis=0) for part in _parts(X, train)])
    total = sum((part / unit).sum(axis=0) for part in _parts(X, train))
    mean = np.where(equal, first / unit, total / n)
    # two passes: Σx²/n − mean² would lose all digits where the mean is far above the spread
    squares = sum(np.square(part / unit - mean).sum(axis=0) for part in _parts(X, train))
    spread = np.sqrt(squares / n)
    constant = spread <= CONSTANT * np.abs(mean)
    outside = {
        "large": ~(
            largest <= np.finfo(np.float64).max / 2.0
        ),  # deviations are up to twice as large
        "small": ~constant & (unit * spread == 0.0),
    }
    for what, columns in outside.items():
        if columns.any():
            column = int(np.argmax(columns))
            name = repr(names[column]) if names else str(column + 1)
            raise DataError(f"column {name} is too {what} to standardise in float64; rescale it")
    return ColumnStatistics(unit * mean, unit * spread, constant)


def _unit(largest: Floats) -> Floats:
    """Return a power of two for each column, by which its magnitude [D] becomes about 1.

    It is 1 for an ordinary magnitude. Division by a power of two changes no digit.
    """
    extreme = (largest > 0) & ((largest < _ORDINARY[0]) | (largest > _ORDINARY[1]))
    exponent = np.frexp(np.where(extreme, largest, 1.0))[1] - 1
    return np.asarray(np.ldexp(1.0, np.maximum(exponent, -1022)))  # the least normal number


@dataclass(frozen=True, eq=False)
class Standardiser:
    """Mean [D] and scale [D] of the columns of a training part; a constant column has scale 1."""

    mean: Floats
    scale: Floats

    @classmethod
    def fit(cls, X: Floats, rows: Indices | None = None, names: Sequence[str] = ()) -> Standardiser:
        """Compute mean and population standard deviation of each column of X [N, D].

        `rows` selects rows; None for all. `names` are column names for the error message;
        without them columns are numbered from 1. The scale of a constant column is 1, so that it
        becomes 0 and never NaN.

        Raises:
            DataError: as `column_statistics`.
        """
        mean, spread, constant = column_statistics(X, rows, names)
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
        # NumPy 2 passes False to forbid a copy, and wants a ValueError where one is needed
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
    rows, split_rows = dataset.y.size, split.train.size + split.test.size + split.left_out
    # row numbers of a split ascend: the last one is the largest
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
