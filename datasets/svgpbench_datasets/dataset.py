"""A data set in memory: inputs, targets, names, and a fingerprint of the numbers."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from svgpbench_datasets.errors import DataError

Task: TypeAlias = Literal["regression", "classification", "multiclass"]
Floats: TypeAlias = NDArray[np.float64]

_ROWS_AT_ONCE = 4096


def fingerprint(X: Floats, y: Floats) -> str:
    """Hash the shapes and the numbers of inputs [N, D] and targets [N]: `sha256:` and 64 digits.

    The same numbers give the same fingerprint on every machine: values are hashed as
    little-endian float64 in row order, and -0.0 counts as 0.0, to which it is equal.
    """
    digest = hashlib.sha256()
    for letter, array in (("X", X), ("y", y)):
        digest.update(f"{letter} {array.shape} <f8\n".encode())
        for start in range(0, len(array), _ROWS_AT_ONCE):  # a copy of it all may not fit
            rows = array[start : start + _ROWS_AT_ONCE] + 0.0
            digest.update(rows.astype("<f8").tobytes(order="C"))
    return f"sha256:{digest.hexdigest()}"


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table of finite numbers with a task; its arrays are private and read-only.

    An array that is sealed already (float64, in row order, its own memory, not writeable) is taken as it
    is, any other is copied: a large table is held once.

    Raises:
        DataError: shapes that do not fit together, a number that is not finite, labels
            that are not 0..K-1.
    """

    name: str  # what the user calls it, such as `boston:no-rad`
    task: Task  # of classification, y is in {0, 1}; of multiclass in 0..K-1
    X: Floats  # inputs, [N, D]
    y: Floats  # targets, [N]
    feature_names: tuple[str, ...]  # one for each of the D columns
    target_name: str
    source: str  # where the numbers come from: an address or a path
    class_labels: tuple[str, ...] | None = None  # as written, class 0 first; None for regression
    fingerprint: str = field(init=False)  # of X and y, see `fingerprint`

    def __post_init__(self) -> None:
        object.__setattr__(self, "X", _read_only(self.X))
        object.__setattr__(self, "y", _read_only(self.y))
        _check(self)
        object.__setattr__(self, "fingerprint", fingerprint(self.X, self.y))


def sealed(array: Floats) -> Floats:
    """The same array, not to be written to any more."""
    array.setflags(write=False)
    return array


def _read_only(values: ArrayLike) -> Floats:
    if isinstance(values, np.ndarray) and values.dtype == np.float64:
        flags = values.flags
        if flags.c_contiguous and flags.owndata and not flags.writeable:
            return values
    return sealed(np.array(values, dtype=np.float64, order="C"))


def _check(dataset: Dataset) -> None:
    X, y, name = dataset.X, dataset.y, dataset.name
    if X.ndim != 2 or y.ndim != 1 or X.shape[0] != y.shape[0] or 0 in X.shape:
        raise DataError(
            f"data set {name!r}: X has shape {X.shape} and y {y.shape}; give X [N, D] and y [N]"
        )
    if len(dataset.feature_names) != X.shape[1]:
        raise DataError(
            f"data set {name!r}: {len(dataset.feature_names)} feature names for "
            f"{X.shape[1]} columns; give one name a column"
        )
    if not (np.isfinite(X).all() and np.isfinite(y).all()):
        raise DataError(f"data set {name!r} holds NaN or infinity; fill in or remove those rows")
    if dataset.task == "regression":
        if dataset.class_labels is not None:
            raise DataError(f"data set {name!r}: regression has no class labels; leave them out")
        return
    classes = len(dataset.class_labels or ())
    if classes < 2 or (dataset.task == "classification" and classes != 2):
        raise DataError(f"data set {name!r}: {dataset.task} with {classes} class labels; name all")
    if not np.isin(y, np.arange(classes)).all():
        raise DataError(f"data set {name!r}: labels must be whole numbers from 0 to {classes - 1}")
