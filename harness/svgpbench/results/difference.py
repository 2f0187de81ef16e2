"""Numerical difference of two records of one cell."""

from __future__ import annotations

import numpy as np

from svgpbench.results.records import Record

SHARES = ("error_rate", "coverage", "pit_")
"""Beginnings of the names of columns that are shares of test rows. Rounding moves a row that lies at a
threshold to its other side, and the share by one row."""


def difference(first: Record, second: Record) -> float:
    """Return the largest |difference| / max|value| over the columns of the first record's trace.

    Infinite if the status, the number of points or the positions of nulls differ, or if the second record
    lacks a column of the first. It may have more columns. One row of a share counts as one unit in the last
    place.
    """
    a, b = first.trace_without_times(), second.trace_without_times()
    if first.status != second.status or not a.keys() <= b.keys():
        return np.inf
    largest = 0.0
    for name in a:
        x, y = (np.array(columns[name], dtype=np.float64) for columns in (a, b))
        if x.shape != y.shape or not np.array_equal(np.isnan(x), np.isnan(y)):
            return np.inf
        gap = np.abs(x - y)
        if name.startswith(SHARES) and (rows := first.data.get("n_test")):
            # between one row and two, so that the rounding of the shares decides nothing
            one_row = (gap > 0.0) & (gap < 1.5 / rows)
            largest = max(largest, np.finfo(float).eps * bool(one_row.any()))
            gap = np.where(one_row, 0.0, gap)
        if np.any(np.nan_to_num(gap)):
            # by the largest value: an entry near 0, as of a bound that changes sign, has no scale
            largest = max(largest, float(np.nanmax(gap) / np.nanmax(np.abs(x))))
    return largest
