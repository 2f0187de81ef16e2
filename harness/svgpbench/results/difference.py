"""Numerical difference of two records of one cell."""

from __future__ import annotations

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
    largest = 0.0
    for name in a:
        x, y = (np.array(columns[name], dtype=np.float64) for columns in (a, b))
        if x.shape != y.shape or not np.array_equal(np.isnan(x), np.isnan(y)):
            return np.inf
        if np.any(np.nan_to_num(x - y)):
            largest = max(largest, float(np.nanmax(np.abs(x - y)) / np.nanmax(np.abs(x))))
    return largest
