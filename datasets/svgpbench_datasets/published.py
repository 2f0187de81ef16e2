"""The splits that were published with a data set."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from svgpbench_datasets.entry import DatasetEntry
from svgpbench_datasets.errors import DataError
from svgpbench_datasets.files import DataFile, File
from svgpbench_datasets.plain_numbers import plain_numbers
from svgpbench_datasets.splits import Split


def fixed_split(entry: DatasetEntry, fold: int, open_file: Callable[[File], bytes]) -> Split:
    """Read one published split of a data set.

    Args:
        entry: what is declared of the data set.
        fold: which of the splits, from 0.
        open_file: gives the uncompressed content of a file.

    Returns:
        the split.

    Raises:
        DataError: no published splits, a fold out of range, a mask that is none.
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
    if splits.masks is None:
        train_rows = splits.train_rows or 0
        test = np.arange(entry.rows) >= train_rows
    else:
        test = _masks(splits.masks, open_file(splits.masks), entry)[:, fold]
    rows = np.arange(entry.rows)
    return Split(rows[~test], rows[test], "fixed", fold, splits.count, 0)


def _masks(
    file: DataFile, raw: bytes, entry: DatasetEntry
) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    table = plain_numbers(raw, ",")
    count = entry.splits.count if entry.splits else 0
    if table is None or table.shape != (entry.rows, count) or not np.isin(table, (0, 1)).all():
        shape = "not a table of numbers" if table is None else f"of shape {table.shape}"
        raise DataError(
            f"{file.path} is {shape}; masks of 0 and 1, [{entry.rows}, {count}], are declared"
        )
    return np.asarray(table == 1)
