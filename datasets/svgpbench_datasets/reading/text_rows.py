"""One text file of an entry to rows of cells: its separators, its header, its line numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from svgpbench_datasets.entry import DatasetEntry
from svgpbench_datasets.errors import DataError
from svgpbench_datasets.reading.cells import Row, csv_rows, decode_lines, shown, whitespace_rows
from svgpbench_datasets.reading.treatments import file_columns

DELIMITERS = {"whitespace": None, "csv": ",", "semicolon": ";", "tab": "\t"}
"""What stands between cells, by reader; None for runs of spaces and tabs."""


def text_rows(lines: Iterable[bytes], entry: DatasetEntry, at: int, before: int) -> Iterator[Row]:
    """Split lines of the text file `entry.files[at]`; `before` lines of it came before.

    Raises:
        DataError: bytes that are not UTF-8, quotes that do not close.
    """
    where, delimiter = entry.files[at].path, DELIMITERS[entry.reader_of(at)]
    text = decode_lines(lines, where, before)
    if delimiter is None:
        return whitespace_rows(text, before)
    return csv_rows(text, where, delimiter, before)


def below_header(rows: Iterator[Row], entry: DatasetEntry, where: str) -> Iterator[Row]:
    """The rows after the first, which must name the columns as declared.

    Raises:
        DataError: no first row, or other names.
    """
    header = next(rows, None)
    if header is None:
        raise DataError(f"{where} is empty where a header line is expected")
    check_names([cell.strip() for cell in header[1]], entry, f"{where}: line {header[0]}")
    yield from rows


def check_names(names: Sequence[str], entry: DatasetEntry, place: str) -> None:
    """Raise `DataError` unless a file's column names are the declared ones."""
    declared = file_columns(entry)
    if len(names) != len(declared):
        raise DataError(f"{place} names {len(names)} columns where {len(declared)} are declared")
    for at, (found, expected) in enumerate(zip(names, declared, strict=True), start=1):
        unnamed = not found and expected == "row"  # R writes no name above its row numbers
        if found != expected and not unnamed:
            raise DataError(
                f"{place}, column {at} is {shown(found)} where {expected!r} is declared"
            )
