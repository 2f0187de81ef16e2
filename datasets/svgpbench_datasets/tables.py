"""The files of an entry to numbers and labels, each by the reader that the entry names."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from svgpbench_datasets.arff import arff_rows
from svgpbench_datasets.binary_tables import idx_table, mat_table, xls_rows
from svgpbench_datasets.entry import DatasetEntry
from svgpbench_datasets.errors import DataError
from svgpbench_datasets.files import DataFile, LocalFile
from svgpbench_datasets.labels import mapped_labels, mapped_numbers
from svgpbench_datasets.plain_numbers import plain_numbers
from svgpbench_datasets.readers import (
    Cells,
    Row,
    csv_rows,
    decode_lines,
    read_cells,
    shown,
    whitespace_rows,
)
from svgpbench_datasets.treatments import file_columns, file_positions, treated

Numbers: TypeAlias = NDArray[Any]  # float64, or uint8 where the file holds bytes
Open: TypeAlias = Callable[[DataFile | LocalFile], bytes]

_DELIMITERS = {"whitespace": None, "csv": ",", "semicolon": ";", "tab": "\t"}


def read_entry(entry: DatasetEntry, open_file: Open) -> tuple[Numbers, Numbers]:
    """Read every file of an entry.

    Args:
        entry: what is declared.
        open_file: gives the uncompressed content of a file.

    Returns:
        X [N, D] and y [N].

    Raises:
        DataError: anything that keeps a file from holding what is declared, with file, line
            (binary formats: row) and column.
    """
    parts = [
        _part(entry, files, rows, open_file)
        for files, rows in zip(_files_of_parts(entry), entry.part_rows, strict=True)
    ]
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])


def rows_as_written(entry: DatasetEntry, open_file: Open) -> Iterator[Row]:
    """The rows of an entry's text files with missing values and words left as they are.

    Args:
        entry: what is declared.
        open_file: gives the uncompressed content of a file.

    Yields:
        line numbers and cells, one for each of `entry.columns`.

    Raises:
        DataError: a file that is not what is declared.
    """
    untouched = entry.model_copy(update={"missing": "refuse", "categories": {}})
    for files in _files_of_parts(entry):
        where = " + ".join(entry.files[at].path for at in files)
        tables = [_File(entry, at, open_file(entry.files[at])) for at in files]
        yield from treated(
            _side_by_side([table.rows() for table in tables], where), untouched, where
        )


def _files_of_parts(entry: DatasetEntry) -> list[list[int]]:
    """The files of each stacked part, by their places in `files`."""
    width = len(entry.files) // len(entry.part_rows)
    return [list(range(at, at + width)) for at in range(0, len(entry.files), width)]


def _part(
    entry: DatasetEntry, files: list[int], rows: int, open_file: Open
) -> tuple[Numbers, Numbers]:
    """One stacked part: files side by side, [rows, D] and [rows]."""
    where = " + ".join(entry.files[at].path for at in files)
    tables = [_File(entry, at, open_file(entry.files[at])) for at in files]
    whole = [table.array() for table in tables]
    X, y = _from_arrays(entry, whole, where) if _all(whole) else _from_rows(entry, tables, where)
    if len(y) != rows:
        raise DataError(f"{where} has {len(y)} rows where {rows} are declared")
    return X, y


def _all(arrays: Sequence[Numbers | None]) -> bool:
    return all(array is not None for array in arrays)


def _from_arrays(
    entry: DatasetEntry, arrays: Sequence[Numbers | None], where: str
) -> tuple[Numbers, Numbers]:
    whole = [array for array in arrays if array is not None]
    lengths = [len(array) for array in whole]
    if len(set(lengths)) > 1:
        raise DataError(f"{where} have {' and '.join(map(str, lengths))} rows; they must agree")
    found, columns = sum(array.shape[1] for array in whole), file_columns(entry)
    if found != len(columns):
        raise DataError(f"{where} has {found} columns where {len(columns)} are declared")
    if entry.number_rows:
        whole = [np.arange(1.0, lengths[0] + 1.0)[:, None], *whole]
    table = whole[0] if len(whole) == 1 else np.concatenate(whole, axis=1)
    picks = [entry.columns.index(name) for name in entry.features]
    target = table[:, entry.columns.index(entry.target)]
    y = target if entry.labels is None else mapped_numbers(target, entry.labels, where)
    in_order = picks == list(range(picks[0], picks[0] + len(picks)))
    return table[:, picks[0] : picks[-1] + 1] if in_order else table[:, picks], y


def _from_rows(entry: DatasetEntry, tables: Sequence[_File], where: str) -> tuple[Numbers, Numbers]:
    rows = treated(_side_by_side([table.rows() for table in tables], where), entry, where)
    regression = entry.labels is None
    cells: Cells = read_cells(
        rows,
        where=where,
        names=entry.columns,
        numeric=(*entry.features, entry.target) if regression else entry.features,
        label=None if regression else entry.target,
        positions=file_positions(entry),
    )
    if entry.labels is None:
        return cells.numbers[:, :-1], cells.numbers[:, -1]
    return cells.numbers, mapped_labels(cells.labels, entry.labels, where)


def _side_by_side(tables: Sequence[Iterator[Row]], where: str) -> Iterator[Row]:
    if len(tables) == 1:
        yield from tables[0]
        return
    try:
        for parts in zip(*tables, strict=True):
            yield parts[0][0], [cell for _, cells in parts for cell in cells]
    except ValueError as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{where} have different numbers of rows; they must agree") from None


class _File:
    """One file of an entry: as one array where that is possible, else row by row."""

    def __init__(self, entry: DatasetEntry, at: int, raw: bytes) -> None:
        self._entry, self._raw = entry, raw
        self._where = entry.files[at].path
        self._reader, self._skipped = entry.reader_of(at), entry.skipped_of(at)
        self._alone = len(entry.files) == len(entry.part_rows)

    def array(self) -> Numbers | None:
        """The whole file as numbers, [n, C], or None where rows have to be looked at."""
        if self._reader == "idx":
            return idx_table(self._raw, self._where)
        if self._reader == "mat":
            return mat_table(self._raw, self._where, self._entry.variable)
        treated_cells = self._entry.categories or self._entry.split_cells
        if self._reader not in _DELIMITERS or treated_cells:
            return None
        head, body = self._head_and_body()
        numbers = plain_numbers(body, _DELIMITERS[self._reader])
        if numbers is None or (self._alone and numbers.shape[1] != len(file_columns(self._entry))):
            return None
        if self._entry.header:  # its names are checked where rows are read: once is enough
            next(self._named(iter(self._split(io.BytesIO(head), self._skipped))), None)
        return numbers

    def rows(self) -> Iterator[Row]:
        """Line numbers and cells."""
        if self._reader == "arff":
            names, rows = arff_rows(decode_lines(io.BytesIO(self._raw), self._where), self._where)
            _check_header(names, self._entry, f"{self._where}: the header")
            return rows
        if self._reader == "xls":
            rows = islice(xls_rows(self._raw, self._where), self._skipped, None)
        else:
            rows = self._split(io.BytesIO(self._raw), self._skipped)
        return self._named(rows) if self._entry.header else rows

    def _split(self, lines: io.BytesIO, skipped: int) -> Iterator[Row]:
        text = islice(decode_lines(lines, self._where), skipped, None)
        delimiter = _DELIMITERS[self._reader]
        if delimiter is not None:
            return csv_rows(text, self._where, delimiter, skipped)
        return ((line + skipped, cells) for line, cells in whitespace_rows(text))

    def _named(self, rows: Iterator[Row]) -> Iterator[Row]:
        header = next(rows, None)
        if header is None:
            raise DataError(f"{self._where} is empty where a header line is expected")
        names = [cell.strip() for cell in header[1]]
        _check_header(names, self._entry, f"{self._where}: line {header[0]}")
        yield from rows

    def _head_and_body(self) -> tuple[bytes, bytes]:
        lines, end = self._skipped + self._entry.header, 0
        for _ in range(lines):
            at = self._raw.find(b"\n", end)
            if at < 0:
                return self._raw, b""
            end = at + 1
        return self._raw[:end], self._raw[end:]


def _check_header(names: Sequence[str], entry: DatasetEntry, place: str) -> None:
    declared = file_columns(entry)
    if len(names) != len(declared):
        raise DataError(f"{place} names {len(names)} columns where {len(declared)} are declared")
    for at, (found, expected) in enumerate(zip(names, declared, strict=True), start=1):
        unnamed = not found and expected == "row"  # R writes no name above its row numbers
        if found != expected and not unnamed:
            raise DataError(
                f"{place}, column {at} is {shown(found)} where {expected!r} is declared"
            )
