"""Whether the rows of a data set are a full grid, as those of a designed experiment are."""

from __future__ import annotations

import numpy as np

from svgpbench_datasets.dataset import Dataset, Floats
from svgpbench_datasets.splits import Indices

FEWEST_CELLS = 20
"""Cells from which on equal counts are no chance."""


def grid_levels(dataset: Dataset) -> dict[str, int]:
    """How many values each column of the grid has that target and features make; empty for none.

    Columns join one after another while each combination of values has equally many rows. A grid is
    of at least two columns and 20 combinations.
    """
    n = len(dataset.y)
    cells, number = 1, np.zeros(n, dtype=np.int64)
    found: dict[str, int] = {}
    names = (dataset.target_name, *dataset.feature_names)
    for name, column in zip(names, (dataset.y, *dataset.X.T), strict=True):
        levels = _levels(column)
        if levels is None:
            continue
        count = int(levels.max()) + 1
        if cells * count > n:
            continue
        joint = number * count + levels
        counts = np.bincount(joint, minlength=cells * count)
        if counts.min() == counts.max():
            cells, number, found[name] = cells * count, joint, count
    return found if len(found) >= 2 and cells >= FEWEST_CELLS else {}


def _levels(column: Floats) -> Indices | None:
    """Which of its values a row has, where a column has few and each equally often; else None."""
    if np.ptp(column) == 0:
        return None
    values, counts = np.unique(column, return_counts=True)
    if counts.min() != counts.max() or values.size > column.size // 2:
        return None
    return np.searchsorted(values, column)
