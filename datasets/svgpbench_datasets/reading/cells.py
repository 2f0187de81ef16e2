"""Text to numbers: whitespace and CSV tables, every failure with its file, line and column."""

from __future__ import annotations

import csv
import math
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from svgpbench_datasets.dataset import Floats
from svgpbench_datasets.errors import DataError

Row: TypeAlias = tuple[int, list[str]]  # line number from 1, cells

# stricter than float(): no underscores, no digits of other scripts, no hexadecimal
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_MISSING = frozenset({"", "nan", "+nan", "-nan", "na", "n/a", "<na>", "null", "none", "?"})
_INFINITE = frozenset({"inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"})


@dataclass(frozen=True, eq=False)
class Cells:
    """What a reader took out of a table: numbers [N, F] and the text of the label column."""

    numbers: Floats
    labels: tuple[str, ...]


def decode_lines(lines: Iterable[bytes], where: str, before: int = 0) -> Iterator[str]:
    """Decode lines of UTF-8, without the byte order mark that some programs write first.

    `before` lines of the file came before.

    Raises:
        DataError: a byte that is not UTF-8, with its line and position.
    """
    for number, raw in enumerate(lines, start=before + 1):
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                f"{where}: line {number}, byte {error.start + 1} is not UTF-8 text; "
                "save the file as UTF-8"
            ) from None
        yield text.removeprefix("\ufeff") if number == 1 else text


def whitespace_rows(lines: Iterable[str], before: int = 0) -> Iterator[Row]:
    """Split lines at runs of spaces or tabs; blank lines are skipped. `before` lines came before."""
    for number, line in enumerate(lines, start=before + 1):
        if cells := line.split():
            yield number, cells


def csv_rows(
    lines: Iterable[str], where: str, delimiter: str = ",", before: int = 0
) -> Iterator[Row]:
    """Split separated records, which may span lines inside quotes; blank lines are skipped.

    Line numbers count the `before` lines of the file that came before.

    Raises:
        DataError: quotes that do not close or lines that end in a lone carriage return.
    """
    reader = csv.reader(lines, strict=True, delimiter=delimiter)
    while True:
        first_line = before + reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            reason = str(error).split(" - ")[0]  # what follows speaks to programmers
            raise DataError(
                f"{where}: line {first_line} is not well-formed CSV ({reason}); "
                "check its quotes and line ends"
            ) from None
        if len(cells) > 1 or any(cell.strip() for cell in cells):
            yield first_line, cells


def read_cells(
    rows: Iterable[Row],
    *,
    where: str,
    names: Sequence[str],
    numeric: Sequence[str],
    label: str | None = None,
    positions: Sequence[int] | None = None,
) -> Cells:
    """Take the named columns out of rows, as float64 and, for the label column, as text.

    Args:
        rows: line numbers and cells.
        where: the file, for messages.
        names: the name of every column, in the order of the cells.
        numeric: the F columns to read as numbers, in the order wanted.
        label: the column to keep as text; None for none.
        positions: the number of each column in the file, for messages; None for 1, 2, ...

    Returns:
        numbers [N, F] and N labels (none where `label` is None).

    Raises:
        DataError: a row of another length, a cell that is empty or not a finite number.
    """
    numbers_of = positions or range(1, len(names) + 1)
    picks = [names.index(name) for name in numeric]
    label_at = None if label is None else names.index(label)
    flat, labels = array("d"), []
    for line, cells in rows:
        if len(cells) != len(names):
            raise DataError(
                f"{where}: line {line} has {len(cells)} cells where {len(names)} columns are "
                "expected; check its separators"
            )
        for at in picks:
            value = finite_number(cells[at])
            if value is None:
                place = f"{where}: line {line}, column {numbers_of[at]} ({names[at]!r})"
                raise DataError(f"{place} {why_not_a_number(cells[at])}")
            flat.append(value)
        if label_at is not None:
            text = cells[label_at].strip()
            if is_missing(text):
                place = f"{where}: line {line}, column {numbers_of[label_at]} ({names[label_at]!r})"
                raise DataError(f"{place} {why_not_a_number(text)}")
            labels.append(text)
    numbers = np.frombuffer(flat, dtype=np.float64) if flat else np.empty(0)
    return Cells(numbers.reshape(-1, len(picks)), tuple(labels))


def finite_number(cell: str) -> float | None:
    """The finite number that a cell spells in plain decimal notation, or None."""
    text = cell.strip()
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def is_missing(cell: str) -> bool:
    """Whether a cell is empty, one of the usual marks of a missing value, or infinite."""
    text = cell.strip().lower()
    return text in _MISSING or text in _INFINITE


def why_not_a_number(cell: str) -> str:
    """The end of the sentence `line 3, column 2 ...` for a cell that `finite_number` refused."""
    text = cell.strip()
    if not text:
        return "is empty; fill it in or remove the row"
    if text.lower() in _MISSING:
        return f"holds {shown(text)}, a missing value; fill it in or remove the row"
    if text.lower() in _INFINITE:
        return f"holds {shown(text)}; give a finite number or remove the row"
    if _NUMBER.fullmatch(text):
        return f"holds {shown(text)}, too large for float64; rescale the column"
    return f"holds {shown(text)}, not a number; correct it or leave the column out"


def shown(text: str, width: int = 40) -> str:
    """Text as one short quoted line, fit for a message."""
    return repr(text if len(text) <= width else text[: width - 3] + "...")
