"""Reading of the files of an entry as inputs and target, with all treatment as declared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from typing import IO, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from svgpbench_datasets.entry import DatasetEntry
from svgpbench_datasets.errors import DataError
from svgpbench_datasets.files import File
from svgpbench_datasets.reading.cells import is_missing, quoted, text_of
from svgpbench_datasets.reading.formats import open_table
from svgpbench_datasets.reading.numbers import Block, Positions, inputs_and_target, stack
from svgpbench_datasets.reading.table import Layout, TableFile

Open: TypeAlias = Callable[[File], AbstractContextManager[IO[bytes]]]


class Missing(NamedTuple):
    """Counts of missing values of the features and the target."""

    rows: int = 0  # rows with a missing value
    cells: Mapping[str, int] = {}  # by column with missing values, in order


NONE_MISSING = Missing()


def read_entry(entry: DatasetEntry, open_file: Open) -> Block:
    """Read all files of an entry: X [N, D] and y [N], read-only; errors as `read_blocks`."""
    return stack(read_blocks(entry, open_file), len(entry.features))


def read_blocks(entry: DatasetEntry, open_file: Open) -> Iterator[Block]:
    """Read all files of an entry in blocks of rows: X [n, D] and y [n].

    Raises:
        DataError: a file does not hold what is declared; the message names file, line (binary
            formats: row) and column.
    """
    for files, rows, positions in _parts(entry):
        rows_read = 0
        for written in _as_written(entry, files, positions, open_file):
            frame = apply_treatment(written, entry, positions)
            rows_read += len(frame)
            yield inputs_and_target(frame, entry.features, entry.target, positions, entry.labels)
        if rows_read != rows:
            raise DataError(f"{positions.where} has {rows_read} rows where {rows} are declared")


def count_missing(entry: DatasetEntry, open_file: Open) -> Missing:
    """Count the missing values in the files of an entry; none if the entry refuses them."""
    if entry.missing == "refuse":
        return NONE_MISSING
    missing = pd.concat(
        missing_cells(frame, entry)
        for files, _, positions in _parts(entry)
        for frame in _as_written(entry, files, positions, open_file)
    )
    cells = {str(name): int(count) for name, count in missing.sum().items() if count}
    return Missing(int(missing.any(axis=1).sum()), cells)


def _parts(entry: DatasetEntry) -> Iterator[tuple[range, int, Positions]]:
    """Yield the file indices, the number of rows and the column positions of each stacked part."""
    width = len(entry.files) // len(entry.part_rows)
    for part, rows in enumerate(entry.part_rows):
        files = range(part * width, (part + 1) * width)
        yield files, rows, column_positions(entry, " + ".join(entry.files[i].path for i in files))


def _as_written(
    entry: DatasetEntry, files: range, positions: Positions, open_file: Open
) -> Iterator[pd.DataFrame]:
    """Yield the rows of one part, its files side by side, with the columns `entry.columns`."""
    where, columns, before = positions.where, file_columns(entry), 0
    with ExitStack() as opened:
        tables = [
            _table(entry, i, opened.enter_context(open_file(entry.files[i])), len(files) == 1)
            for i in files
        ]
        frames = tables[0].frames(None)
        if len(files) > 1:  # whole files side by side; rows are numbered as in the first
            parts = [pd.concat(list(table.frames(None)) or [pd.DataFrame()]) for table in tables]
            lengths = [len(part) for part in parts]
            if len(set(lengths)) > 1:
                rows = " and ".join(map(str, lengths))
                raise DataError(f"{where} have {rows} rows; they must agree")
            parts = [part.set_axis(parts[0].index, axis=0) for part in parts]
            frames = iter([pd.concat(parts, axis=1, ignore_index=True)])
        for frame in frames:
            if frame.shape[1] != len(columns):
                raise DataError(
                    f"{where} has {frame.shape[1]} columns where {len(columns)} are declared"
                )
            yield expand_columns(frame.set_axis(list(columns), axis=1), entry, positions, before)
            before += len(frame)


def _table(entry: DatasetEntry, index: int, stream: IO[bytes], alone: bool) -> TableFile:
    """Open one file of an entry and check its column names; `alone` if it has all columns of its part."""
    where, columns = entry.files[index].path, file_columns(entry)
    layout = Layout(
        entry.reader_of(index),
        entry.skipped_of(index),
        entry.header,
        arrays=(entry.variable,) if entry.variable else (),
        width=len(columns) if alone else None,
        words=bool(entry.categories or entry.split_cells),
    )
    table = open_table(stream, where, layout)
    if table.names is None:
        return table
    where += f": line {entry.skipped_of(index) + 1}" if entry.header else ": the header"
    if len(table.names) != len(columns):
        raise DataError(
            f"{where} names {len(table.names)} columns where {len(columns)} are declared"
        )
    for number, (name, declared) in enumerate(zip(table.names, columns, strict=True), start=1):
        unnamed = not name and declared == "row"  # R writes no name above its row numbers
        if name != declared and not unnamed:
            raise DataError(
                f"{where}, column {number} is {quoted(name)} where {declared!r} is declared"
            )
    return table


def file_columns(entry: DatasetEntry) -> tuple[str, ...]:
    """Return the columns as in the file, before cells are split and rows are numbered."""
    columns: list[str] = list(entry.columns[1:] if entry.number_rows else entry.columns)
    for name, (_, pieces) in entry.split_cells.items():
        first = columns.index(pieces[0])
        columns[first : first + len(pieces)] = [name]
    return tuple(columns)


def column_positions(entry: DatasetEntry, where: str) -> Positions:
    """Return the column positions in the file; a piece has the position of the cell it is split from."""
    columns = {name: number for number, name in enumerate(file_columns(entry), start=1)}
    for name, (_, pieces) in entry.split_cells.items():
        columns |= dict.fromkeys(pieces, columns[name])
    if entry.number_rows:
        columns[entry.columns[0]] = 0
    return Positions(where, columns)


def expand_columns(
    frame: pd.DataFrame, entry: DatasetEntry, positions: Positions, before: int
) -> pd.DataFrame:
    """Number rows and split cells as declared; the result has the columns `entry.columns`.

    `before` is the number of earlier rows of the part.
    """
    if entry.number_rows:
        frame.insert(0, entry.columns[0], before + np.arange(1.0, len(frame) + 1.0))
    for name, (separator, pieces) in entry.split_cells.items():
        cells = [text_of(cell).split(separator) for cell in frame[name]]
        for row, parts in enumerate(cells):
            if len(parts) != len(pieces):
                raise DataError(
                    f"{positions.cell(frame, row, name)} holds {quoted(str(frame[name].iloc[row]))}, not "
                    f"{len(pieces)} numbers separated by {separator!r}"
                )
        split = pd.DataFrame(cells, index=frame.index, columns=list(pieces), dtype=object)
        frame = pd.concat([frame.drop(columns=name), split], axis=1)
    return frame


def apply_treatment(frame: pd.DataFrame, entry: DatasetEntry, positions: Positions) -> pd.DataFrame:
    """Drop rows with missing values and encode categories as declared."""
    # rows are dropped before words are encoded: the mark of a missing value is no category
    if entry.missing == "drop-row":
        frame = frame[~missing_cells(frame, entry).any(axis=1)]
    for name, words in entry.categories.items():
        codes = {word: float(code) for code, word in enumerate(words)}
        if entry.missing == "middle-code":
            codes["?"] = (len(words) - 1) / 2
        cells = [text_of(cell) for cell in frame[name]]
        for row, cell in enumerate(cells):
            if cell not in codes:
                where = positions.cell(frame, row, name)
                raise DataError(f"{where} holds {quoted(cell)}, which is no declared category")
        frame = frame.assign(**{name: np.array([codes[cell] for cell in cells], dtype=np.float64)})
    return frame


def missing_cells(frame: pd.DataFrame, entry: DatasetEntry) -> pd.DataFrame:
    """Mark the cells of the features and the target that hold no value."""
    used = [name for name in entry.columns if name in {*entry.features, entry.target}]
    return pd.DataFrame(
        {
            name: ~np.isfinite(column)
            if (column := frame[name]).dtype.kind in "fiu"
            else [is_missing(cell) for cell in column]
            for name in used
        },
        index=frame.index,
        dtype=bool,
    )
