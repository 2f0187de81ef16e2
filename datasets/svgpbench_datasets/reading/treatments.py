"""What an entry declares to be done to rows before they are read as numbers; nothing is silent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from svgpbench_datasets.entry import DatasetEntry
from svgpbench_datasets.errors import DataError
from svgpbench_datasets.reading.cells import Row, is_missing, shown


def treated(rows: Iterator[Row], entry: DatasetEntry, where: str, before: int = 0) -> Iterator[Row]:
    """Number rows, split cells, drop rows with missing values, code categories: as declared.

    Args:
        rows: line numbers and cells, as in the file.
        entry: what is declared.
        where: the file, for messages.
        before: how many rows of the file came before.

    Yields:
        line numbers and cells, one for each of `entry.columns`.

    Raises:
        DataError: a word that is no declared category, a cell that does not split as declared.
    """
    if entry.number_rows:
        numbered = enumerate(rows, start=before + 1)
        rows = ((line, [str(at), *cells]) for at, (line, cells) in numbered)
    if entry.split_cells:
        rows = _split(rows, entry, where)
    if entry.missing == "drop-row":
        rows = _complete(rows, entry)
    if entry.categories:
        rows = _coded(rows, entry, where)
    return rows


def file_columns(entry: DatasetEntry) -> tuple[str, ...]:
    """The columns as a file has them: before cells are split and rows numbered."""
    columns: list[str] = list(entry.columns[1:] if entry.number_rows else entry.columns)
    for name, (_, pieces) in entry.split_cells.items():
        at = columns.index(pieces[0])
        columns[at : at + len(pieces)] = [name]
    return tuple(columns)


def file_positions(entry: DatasetEntry) -> list[int]:
    """The number, from 1, that each of the entry's columns has in its file."""
    pieces = {piece: name for name, (_, parts) in entry.split_cells.items() for piece in parts}
    columns = file_columns(entry)
    return [
        0 if entry.number_rows and at == 0 else columns.index(pieces.get(name, name)) + 1
        for at, name in enumerate(entry.columns)
    ]


def _split(rows: Iterator[Row], entry: DatasetEntry, where: str) -> Iterator[Row]:
    columns = file_columns(entry)
    places = [(columns.index(name), *how) for name, how in entry.split_cells.items()]
    for line, cells in rows:
        if len(cells) != len(columns):
            yield line, cells  # of the wrong length: whoever reads it says so
            continue
        full = list(cells)
        for at, separator, pieces in sorted(places, reverse=True):
            parts = cells[at].strip().split(separator)
            if len(parts) != len(pieces):
                raise DataError(
                    f"{where}: line {line}, column {at + 1} ({columns[at]!r}) holds "
                    f"{shown(cells[at])}, not {len(pieces)} numbers separated by {separator!r}"
                )
            full[at : at + 1] = parts
        yield line, full


def _complete(rows: Iterator[Row], entry: DatasetEntry) -> Iterator[Row]:
    used = _places([*entry.features, entry.target], entry.columns)
    for line, cells in rows:
        if len(cells) != len(entry.columns) or not any(is_missing(cells[at]) for at in used):
            yield line, cells


def _coded(rows: Iterator[Row], entry: DatasetEntry, where: str) -> Iterator[Row]:
    codes = {
        at: {word: str(code) for code, word in enumerate(entry.categories[name])}
        for at, name in enumerate(entry.columns)
        if name in entry.categories
    }
    if entry.missing == "middle-code":
        for at, known in codes.items():
            known["?"] = str((len(entry.categories[entry.columns[at]]) - 1) / 2)
    positions = file_positions(entry)
    for line, cells in rows:
        if len(cells) == len(entry.columns):
            for at, known in codes.items():
                word = cells[at].strip()
                if word not in known:
                    raise DataError(
                        f"{where}: line {line}, column {positions[at]} "
                        f"({entry.columns[at]!r}) holds "
                        f"{shown(word)}, which is no declared category"
                    )
                cells[at] = known[word]
        yield line, cells


def _places(names: Iterable[str], columns: Sequence[str]) -> list[int]:
    return [columns.index(name) for name in names]
