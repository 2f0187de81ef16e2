"""What an entry declares to be done to rows before they are read as numbers; nothing is silent."""

from __future__ import annotations

import numpy as np
import pandas as pd

from svgpbench_datasets.entry import DatasetEntry
from svgpbench_datasets.errors import DataError
from svgpbench_datasets.reading.cells import is_missing, shown, text_of
from svgpbench_datasets.reading.numbers import Places


def file_columns(entry: DatasetEntry) -> tuple[str, ...]:
    """The columns as a file has them: before cells are split and rows numbered."""
    columns: list[str] = list(entry.columns[1:] if entry.number_rows else entry.columns)
    for name, (_, pieces) in entry.split_cells.items():
        at = columns.index(pieces[0])
        columns[at : at + len(pieces)] = [name]
    return tuple(columns)


def places_of(entry: DatasetEntry, where: str) -> Places:
    """Where each column stands in the file; a piece where the cell stands that it is split from."""
    columns = {name: at for at, name in enumerate(file_columns(entry), start=1)}
    for name, (_, pieces) in entry.split_cells.items():
        columns |= dict.fromkeys(pieces, columns[name])
    return Places(where, {entry.columns[0]: 0, **columns} if entry.number_rows else columns)


def spread_out(
    frame: pd.DataFrame, entry: DatasetEntry, places: Places, before: int
) -> pd.DataFrame:
    """Number rows and split cells as declared: a column for each of `entry.columns`.

    `before` is how many rows of the file came before.
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
    """Drop rows with missing values and code categories as declared."""
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
    """Which cells of the features and the target hold no value."""
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
