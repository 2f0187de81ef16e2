"""Common result of all readers: the rows of a file in frames, with cells as numbers or text."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple, TypeAlias

import pandas as pd

from svgpbench_datasets.errors import DataError

Row: TypeAlias = tuple[int, Sequence[object]]  # number of its line or row in the file, cells

CELLS_AT_ONCE = 1 << 16
"""Number of cells held as text at a time."""
_MOST_TIMES, _AT_LEAST = 200, 1 << 28


def check_unpacked(archive: zipfile.ZipFile) -> None:
    """Raise `ValueError` if an archive unpacks to more than 256 MiB and 200 times its size."""
    packed = sum(member.compress_size for member in archive.infolist())
    unpacked = sum(member.file_size for member in archive.infolist())
    if unpacked > max(_AT_LEAST, _MOST_TIMES * packed):
        raise ValueError(f"it unpacks to {unpacked:,} bytes")


class TableFile(NamedTuple):
    """File that is being read: its column names, if it has any, and its rows as frames.

    `frames` yields the rows in several frames. Its argument is a collection of column numbers from 0, or
    None for all; a reader may ignore it and yield all columns. The columns of a frame keep these
    numbers. Its index has the number of each line or row in the file, and is named `line` or `row`.
    """

    names: tuple[str, ...] | None
    frames: Callable[[Collection[int] | None], Iterator[pd.DataFrame]]


def frames_of_rows(
    rows: Iterable[Row], where: str, unit: str, width: int | None
) -> Iterator[pd.DataFrame]:
    """Yield rows as frames of objects, with an index named `unit`: `line` or `row`.

    `width` is the number of columns; None for that of the first row.

    Raises:
        DataError: a row has another number of cells.
    """
    rows = iter(rows)
    first = next(rows, None)
    if first is None:
        return
    width = len(first[1]) if width is None else width
    rows = chain([first], rows)
    while block := list(islice(rows, max(1, CELLS_AT_ONCE // max(1, width)))):
        for number, cells in block:
            if len(cells) != width:
                raise DataError(
                    f"{where}: {unit} {number} has {len(cells)} cells where {width} columns are "
                    "expected; check its separators"
                )
        numbers = pd.Index([number for number, _ in block], name=unit)
        yield pd.DataFrame([cells for _, cells in block], index=numbers, dtype=object)
