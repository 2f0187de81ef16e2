"""Rows that are equal, and what a training part tells of equal rows in the test part."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from svgpbench_datasets.dataset import Floats
from svgpbench_datasets.splits import Indices, Split

ALIKE = 0.1
"""Standard deviations of the target within which a test row's target is told by its twins'."""


def same_rows(columns: Iterable[Floats]) -> Indices:
    """Number the distinct rows of a table from 0, equal rows alike: from its columns [n] each, to [n].

    No copy of the table is made.
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
    """How many test rows have the inputs of a training row, and of how many that tells the target y [n].

    It does where the mean of the twins' targets is within a tenth of the standard deviation.
    `distinct` is which distinct input each row has, [n].
    """
    most = int(distinct.max()) + 1
    twins = np.bincount(distinct[split.train], minlength=most)
    totals = np.bincount(distinct[split.train], weights=y[split.train], minlength=most)
    at = distinct[split.test]
    has = twins[at] > 0
    agrees = np.abs(y[split.test][has] - totals[at[has]] / twins[at[has]]) <= ALIKE * y.std()
    return int(has.sum()), int(agrees.sum())
