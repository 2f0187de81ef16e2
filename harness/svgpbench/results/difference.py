"""Numerical difference of two records of one cell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from svgpbench.results.records import Record


def difference(first: Record, second: Record) -> float:
    """Return the largest |difference| / max|value| over the columns of the first record's trace.

    Infinite if the status, the number of points or the positions of nulls differ, or if the second record
    lacks a column of the first. It may have more columns.
    """
    a, b = first.trace_without_times(), second.trace_without_times()
    if first.status != second.status or not a.keys() <= b.keys():
        return np.inf
    return max((_relative_difference(a[name], b[name]) for name in a), default=0.0)


def _relative_difference(
    first: Sequence[float | int | None], second: Sequence[float | int | None]
) -> float:
    x, y = (np.array(values, dtype=np.float64) for values in (first, second))
    if x.shape != y.shape or not np.array_equal(np.isnan(x), np.isnan(y)):
        return np.inf
    if not np.any(np.nan_to_num(x - y)):
        return 0.0
    return float(np.nanmax(np.abs(x - y)) / np.nanmax(np.abs(x)))
