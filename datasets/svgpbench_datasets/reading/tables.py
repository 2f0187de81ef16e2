"""Reading of the files of an entry as inputs and target, with all treatment as declared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import IO, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from svgpbench_datasets.entry import DatasetEntry
from svgpbench_datasets.errors import DataError
from svgpbench_datasets.files import File
from svgpbench_datasets.reading.cells import is_missing, shown, text_of
from svgpbench_datasets.reading.formats import open_table
from svgpbench_datasets.reading.layout import Layout
from svgpbench_datasets.reading.numbers import Block, Places, gathered, inputs_and_target
from svgpbench_datasets.reading.table import TableFile

Open: TypeAlias = Callable[[File], AbstractContextManager[IO[bytes]]]


class Missing(NamedTuple):
    """Counts of missing values of the features and the target."""

    rows: int = 0  # rows with a missing value
    cells: Mapping[str, int] = {}  # by column with missing values, in order


NONE_MISSING = Missing()


def read_entry(entry: DatasetEntry, open_file: Open) -> Block:
    """Read all files of an entry: X [N, D] and y [N], read-only; errors as `read_blocks`."""
    return gathered(read_blocks(entry, open_file), len(entry.features))


def read_blocks(entry: DatasetEntry, open_file: Open) -> Iterator[Block]:
    """Read all files of an entry in blocks of rows: X [n, D] and y [n].

    Raises:
        DataError: a file does not hold what is declared; the message names file, line (binary
            formats: row) and column.
    """
    for files, rows, places in _parts(entry):
        found = 0
        for written in _as_written(entry, files, places, open_file):
            frame = treated(written, entry, places)
            found += len(frame)
            yield inputs_and_target(frame, entry.features, entry.target, places, entry.labels)
        if found != rows:
            raise DataError(f"{places.where} has {found} rows where {rows} are declared")


def count_missing(entry: DatasetEntry, open_file: Open) -> Missing:
    """Count the missing values in the files of an entry; none if the entry refuses them."""
    if entry.missing == "refuse":
        return NONE_MISSING
    lacking = pd.concat(
        missing_cells(frame, entry)
        for files, _, places in _parts(entry)
        for frame in _as_written(entry, files, places, open_file)
    )
    cells = {str(name): int(count) for name, count in lacking.sum().items() if count}
    return Missing(int(lacking.any(axis=1).sum()), cells)


def _parts(entry: DatasetEntry) -> Iterator[tuple[range, int, Places]]:
    """Yield the file indices, the number of rows and the column positions of each stacked part."""
    width = len(entry.files) // len(entry.part_rows)
    for at, rows in enumerate(entry.part_rows):
        files = range(at * width, (at + 1) * width)
        yield files, rows, places_of(entry, " + ".join(entry.files[one].path for one in files))


def _as_written(
    entry: DatasetEntry, files: range, places: Places, open_file: Open
) -> Iterator[pd.DataFrame]:
    """Yield the rows of one part, its files side by side, with the columns `entry.columns`."""
    where, columns, before = places.where, file_columns(entry), 0
    with ExitStack() as opened:
        tables = [
            _table(entry, at, opened.enter_context(open_file(entry.files[at])), len(files) == 1)
            for at in files
        ]
        for frame in tables[0].frames(None) if len(files) == 1 else _side_by_side(tables, where):
            if frame.shape[1] != len(columns):
                raise DataError(
                    f"{where} has {frame.shape[1]} columns where {len(columns)} are declared"
                )
            yield spread_out(frame.set_axis(list(columns), axis=1), entry, places, before)
            before += len(frame)


def _table(entry: DatasetEntry, at: int, stream: IO[bytes], alone: bool) -> TableFile:
    where, columns = entry.files[at].path, file_columns(entry)
    layout = Layout(
        entry.reader_of(at),
        entry.skipped_of(at),
        entry.header,
        arrays=(entry.variable,) if entry.variable else (),
        width=len(columns) if alone else None,
        words=bool(entry.categories or entry.split_cells),
    )
    table = open_table(stream, where, layout)
    if table.names is not None:
        line = f"line {entry.skipped_of(at) + 1}" if entry.header else "the header"
        _check_names(table.names, columns, f"{where}: {line}")
    return table


def _check_names(names: Sequence[str], declared: Sequence[str], place: str) -> None:
    if len(names) != len(declared):
        raise DataError(f"{place} names {len(names)} columns where {len(declared)} are declared")
    for at, (found, expected) in enumerate(zip(names, declared, strict=True), start=1):
        unnamed = not found and expected == "row"  # R writes no name above its row numbers
        if found != expected and not unnamed:
            raise DataError(
                f"{place}, column {at} is {shown(found)} where {expected!r} is declared"
            )


def _side_by_side(tables: Sequence[TableFile], where: str) -> Iterator[pd.DataFrame]:
    """Yield one frame of whole files side by side; rows are numbered as in the first."""
    wholes = [pd.concat(list(table.frames(None)) or [pd.DataFrame()]) for table in tables]
    lengths = [len(whole) for whole in wholes]
    if len(set(lengths)) > 1:
        raise DataError(f"{where} have {' and '.join(map(str, lengths))} rows; they must agree")
    beside = [whole.set_axis(wholes[0].index, axis=0) for whole in wholes]
    yield pd.concat(beside, axis=1, ignore_index=True)


def file_columns(entry: DatasetEntry) -> tuple[str, ...]:
    """Return the columns as in the file, before cells are split and rows are numbered."""
    columns: list[str] = list(entry.columns[1:] if entry.number_rows else entry.columns)
    for name, (_, pieces) in entry.split_cells.items():
        at = columns.index(pieces[0])
        columns[at : at + len(pieces)] = [name]
    return tuple(columns)


def places_of(entry: DatasetEntry, where: str) -> Places:
    """Return the column positions in the file; a piece has the position of the cell it is split from."""
    columns = {name: at for at, name in enumerate(file_columns(entry), start=1)}
    for name, (_, pieces) in entry.split_cells.items():
        columns |= dict.fromkeys(pieces, columns[name])
    return Places(where, {entry.columns[0]: 0, **columns} if entry.number_rows else columns)


def spread_out(
    frame: pd.DataFrame, entry: DatasetEntry, places: Places, before: int
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
                    f"{places.cell(frame, row, name)} holds {shown(str(frame[name].iloc[row]))}, not "
                    f"{len(pieces)} numbers separated by {separator!r}"
                )
        split = pd.DataFrame(cells, index=frame.index, columns=list(pieces), dtype=object)
        frame = pd.concat([frame.drop(columns=name), split], axis=1)
    return frame


def treated(frame: pd.DataFrame, entry: DatasetEntry, places: Places) -> pd.DataFrame:
    """Drop rows with missing values and encode categories as declared."""
    if entry.missing == "drop-row":
        frame = frame[~missing_cells(frame, entry).any(axis=1)]
    for name, words in entry.categories.items():
        codes = {word: float(code) for code, word in enumerate(words)}
        if entry.missing == "middle-code":
            codes["?"] = (len(words) - 1) / 2
        found = [text_of(cell) for cell in frame[name]]
        for row, word in enumerate(found):
            if word not in codes:
                place = places.cell(frame, row, name)
                raise DataError(f"{place} holds {shown(word)}, which is no declared category")
        frame = frame.assign(**{name: np.array([codes[word] for word in found], dtype=np.float64)})
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
