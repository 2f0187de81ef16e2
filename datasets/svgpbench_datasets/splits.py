"""Splits into training and test rows; a seed gives the same split on every machine."""

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
    """Partition of the rows of a data set into a training and a test part.

    Raises:
        DataError: a part is empty or not one-dimensional, a row is repeated or negative.
    """

    train: Indices  # training rows, ascending, [n]
    test: Indices  # test rows, ascending, [m]
    kind: Literal["k-fold", "random", "fixed"]  # fixed: published with the data set
    fold: int  # fold that is the test part, from 0; 0 for a random split
    folds: int  # number of folds; 1 for a random split
    seed: int  # seed of the permutation; 0 for a fixed split
    hash: str = field(init=False)  # `sha256:` and the hash of the two index arrays alone

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
    """Return one fold (from 0) of a k-fold cross-validation of n rows, permuted by the seed.

    The test parts of all folds partition the rows; their sizes differ by at most one.

    Raises:
        DataError: an argument is out of range.
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
    """Return a random split of n rows; the size of the test part is rounded to whole rows.

    Raises:
        DataError: an argument is out of range, or a part would be empty.
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
