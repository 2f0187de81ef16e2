"""Published splits of a data set, and files of masks.

A file of masks has one line per row of the data set and one column per split; 1 marks a test row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from svgpbench_datasets.entry import DatasetEntry
from svgpbench_datasets.errors import DataError
from svgpbench_datasets.files import File
from svgpbench_datasets.reading.text import plain_numbers
from svgpbench_datasets.splits import Split
from svgpbench_datasets.whole_files import whole_file

Masks: TypeAlias = NDArray[np.bool_]

_ZERO, _COMMA, _END = np.frombuffer(b"0,\n", dtype=np.uint8)


def fixed_split(entry: DatasetEntry, fold: int, open_file: Callable[[File], bytes]) -> Split:
    """Return one published split of a data set.

    `fold` counts from 0; `open_file` returns the content of a file.

    Raises:
        DataError: there is no such split, or the masks are not of the declared shape.
    """
    splits = entry.splits
    if splits is None:
        raise DataError(
            f"data set {entry.name!r} has no fixed splits; use split kind 'k-fold' or 'random'"
        )
    if not 0 <= fold < splits.count:
        raise DataError(
            f"data set {entry.name!r} has {splits.count} fixed split{'s' * (splits.count > 1)}, "
            f"numbered from 0: there is no fold {fold}"
        )
    rows = np.arange(entry.rows)
    if splits.masks is None:
        test = rows >= (splits.train_rows or 0)
    else:
        raw = open_file(splits.masks)
        test = read_masks(raw, entry.rows, splits.count, splits.masks.path)[:, fold]
    return Split(rows[~test], rows[test], "fixed", fold, splits.count, 0)


def read_masks(raw: bytes, rows: int, count: int, where: str) -> Masks:
    """Parse masks [rows, count], True for a test row; raise `DataError` if they have another form."""
    table = plain_numbers(raw, ",")
    if table is None or table.shape != (rows, count) or not np.isin(table, (0, 1)).all():
        shape = "not a table of numbers" if table is None else f"of shape {table.shape}"
        raise DataError(f"{where} is {shape}; masks of 0 and 1, [{rows}, {count}], are declared")
    return np.asarray(table == 1)


def write_masks(path: Path, splits: Sequence[Split]) -> None:
    """Write splits as a file of masks; each must cover all rows of one data set. Replaces the file."""
    rows = len(splits[0].train) + len(splits[0].test)
    text = np.full((rows, 2 * len(splits)), _COMMA)
    text[:, ::2], text[:, -1] = _ZERO, _END
    for number, split in enumerate(splits):
        # the byte of `0` plus 1 is that of `1`
        text[split.test, 2 * number] += 1
    with whole_file(path) as unfinished:
        unfinished.write_bytes(text.tobytes())
