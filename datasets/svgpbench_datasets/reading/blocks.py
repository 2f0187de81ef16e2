"""A large table of text read block after block: never in memory as text and as numbers at once."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import chain, islice
from typing import IO, TypeAlias

from svgpbench_datasets.entry import DatasetEntry
from svgpbench_datasets.errors import DataError
from svgpbench_datasets.files import File
from svgpbench_datasets.reading.plain_numbers import plain_numbers
from svgpbench_datasets.reading.tables import Numbers, from_arrays, from_rows
from svgpbench_datasets.reading.text_rows import DELIMITERS, below_header, text_rows
from svgpbench_datasets.reading.treatments import file_columns, treated

Block: TypeAlias = tuple[Numbers, Numbers]  # X [n, D] and y [n]
Open: TypeAlias = Callable[[File], AbstractContextManager[IO[bytes]]]

BYTES_AT_ONCE = 1 << 21
ROWS_AT_ONCE = 1 << 14


def comes_in_blocks(entry: DatasetEntry) -> bool:
    """Whether each part of an entry is one file of separated text."""
    alone = len(entry.files) == len(entry.part_rows)
    return alone and all(entry.reader_of(at) in DELIMITERS for at in range(len(entry.files)))


def read_blocks(entry: DatasetEntry, open_file: Open) -> Iterator[Block]:
    """Read the files of an entry that `comes_in_blocks`: the numbers of `read_entry`, in order.

    Args:
        entry: what is declared.
        open_file: opens the uncompressed content of a file.

    Yields:
        X [n, D] and y [n], some rows at a time.

    Raises:
        DataError: anything that keeps a file from holding what is declared, with file, line and column.
    """
    for at, rows in enumerate(entry.part_rows):
        found = 0
        with open_file(entry.files[at]) as stream:
            for X, y in _blocks(entry, at, stream):
                found += len(y)
                yield X, y
        if found != rows:
            where = entry.files[at].path
            raise DataError(f"{where} has {found} rows where {rows} are declared")


def _blocks(entry: DatasetEntry, at: int, stream: IO[bytes]) -> Iterator[Block]:
    """Compiled code reads blocks of plain numbers; from the first other block on, rows are looked at."""
    line, row = _pass_head(entry, at, stream), 0
    where, plain = entry.files[at].path, not (entry.categories or entry.split_cells)
    while text := stream.read(BYTES_AT_ONCE) + stream.readline():
        numbers = plain_numbers(text, DELIMITERS[entry.reader_of(at)]) if plain else None
        if numbers is None or numbers.shape[1] != len(file_columns(entry)):
            yield from _looked_at(entry, at, chain(io.BytesIO(text), stream), line, row)
            return
        yield from_arrays(entry, [numbers], where, row)
        line, row = line + text.count(b"\n"), row + len(numbers)


def _looked_at(
    entry: DatasetEntry, at: int, lines: Iterator[bytes], line: int, row: int
) -> Iterator[Block]:
    """The rest of a file cell by cell; `line` lines and `row` rows of it came before."""
    where = entry.files[at].path
    rows = treated(text_rows(lines, entry, at, line), entry, where, row)
    while True:
        X, y = from_rows(entry, islice(rows, ROWS_AT_ONCE), where, row)
        if not len(y):
            return
        yield X, y
        row += len(y)


def _pass_head(entry: DatasetEntry, at: int, stream: IO[bytes]) -> int:
    """Go beyond the lines to skip and the header, which is checked: how many lines that is."""
    skipped = entry.skipped_of(at)
    for _ in range(skipped):
        stream.readline()
    if not entry.header:
        return skipped
    names = text_rows(iter([stream.readline()]), entry, at, skipped)
    next(below_header(names, entry, entry.files[at].path), None)
    return skipped + 1
