"""The splits that were published with a data set."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from svgpbench_datasets.entry import DatasetEntry
from svgpbench_datasets.errors import DataError
from svgpbench_datasets.files import File
from svgpbench_datasets.masks import read_masks
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
        raw = open_file(splits.masks)
        test = read_masks(raw, entry.rows, splits.count, splits.masks.path)[:, fold]
    rows = np.arange(entry.rows)
    return Split(rows[~test], rows[test], "fixed", fold, splits.count, 0)
