"""Splits into training and test rows; a seed gives the same split on every machine."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from svgpbench_datasets.errors import DataError

Indices: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Split:
    """Partition of the rows of a data set into a training and a test part, and rows in neither.

    Raises:
        DataError: a part is empty, not one-dimensional or not of whole numbers, a row is repeated or
            negative.
    """

    train: Indices  # training rows, ascending, [n]
    test: Indices  # test rows, ascending, [m]
    kind: Literal["k-fold", "random", "fixed", "groups", "blocks", "column"]
    fold: int  # fold that is the test part, from 0; 0 for a random split
    folds: int  # number of folds; 1 for a random split
    seed: int  # seed of the permutation; 0 for a fixed split
    left_out: int = 0  # number of rows in neither part
    hash: str = field(init=False)  # `sha256:` and the hash of the two index arrays alone

    def __post_init__(self) -> None:
        digest = hashlib.sha256()
        for part in ("train", "test"):
            named = np.asarray(getattr(self, part))
            with np.errstate(invalid="ignore"):  # NaN is no row, and is refused below
                rows = named.astype(np.int64)
            if rows.ndim != 1 or rows.size == 0:
                raise DataError(f"{part} part of a split has shape {rows.shape}; give some rows")
            if named.dtype == np.bool_ or not np.array_equal(rows, named):
                raise DataError(
                    f"{part} part of a split holds {named.dtype}, not whole numbers; give row numbers"
                )
            # before hashing: the same rows in another order are the same split
            rows.sort()
            rows.setflags(write=False)
            object.__setattr__(self, part, rows)
            digest.update(f"{part} {rows.size} <i8\n".encode() + rows.astype("<i8").tobytes())
        rows = np.concatenate([self.train, self.test])
        if rows.min() < 0 or np.unique(rows).size < rows.size:
            raise DataError("a split names a row twice or a row before the first; name each once")
        object.__setattr__(self, "hash", f"sha256:{digest.hexdigest()}")


def k_fold(n: int, folds: int, fold: int, seed: int) -> Split:
    """Return one fold (from 0) of a k-fold cross-validation of n rows, permuted by the seed.

    The test parts of all folds partition the rows; their sizes differ by at most one.

    Raises:
        DataError: an argument is out of range.
    """
    _check_fold(n, folds, fold)
    parts = np.array_split(_permutation(n, seed), folds)
    test = parts.pop(fold)
    return Split(np.concatenate(parts), test, "k-fold", fold, folds, seed)


def block_fold(n: int, folds: int, fold: int) -> Split:
    """Return one fold (from 0) of n rows cut into blocks of consecutive rows, without a permutation.

    Raises:
        DataError: an argument is out of range.
    """
    _check_fold(n, folds, fold)
    parts = np.array_split(np.arange(n), folds)
    test = parts.pop(fold)
    return Split(np.concatenate(parts), test, "blocks", fold, folds, 0)


def group_fold(groups: Indices, folds: int, fold: int, seed: int) -> Split:
    """Return one fold (from 0) in which all rows of a group are on the same side.

    Groups are permuted by the seed; each goes to the fold that has the fewest rows so far.

    Args:
        groups: number of each row's group, [n], from 0.
        folds: number of folds, at most the number of groups.
        fold: fold that is the test part.
        seed: seed of the permutation.

    Raises:
        DataError: an argument is out of range.
    """
    sizes = np.bincount(groups)
    _check_fold(len(sizes), folds, fold, "groups")
    rows_of_fold = np.zeros(folds, dtype=np.int64)
    fold_of_group = np.zeros(len(sizes), dtype=np.int64)
    for group in _permutation(len(sizes), seed):
        fold_of_group[group] = np.argmin(rows_of_fold)
        # a group without rows counts too, or its fold would still be the next to be filled
        rows_of_fold[fold_of_group[group]] += max(1, sizes[group])
    is_test = fold_of_group[groups] == fold
    return Split(np.flatnonzero(~is_test), np.flatnonzero(is_test), "groups", fold, folds, seed)


def column_fold(groups: Indices, fold: int) -> Split:
    """Return the fold whose test part are the rows of group number `fold`; every group is a fold.

    Raises:
        DataError: there is no such group.
    """
    folds = int(groups.max()) + 1
    _check_fold(folds, folds, fold, "values")
    is_test = groups == fold
    return Split(np.flatnonzero(~is_test), np.flatnonzero(is_test), "column", fold, folds, 0)


def random_split(n: int, test_fraction: float, seed: int) -> Split:
    """Return a random split of n rows; the size of the test part is rounded to whole rows.

    Raises:
        DataError: an argument is out of range, or a part would be empty.
    """
    if not 0.0 < test_fraction < 1.0:
        raise DataError(f"test fraction {test_fraction}: give a number between 0 and 1")
    # `round` would take halves to the even number
    held_out = int(np.floor(n * test_fraction + 0.5))
    if not 0 < held_out < n:
        part = "test" if held_out <= 0 else "training"
        raise DataError(f"test fraction {test_fraction} of {n} rows leaves no {part} row")
    rows = _permutation(n, seed)
    return Split(rows[held_out:], rows[:held_out], "random", 0, 1, seed)


def hold_out(split: Split, share: float, seed: int) -> Split:
    """Return the training part of a split, with a random share of it as the test part.

    The test part of `split` is left out, so that it plays no part in a choice, such as of learning rates.

    Raises:
        DataError: the share is out of range, or a part would be empty.
    """
    inner = random_split(len(split.train), share, seed)
    train, test = split.train[inner.train], split.train[inner.test]
    # `replace` runs the checks again and hashes the new rows
    return replace(split, train=train, test=test, left_out=split.left_out + split.test.size)


def _check_fold(n: int, folds: int, fold: int, units: str = "rows") -> None:
    if folds < 2:
        raise DataError(f"{folds} folds: cross-validation needs at least 2")
    if folds > n:
        raise DataError(f"{folds} folds of {n} {units}: some would be empty; use at most {n}")
    if not 0 <= fold < folds:
        raise DataError(f"fold {fold} of {folds}: folds are numbered from 0 to {folds - 1}")


def _permutation(n: int, seed: int) -> Indices:
    if seed < 0:
        raise DataError(f"seed {seed}: give a whole number from 0")
    # by name: NumPy may give `default_rng` another generator some day
    return np.random.Generator(np.random.PCG64(seed)).permutation(n).astype(np.int64)
