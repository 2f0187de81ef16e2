"""Which rows train and which test: the same on every machine for the same seed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from svgpbench_datasets.errors import DataError

Indices: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Split:
    """A partition of a data set's rows into a training and a test part.

    Raises:
        DataError: parts that are empty, not one-dimensional or overlapping.
    """

    train: Indices  # the rows to train on, ascending, [n]
    test: Indices  # the rows to test on, ascending, [m]
    kind: Literal["k-fold", "random", "fixed"]  # fixed: published with the data set
    fold: int  # which of the folds is the test part, from 0; 0 for a random split
    folds: int  # how many there are; 1 for a random split
    seed: int  # of the permutation; 0 for a fixed split
    hash: str = field(init=False)  # `sha256:` and the hash of the two index lists alone

    def __post_init__(self) -> None:
        for part in ("train", "test"):
            rows = np.array(getattr(self, part), dtype=np.int64)
            if rows.ndim != 1 or rows.size == 0:
                raise DataError(f"{part} part of a split has shape {rows.shape}; give some rows")
            rows.sort()
            rows.setflags(write=False)
            object.__setattr__(self, part, rows)
        both = np.concatenate([self.train, self.test])
        if both.min() < 0 or np.unique(both).size < both.size:
            raise DataError("a split names a row twice or a row before the first; name each once")
        object.__setattr__(self, "hash", _hash(self.train, self.test))


def k_fold(n: int, folds: int, fold: int, seed: int) -> Split:
    """One fold, from 0, of k-fold cross-validation of n rows over a permutation drawn by the seed.

    The test parts of all folds partition the rows; their sizes differ by at most one.

    Raises:
        DataError: a number out of its range.
    """
    if folds < 2:
        raise DataError(f"{folds} folds: cross-validation needs at least 2")
    if folds > n:
        raise DataError(f"{folds} folds of {n} rows: some would be empty; use at most {n}")
    if not 0 <= fold < folds:
        raise DataError(f"fold {fold} of {folds}: folds are numbered from 0 to {folds - 1}")
    parts = np.array_split(_permutation(n, seed), folds)
    test = parts.pop(fold)
    return Split(np.concatenate(parts), test, "k-fold", fold, folds, seed)


def random_split(n: int, test_fraction: float, seed: int) -> Split:
    """A random test part of the given fraction of n rows, to the nearest whole row.

    Raises:
        DataError: a number out of its range, or a fraction that leaves a part empty.
    """
    if not 0.0 < test_fraction < 1.0:
        raise DataError(f"test fraction {test_fraction}: give a number between 0 and 1")
    held_out = int(np.floor(n * test_fraction + 0.5))
    if not 0 < held_out < n:
        part = "test" if held_out <= 0 else "training"
        raise DataError(f"test fraction {test_fraction} of {n} rows leaves no {part} row")
    rows = _permutation(n, seed)
    return Split(rows[held_out:], rows[:held_out], "random", 0, 1, seed)


def _permutation(n: int, seed: int) -> Indices:
    if seed < 0:
        raise DataError(f"seed {seed}: give a whole number from 0")
    return np.random.Generator(np.random.PCG64(seed)).permutation(n).astype(np.int64)


def _hash(train: Indices, test: Indices) -> str:
    digest = hashlib.sha256()
    for part, rows in (("train", train), ("test", test)):
        digest.update(f"{part} {rows.size} <i8\n".encode())
        digest.update(rows.astype("<i8").tobytes())
    return f"sha256:{digest.hexdigest()}"
