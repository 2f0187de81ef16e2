"""Data sets in memory: inputs, targets, names, and a fingerprint of the numbers."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from svgpbench_datasets.errors import DataError
from svgpbench_datasets.reading.cells import control_character

Task: TypeAlias = Literal["regression", "classification", "multiclass"]
Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_ROWS_AT_ONCE = 4096


def fingerprint(X: Floats, y: Floats, groups: Integers | None = None) -> str:
    """Hash the shapes and values of inputs [N, D] and targets [N]; return `sha256:` and 64 hex digits.

    Equal numbers give the same fingerprint on every machine: values are hashed as
    little-endian float64 in row order, and -0.0 is hashed as 0.0. Group numbers [N] are hashed if given.
    """
    digest = hashlib.sha256()
    arrays = {"X": X, "y": y} | ({} if groups is None else {"groups": groups.astype(np.float64)})
    for letter, array in arrays.items():
        digest.update(f"{letter} {array.shape} <f8\n".encode())
        for start in range(0, len(array), _ROWS_AT_ONCE):  # a full copy may not fit in memory
            # -0.0 + 0.0 is 0.0, and no other number changes
            rows = array[start : start + _ROWS_AT_ONCE] + 0.0
            digest.update(rows.astype("<f8").tobytes(order="C"))
    return f"sha256:{digest.hexdigest()}"


@dataclass(frozen=True, eq=False)
class Dataset:
    """Table of finite numbers with a task; its arrays are read-only.

    An array that is already sealed (float64, C order, owner of its memory, not writeable) is used without
    a copy, so that a large table is held once. Any other array is copied.

    Raises:
        DataError: the shapes do not agree, a number is not finite or not a real number, the labels
            are not 0..K-1, a group has no label, or a name or label has control characters.
    """

    name: str  # name that the user gives, such as `boston:no-rad`
    task: Task  # y is in {0, 1} for classification, in 0..K-1 for multiclass
    X: Floats  # inputs, [N, D]
    y: Floats  # targets, [N]
    feature_names: tuple[str, ...]  # one per column of X, [D]
    target_name: str
    source: str  # origin of the numbers: an address or a path
    class_labels: tuple[str, ...] | None = None  # as written, class 0 first; None for regression
    groups: Integers | None = (
        None  # number of each row's group, [N], in the order of `group_labels`
    )
    group_labels: tuple[str, ...] = ()  # as written, sorted
    notes: tuple[str, ...] = ()  # what its reader decided and a user should know, one line each
    fingerprint: str = field(init=False)  # of X, y and groups, see `fingerprint`

    def __post_init__(self) -> None:
        object.__setattr__(self, "X", _read_only(self.X, f"X of data set {self.name!r}"))
        object.__setattr__(self, "y", _read_only(self.y, f"y of data set {self.name!r}"))
        _check(self)
        if self.groups is not None:
            object.__setattr__(self, "groups", _groups(self))
        object.__setattr__(self, "fingerprint", fingerprint(self.X, self.y, self.groups))


def sealed(array: Floats) -> Floats:
    """Make an array read-only in place and return it."""
    array.setflags(write=False)
    return array


def _read_only(values: ArrayLike, what: str) -> Floats:
    """Return an array as read-only float64; raise `DataError` if that would change a value."""
    if isinstance(values, np.ndarray) and values.dtype == np.float64:
        flags = values.flags
        # a view is copied although it is read-only: the owner of its memory can still write
        if (
            flags.c_contiguous
            and flags.owndata
            and not flags.writeable
            and type(values) is np.ndarray
        ):
            return values
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        place = np.argwhere(np.ma.getmaskarray(values))[0].tolist()
        raise DataError(f"{what} is missing at {place}: it is masked; fill it in or remove the row")
    kind = np.asarray(values).dtype
    if kind.kind not in "biufO":
        raise DataError(f"{what} is of type {kind}; give real numbers")
    floats = np.array(values, dtype=np.float64, order="C")
    # from 2**53 on float64 skips whole numbers; integers of 32 bits all fit
    if kind.kind in "iu" and kind.itemsize == 8:
        # 2**63 - 1 becomes 2**63, which int64 lacks: the cast back warns
        with np.errstate(invalid="ignore"):
            changed = floats.astype(kind) != values
        if changed.any():
            place = np.argwhere(changed)[0].tolist()
            raise DataError(
                f"{what} holds at {place} a whole number that float64 cannot; rescale it"
            )
    return sealed(floats)


def _groups(dataset: Dataset) -> Integers:
    """Return the groups as read-only integers; raise `DataError` unless each row has a labelled one."""
    groups, labels = np.asarray(dataset.groups), len(dataset.group_labels)
    whole = groups.dtype.kind in "iu" and groups.shape == dataset.y.shape
    if not whole or groups.min() < 0 or groups.max() >= labels:
        raise DataError(
            f"data set {dataset.name!r}: groups must be a whole number per row, the place of its group "
            f"among the {labels} group_labels, from 0"
        )
    numbers = np.array(groups, dtype=np.int64)
    numbers.setflags(write=False)
    return numbers


def _check(dataset: Dataset) -> None:
    X, y, name = dataset.X, dataset.y, dataset.name
    labels = (*(dataset.class_labels or ()), *dataset.group_labels)
    for text in (name, dataset.target_name, *dataset.feature_names, *labels):
        if control_character(text):
            raise DataError(f"data set {name!r}: {text!r} has a control character; rename it")
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
