"""Conversion of frames to numbers; errors name the file, line and column of a bad cell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from svgpbench_datasets.dataset import Floats, Task, sealed
from svgpbench_datasets.errors import DataError, join_names
from svgpbench_datasets.reading.cells import (
    EXACT,
    canonical_label,
    control_character,
    finite_number,
    is_missing,
    is_never_a_word,
    is_numeral,
    quoted,
    text_of,
    why_not_a_number,
)
from svgpbench_datasets.reading.text import plain_numbers

Numbers: TypeAlias = NDArray[Any]  # float64, or uint8 where the file holds bytes
Block: TypeAlias = tuple[Numbers, Floats]  # X [n, D] and y [n]

ANOTHER_COLUMN = "choose another column of groups"


class MissingValueError(DataError):
    """A cell that holds no value; there may be more of them in the file."""


class Positions(NamedTuple):
    """File name, column positions, from 1, by column name, and separator; for error messages."""

    where: str
    positions: Mapping[str, int]
    separator: str | None = None

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
    places: dict[str, str] | None = None,
) -> Block:
    """Convert a frame to X [n, D] and y [n]; y has class numbers unless `labels` is None.

    `labels`, `more` and `places` are as for `class_numbers`. Errors are those of `numbers` and
    `class_numbers`.
    """
    X = numbers(frame, features, positions)
    if labels is None:
        return X, numbers(frame, [target], positions, predicted=True)[:, 0]
    return X, class_numbers(frame, target, positions, labels, more=more, places=places)


def numbers(
    frame: pd.DataFrame, names: Sequence[str], positions: Positions, *, predicted: bool = False
) -> Numbers:
    """Convert columns of a frame to an array [n, F]: uint8 if all columns are, else float64.

    `predicted` marks a target column, for the message.

    Raises:
        DataError: a cell holds no finite number; `MissingValueError` if it holds no value.
    """
    columns = frame[list(names)]
    dtypes = set(columns.dtypes)
    if dtypes == {np.dtype(np.uint8)}:
        return columns.to_numpy()
    if dtypes == {np.dtype(np.float64)}:
        values = columns.to_numpy()
    else:
        values = np.column_stack([as_floats(columns[name]) for name in names])
    bad = ~np.isfinite(values)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        cell = columns.iat[row, column]
        why = why_not_a_number(cell, predicted=predicted, by_commas=positions.separator == ",")
        error = MissingValueError if is_missing(cell) else DataError
        raise error(f"{positions.cell(frame, row, names[column])} {why}")
    return values


def class_numbers(
    frame: pd.DataFrame,
    name: str,
    positions: Positions,
    labels: dict[str, int],
    *,
    more: bool,
    places: dict[str, str] | None = None,
) -> Floats:
    """Convert a label column to class numbers, [n].

    With `more`, new labels are added to `labels`, spelled as in the file, and their first cells to
    `places`; `merge_spellings` has to follow. Without it, all spellings of a number are one label.

    Raises:
        DataError: a label is missing, is not in `labels`, or has control characters.
    """
    # a missing label gets a code of its own: the usual -1 would index the last class
    codes, distinct = pd.factorize(frame[name], use_na_sentinel=False)
    classes = np.empty(len(distinct))
    for code, cell in enumerate(distinct):
        text = text_of(cell)
        label = text if more and isinstance(cell, str) else canonical_label(text)
        known = label in labels
        if not known or (more and is_never_a_word(cell)):
            row = int(np.argmax(codes == code))
            place = positions.cell(frame, row, name)
            if is_never_a_word(cell) or (not more and is_missing(cell)):
                why = why_not_a_number(frame[name].iloc[row])  # `factorize` makes None NaN
                raise MissingValueError(f"{place} {why}")
            if not more:
                few = join_names(labels, 12)
                raise DataError(
                    f"{place} holds {quoted(text)}, which is not among the labels {few}"
                )
            if control_character(label):
                raise DataError(f"{place} holds {quoted(text)}, a label with a control character")
            labels[label] = len(labels)
            if places is not None:
                places[label] = place
        classes[code] = labels[label]
    return classes[codes]


def merge_spellings(
    y: Floats, labels: dict[str, int], places: Mapping[str, str], where: str
) -> tuple[Floats, dict[str, int], tuple[str, ...]]:
    """Make one class of the spellings of a number; return class numbers [N], labels and notes.

    `labels` and `places` are those of `class_numbers`; `where` names the column. A label that is spelled
    in one way keeps its spelling, such as `01`.

    Raises:
        DataError: a label such as `NA` or `None` stands in a column of numbers, where it is a missing value.
    """
    words = [label for label in labels if is_missing(label)]
    if words and (len(words) == len(labels) or any(map(is_numeral, labels))):
        raise MissingValueError(f"{places[words[0]]} {why_not_a_number(words[0])}")
    notes = []
    if words:
        few = join_names(map(repr, words), 5)
        notes.append(
            f"{where}: {few} {'is a label' if len(words) == 1 else 'are labels'} here, as the column "
            "is text; leave a cell empty where a value is missing"
        )
    spellings: dict[str, list[str]] = defaultdict(list)
    for label in labels:
        spellings[canonical_label(label)].append(label)
    merged: dict[str, int] = {}
    renumbered = np.empty(len(labels))
    for number, (canonical, written) in enumerate(spellings.items()):
        merged[written[0] if len(written) == 1 else canonical] = number
        renumbered[[labels[label] for label in written]] = number
        if len(written) > 1:
            few = join_names(map(repr, written), 5)
            notes.append(
                f"{where}: {few} are read as one label, {canonical!r}; write it in one way, or "
                "let codes differ in more than their zeros"
            )
    return renumbered[y.astype(np.int64)], merged, tuple(notes)


def count_missing(frames: Iterable[pd.DataFrame], names: Sequence[str]) -> dict[str, int]:
    """Count the cells without a value in columns of frames; columns that have none are left out."""
    counts: dict[str, int] = dict.fromkeys(names, 0)
    for frame in frames:
        for name in names:
            column = frame[name]
            counts[name] += int(
                np.isnan(column).sum()
                if column.dtype.kind == "f"
                else sum(map(is_missing, column))
                if column.dtype.kind == "O"
                else 0
            )
    return {name: count for name, count in counts.items() if count}


def sorted_classes(
    y: Floats, labels: Mapping[str, int], where: str, *, task: Task | None
) -> tuple[Floats, tuple[str, ...]]:
    """Renumber classes [N] from order of appearance to sorted order; return them and the labels.

    Labels are sorted by value if all are numbers, else as text. `task` is that of a target; None for
    groups.

    Raises:
        DataError: the number of classes does not suit the task, or the labels look like
            measurements: most are distinct numbers, and not all are integers.
    """
    numeric = all(finite_number(label) is not None for label in labels)
    classes = tuple(sorted(labels, key=float if numeric else str))
    if len(classes) < 2 or (task == "classification" and len(classes) > 2):
        few = join_names(map(quoted, classes), 5)
        alternative = "multiclass" if len(classes) > 2 else "regression"
        remedy = f"choose another target or task {alternative!r}" if task else ANOTHER_COLUMN
        needs = "needs exactly two" if task == "classification" else "needs at least two"
        missing = next(
            (f"; if {x!r} is a missing value, remove its rows" for x in classes if is_missing(x)),
            "",
        )
        raise DataError(
            f"{where} has {len(classes)} distinct value{'s' * (len(classes) != 1)} ({few}); "
            f"{task or 'a split by groups'} {needs}: {remedy}{missing}"
        )
    if numeric and 2 * len(classes) > len(y) and not all(float(x).is_integer() for x in classes):
        remedy = "choose task 'regression' or another target" if task else ANOTHER_COLUMN
        raise DataError(
            f"{where} has {len(classes)} distinct numbers in {len(y)} rows, such as {classes[0]}: "
            f"these are no labels; {remedy}"
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
        # a part of bytes may be followed by one of numbers that no byte holds
        dtype = np.promote_types(X.dtype, block_X.dtype) if start else block_X.dtype
        X = X.astype(dtype, copy=False)
        # no view of the arrays exists yet, so the check of references is not needed
        X.resize((rows, columns), refcheck=False)
        y.resize(rows, refcheck=False)
        X[start:], y[start:] = block_X, block_y
    return sealed(X), sealed(y)


def as_floats(column: pd.Series[Any]) -> Floats:
    """Convert a column to float64; NaN for what is no finite number, or an integer that float64 changes."""
    if column.dtype.kind == "f":
        return column.to_numpy(dtype=np.float64)
    if column.dtype.kind in "iu":
        values = column.to_numpy(dtype=np.float64)
        for row in np.flatnonzero(np.abs(values) >= EXACT):
            held = finite_number(str(column.iloc[row]))
            values[row] = np.nan if held is None else held
        return values
    texts = [cell if isinstance(cell, str) else text_of(cell) for cell in column]
    # one pass in compiled code, unless a cell with a line break would shift the others
    raw = "\n".join(texts).encode()
    fast = plain_numbers(raw, ",") if raw.count(b"\n") == len(texts) - 1 else None
    if fast is not None and fast.shape == (len(texts), 1):
        return fast[:, 0]
    return np.array([finite_number(text) for text in texts], dtype=np.float64)  # None becomes NaN
