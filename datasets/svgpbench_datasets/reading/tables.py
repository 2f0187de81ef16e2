"""The files of an entry to numbers and labels, each by the reader that the entry names."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from svgpbench_datasets.entry import DatasetEntry
from svgpbench_datasets.errors import DataError
from svgpbench_datasets.files import File
from svgpbench_datasets.reading.arff import arff_rows
from svgpbench_datasets.reading.binary_tables import idx_table, mat_table, xls_rows
from svgpbench_datasets.reading.cells import Cells, Row, decode_lines, read_cells
from svgpbench_datasets.reading.labels import mapped_labels, mapped_numbers
from svgpbench_datasets.reading.plain_numbers import plain_numbers
from svgpbench_datasets.reading.text_rows import DELIMITERS, below_header, check_names, text_rows
from svgpbench_datasets.reading.treatments import file_columns, file_positions, treated

Numbers: TypeAlias = NDArray[Any]  # float64, or uint8 where the file holds bytes
Open: TypeAlias = Callable[[File], bytes]


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
    if _all(whole):
        X, y = from_arrays(entry, [array for array in whole if array is not None], where)
    else:
        rows_of_all = _side_by_side([table.rows() for table in tables], where)
        X, y = from_rows(entry, treated(rows_of_all, entry, where), where)
    if len(y) != rows:
        raise DataError(f"{where} has {len(y)} rows where {rows} are declared")
    return X, y


def _all(arrays: Sequence[Numbers | None]) -> bool:
    return all(array is not None for array in arrays)


def from_arrays(
    entry: DatasetEntry, arrays: Sequence[Numbers], where: str, before: int = 0
) -> tuple[Numbers, Numbers]:
    """X [n, D] and y [n] of numbers that stand side by side, [n, C] in all; `before` rows came before.

    Raises:
        DataError: arrays of unequal length, another number of columns, a label that is not declared.
    """
    lengths = [len(array) for array in arrays]
    if len(set(lengths)) > 1:
        raise DataError(f"{where} have {' and '.join(map(str, lengths))} rows; they must agree")
    found, columns = sum(array.shape[1] for array in arrays), file_columns(entry)
    if found != len(columns):
        raise DataError(f"{where} has {found} columns where {len(columns)} are declared")
    if entry.number_rows:
        arrays = [before + np.arange(1.0, lengths[0] + 1.0)[:, None], *arrays]
    table = arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=1)
    picks = [entry.columns.index(name) for name in entry.features]
    y = table[:, entry.columns.index(entry.target)]
    if entry.labels is not None:
        y = mapped_numbers(y, entry.labels, where, before)
    in_order = picks == list(range(picks[0], picks[0] + len(picks)))
    return table[:, picks[0] : picks[-1] + 1] if in_order else table[:, picks], y


def from_rows(
    entry: DatasetEntry, rows: Iterable[Row], where: str, before: int = 0
) -> tuple[Numbers, Numbers]:
    """X [n, D] and y [n] of rows that are treated as declared; `before` rows came before.

    Raises:
        DataError: a cell that is not what is declared.
    """
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
    return cells.numbers, mapped_labels(cells.labels, entry.labels, where, before)


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
        self._entry, self._at, self._raw = entry, at, raw
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
        if self._reader not in DELIMITERS or treated_cells:
            return None
        head, body = self._head_and_body()
        numbers = plain_numbers(body, DELIMITERS[self._reader])
        if numbers is None or (self._alone and numbers.shape[1] != len(file_columns(self._entry))):
            return None
        if self._entry.header:  # its names are checked where rows are read: once is enough
            lines = islice(io.BytesIO(head), self._skipped, None)
            rows = text_rows(lines, self._entry, self._at, self._skipped)
            next(below_header(rows, self._entry, self._where), None)
        return numbers

    def rows(self) -> Iterator[Row]:
        """Line numbers and cells."""
        if self._reader == "arff":
            names, rows = arff_rows(decode_lines(io.BytesIO(self._raw), self._where), self._where)
            check_names(names, self._entry, f"{self._where}: the header")
            return rows
        if self._reader == "xls":
            rows = islice(xls_rows(self._raw, self._where), self._skipped, None)
        else:
            lines = islice(io.BytesIO(self._raw), self._skipped, None)
            rows = text_rows(lines, self._entry, self._at, self._skipped)
        return below_header(rows, self._entry, self._where) if self._entry.header else rows

    def _head_and_body(self) -> tuple[bytes, bytes]:
        lines, end = self._skipped + self._entry.header, 0
        for _ in range(lines):
            at = self._raw.find(b"\n", end)
            if at < 0:
                return self._raw, b""
            end = at + 1
        return self._raw[:end], self._raw[end:]
