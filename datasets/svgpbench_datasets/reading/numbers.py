"""Conversion of frames to numbers; errors name the file, line and column of a bad cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from svgpbench_datasets.dataset import Floats, Task, sealed
from svgpbench_datasets.errors import DataError
from svgpbench_datasets.reading.cells import (
    EXACT,
    canonical_label,
    finite_number,
    is_missing,
    quoted,
    text_of,
    why_not_a_number,
)
from svgpbench_datasets.reading.text import plain_numbers

Numbers: TypeAlias = NDArray[Any]  # float64, or uint8 where the file holds bytes
Block: TypeAlias = tuple[Numbers, Floats]  # X [n, D] and y [n]


class Positions(NamedTuple):
    """File name and column positions, from 1, by column name; for error messages."""

    where: str
    positions: Mapping[str, int]

    def cell(self, frame: pd.DataFrame, row: int, name: str) -> str:
        """Return file, line and column of a cell as text; `row` counts from 0 within the frame."""
        unit, number = frame.index.name, frame.index[row]
        return f"{self.where}: {unit} {number}, column {self.positions[name]} ({name!r})"


def inputs_and_target(
    frame: pd.DataFrame,
    features: Sequence[str],
    target: str,
    positions: Positions,
    labels: dict[str, int] | None,
    *,
    more: bool = False,
) -> Block:
    """Convert a frame to X [n, D] and y [n]; y has class numbers unless `labels` is None.

    `labels` and `more` are as for `class_numbers`. Errors are those of `numbers` and `class_numbers`.
    """
    X = numbers(frame, features, positions)
    if labels is None:
        return X, numbers(frame, [target], positions, predicted=True)[:, 0]
    return X, class_numbers(frame, target, positions, labels, more=more)


def numbers(
    frame: pd.DataFrame, names: Sequence[str], positions: Positions, *, predicted: bool = False
) -> Numbers:
    """Convert columns of a frame to an array [n, F]: uint8 if all columns are, else float64.

    `predicted` marks a target column, for the message.

    Raises:
        DataError: a cell holds no finite number.
    """
    columns = frame[list(names)]
    dtypes = set(columns.dtypes)
    if dtypes == {np.dtype(np.uint8)}:
        return columns.to_numpy()
    if dtypes == {np.dtype(np.float64)}:
        values = columns.to_numpy()
    else:
        values = np.column_stack([_as_floats(columns[name]) for name in names])
    bad = ~np.isfinite(values)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        why = why_not_a_number(columns.iat[row, column], predicted=predicted)
        raise DataError(f"{positions.cell(frame, row, names[column])} {why}")
    return values


def class_numbers(
    frame: pd.DataFrame, name: str, positions: Positions, labels: dict[str, int], *, more: bool
) -> Floats:
    """Convert a label column to class numbers, [n]; with `more`, new labels are added to `labels`.

    Raises:
        DataError: a label is missing, or is not in `labels`.
    """
    codes, distinct = pd.factorize(frame[name], use_na_sentinel=False)
    classes = np.empty(len(distinct))
    for code, cell in enumerate(distinct):
        text = text_of(cell)
        label = canonical_label(text)
        if more and not is_missing(text):
            labels.setdefault(label, len(labels))
        if label not in labels:
            row = int(np.argmax(codes == code))
            text = text_of(frame[name].iloc[row])
            why = f"holds {quoted(text)}, which is not among the labels {', '.join(labels)}"
            if is_missing(text):
                why = why_not_a_number(text)
            raise DataError(f"{positions.cell(frame, row, name)} {why}")
        classes[code] = labels[label]
    return classes[codes]


def sorted_classes(
    y: Floats, labels: Mapping[str, int], where: str, *, task: Task
) -> tuple[Floats, tuple[str, ...]]:
    """Renumber classes [N] from order of appearance to sorted order; return them and the labels.

    Labels are sorted by value if all are numbers, else as text.

    Raises:
        DataError: the number of classes does not suit the task, or the labels look like
            measurements: most are distinct numbers, and not all are integers.
    """
    numeric = all(finite_number(label) is not None for label in labels)
    classes = tuple(sorted(labels, key=float if numeric else str))
    if len(classes) < 2 or (task == "classification" and len(classes) > 2):
        few = ", ".join([*map(quoted, classes[:5]), *["..."] * (len(classes) > 5)])
        alternative = "multiclass" if len(classes) > 2 else "regression"
        needs = "exactly two" if task == "classification" else "at least two"
        raise DataError(
            f"{where} has {len(classes)} distinct value{'s' * (len(classes) != 1)} ({few}); "
            f"{task} needs {needs}: choose another target or task {alternative!r}"
        )
    if numeric and 2 * len(classes) > len(y) and not all(float(x).is_integer() for x in classes):
        raise DataError(
            f"{where} has {len(classes)} distinct numbers in {len(y)} rows, such as {classes[0]}: "
            "these are no labels; choose task 'regression' or another target"
        )
    ranks = np.empty(len(classes))
    ranks[[labels[label] for label in classes]] = np.arange(len(classes))
    return ranks[y.astype(np.int64)], classes


def stack(blocks: Iterable[Block], columns: int) -> Block:
    """Stack blocks of rows to X [N, columns] and y [N], both read-only.

    The arrays grow in place, so that a large table is held once.
    """
    X: Numbers = np.empty((0, columns))
    y = np.empty(0)
    for block_X, block_y in blocks:
        start, rows = len(y), len(y) + len(block_y)
        X = X if start else X.astype(block_X.dtype)
        X.resize((rows, columns), refcheck=False)
        y.resize(rows, refcheck=False)
        X[start:], y[start:] = block_X, block_y
    return sealed(X), sealed(y)


def _as_floats(column: pd.Series[Any]) -> Floats:
    """Convert a column to float64; NaN for text that is no finite number and integers beyond 2**53."""
    if column.dtype.kind == "f":
        return column.to_numpy(dtype=np.float64)
    if column.dtype.kind in "iu":
        values = column.to_numpy()
        exact = (values <= EXACT) & (values >= -EXACT if values.dtype.kind == "i" else True)
        return np.where(exact, values, np.nan)
    texts = [cell if isinstance(cell, str) else text_of(cell) for cell in column]
    raw = "\n".join(texts).encode()
    fast = plain_numbers(raw, ",") if raw.count(b"\n") == len(texts) - 1 else None
    if fast is not None and fast.shape == (len(texts), 1):
        return fast[:, 0]
    return np.array([finite_number(text) for text in texts], dtype=np.float64)  # None becomes NaN
