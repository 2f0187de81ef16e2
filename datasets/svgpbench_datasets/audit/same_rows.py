"""Rows that are equal, and what a training part tells of equal rows in the test part."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from svgpbench_datasets.dataset import Floats
from svgpbench_datasets.splits import Indices, Split

ALIKE = 0.1
"""Standard deviations of the target within which a test row's target is told by its twins'."""


def same_rows(columns: Iterable[Floats]) -> Indices:
    """Number the distinct rows of a table, equal rows alike; no copy of the table is made.

    Args:
        columns: the columns, each [n].

    Returns:
        for each row, from 0, which distinct row it is, [n].
    """
    kept = list(columns)
    order = np.lexsort(kept)
    starts = np.zeros(order.size, dtype=bool)
    for column in kept:
        ordered = column[order]
        starts[1:] |= ordered[1:] != ordered[:-1]
    numbers = np.empty(order.size, dtype=np.int64)
    numbers[order] = np.cumsum(starts)
    return numbers


def with_twins(distinct: Indices, y: Floats, split: Split) -> tuple[int, int]:
    """Test rows with the inputs of a training row, and those among them whose target that tells.

    Args:
        distinct: which distinct input each row has, [n].
        y: targets, [n].
        split: the parts.

    Returns:
        how many test rows have training twins, and of how many the target is, within a tenth of
        the standard deviation, the mean of the twins'.
    """
    most = int(distinct.max()) + 1
    twins = np.bincount(distinct[split.train], minlength=most)
    totals = np.bincount(distinct[split.train], weights=y[split.train], minlength=most)
    at = distinct[split.test]
    has = twins[at] > 0
    agrees = np.abs(y[split.test][has] - totals[at[has]] / twins[at[has]]) <= ALIKE * y.std()
    return int(has.sum()), int(agrees.sum())
