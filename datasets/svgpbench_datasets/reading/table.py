"""Types that all readers take and return: layout of a file, and its rows in frames as numbers or text."""

from __future__ import annotations

import zipfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple, Protocol, TypeAlias

import pandas as pd

from svgpbench_datasets.errors import DataError
from svgpbench_datasets.reading.cells import text_of

Row: TypeAlias = tuple[int, Sequence[object]]  # number of its line or row in the file, cells

CELLS_AT_ONCE = 1 << 16
"""Number of cells held as text at a time."""
_MOST_TIMES, _AT_LEAST = 200, 1 << 28


class Layout(NamedTuple):
    """Format and structure of a table file."""

    reader: str  # format, see `formats.READERS`
    skip_lines: int = 0  # lines before the header or the first row
    header: bool | None = False  # True if a line names the columns; None to detect it
    arrays: tuple[str, ...] = ()  # names of the arrays to read; empty for all
    width: int | None = None  # number of columns; None if not known in advance
    words: bool = False  # True to keep cells as text, even if all are numbers
    names: tuple[str, ...] | None = None  # names from a comment above the rows


def check_unpacked(archive: zipfile.ZipFile) -> None:
    """Raise `ValueError` if an archive unpacks to more than 256 MiB and 200 times its size."""
    packed = sum(member.compress_size for member in archive.infolist())
    unpacked = sum(member.file_size for member in archive.infolist())
    if unpacked > max(_AT_LEAST, _MOST_TIMES * packed):
        raise ValueError(f"it unpacks to {unpacked:,} bytes")


class Frames(Protocol):
    """Function that yields the rows of a table in several frames.

    `indices` is a collection of column numbers from 0, or None for all; a reader may ignore it and yield
    all columns. Cells of the columns `spelled` are text as in the file, where the file is text. The
    columns of a frame keep their numbers. Its index has the number of each line or row in the file, and
    is named `line` or `row`.
    """

    def __call__(
        self, indices: Collection[int] | None, spelled: Collection[int] = ()
    ) -> Iterator[pd.DataFrame]: ...


class TableFile(NamedTuple):
    """File that is being read: its column names, if it has any, and its rows as frames."""

    names: tuple[str, ...] | None
    frames: Frames
    row_index: tuple[str, ...] = ()  # columns that the file itself calls the index of its rows
    separator: str | None = None  # of the cells of a text


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
                    f"expected; {_remedy(cells, width, is_first=cells is first[1])}"
                )
        numbers = pd.Index([number for number, _ in block], name=unit)
        yield pd.DataFrame([cells for _, cells in block], index=numbers, dtype=object)


def _remedy(cells: Sequence[object], width: int, *, is_first: bool) -> str:
    """Return what to do about a row that does not have `width` cells."""
    if str(cells[0]).lstrip().startswith("#"):
        return "remove comments that begin with #"
    if len(cells) == width + 1 and not text_of(cells[-1]):
        return "remove the separator at its end"
    if len(cells) == width + 1 and is_first:
        return (
            "check its separators, and whether a column of row names lacks its name in the header"
        )
    return "check its separators"
