"""Whether the rows of a data set are a full grid, as those of a designed experiment are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from svgpbench_datasets.dataset import Dataset, Floats
from svgpbench_datasets.splits import Indices

FEWEST_CELLS = 20
"""Cells from which on equal counts are no chance."""


@dataclass(frozen=True)
class Grid:
    """Columns whose values occur in every combination, equally often.

    Attributes:
        factors: how many values each column has, by its name.
        rows: how many rows each combination has.
    """

    factors: dict[str, int]
    rows: int


def grid_of(dataset: Dataset) -> Grid | None:
    """The grid that the target and the features make, or None where they make none.

    Columns join one after another while each combination of values has equally many rows.

    Args:
        dataset: the data set.

    Returns:
        the grid: of at least two columns and 20 combinations.
    """
    n = len(dataset.y)
    cells, number = 1, np.zeros(n, dtype=np.int64)
    factors: dict[str, int] = {}
    names = (dataset.target_name, *dataset.feature_names)
    for name, column in zip(names, (dataset.y, *dataset.X.T), strict=True):
        levels = _levels(column)
        if levels is None:
            continue
        count = int(levels.max()) + 1
        if cells * count > n:
            continue
        joint = number * count + levels
        if _equally_often(joint, cells * count):
            cells, number = cells * count, joint
            factors[name] = count
    if len(factors) < 2 or cells < FEWEST_CELLS:
        return None
    return Grid(factors, n // cells)


def _levels(column: Floats) -> Indices | None:
    """Which of its values a row has, where a column has few and each equally often; else None."""
    if np.ptp(column) == 0:
        return None
    values, counts = np.unique(column, return_counts=True)
    if counts.min() != counts.max() or values.size > column.size // 2:
        return None
    return np.searchsorted(values, column)


def _equally_often(numbers: Indices, most: int) -> bool:
    counts = np.bincount(numbers, minlength=most)
    return bool(counts.min() == counts.max())
