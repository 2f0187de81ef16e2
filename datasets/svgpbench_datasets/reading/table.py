"""What every reader gives: the rows of a file some at a time, each cell a number or its text."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple, TypeAlias

import pandas as pd

from svgpbench_datasets.errors import DataError

Row: TypeAlias = tuple[int, Sequence[object]]  # number of its line or row in the file, cells

CELLS_AT_ONCE = 1 << 16
"""Cells that are held as text at a time."""


_MOST_TIMES, _AT_LEAST = 200, 1 << 28


def check_unpacked(archive: zipfile.ZipFile) -> None:
    """Raise `ValueError` for an archive of more than 200 times its size and 256 MiB: a bomb."""
    packed = sum(member.compress_size for member in archive.infolist())
    unpacked = sum(member.file_size for member in archive.infolist())
    if unpacked > max(_AT_LEAST, _MOST_TIMES * packed):
        raise ValueError(f"it unpacks to {unpacked:,} bytes")


class Table(NamedTuple):
    """A file that is being read: the names of its columns, if it has any, and its rows as frames.

    `frames` gives some rows at a time, of all columns or of those wanted, by number from 0. Columns are
    numbers from 0; the index is the number of each row in the file, and is named `line` or `row`.
    """

    names: tuple[str, ...] | None
    frames: Callable[[Collection[int] | None], Iterator[pd.DataFrame]]


def frames_of_rows(
    rows: Iterable[Row], where: str, unit: str, width: int | None
) -> Iterator[pd.DataFrame]:
    """Rows as frames of objects, numbered by `unit`: `line` or `row`; no width is that of the first row."""
    rows = iter(rows)
    first = next(rows, None)
    if first is None:
        return
    width = len(first[1]) if width is None else width
    rows = chain([first], rows)
    while some := list(islice(rows, max(1, CELLS_AT_ONCE // max(1, width)))):
        for number, cells in some:
            if len(cells) != width:
                raise DataError(
                    f"{where}: {unit} {number} has {len(cells)} cells where {width} columns are "
                    "expected; check its separators"
                )
        numbers = pd.Index([number for number, _ in some], name=unit)
        yield pd.DataFrame([cells for _, cells in some], index=numbers, dtype=object)
