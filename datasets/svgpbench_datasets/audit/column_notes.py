"""Flags for single columns: uninformative, with missing values, or standardised beforehand."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np

from svgpbench_datasets.audit.facts import AuditFacts, Flag
from svgpbench_datasets.audit.row_numbers import counts_rows
from svgpbench_datasets.dataset import Dataset, Floats
from svgpbench_datasets.errors import join_names

FEWEST, MOST_NAMED, MOST_SUSPECTS = 5, 4, 8
CENTRED = 0.01
"""Largest |mean| of a centred column, as a fraction of the standard error of a mean, std/sqrt(N)."""
STEPS = 5.0
"""Smallest gap above an isolated least value, in median steps between the other values."""
DIGITS = 2.0**-32
"""Largest spacing of float64 at a column's values, as a fraction of its range, that costs nothing."""
UNIT = 0.01
"""Tolerance on a standard deviation of 1, which may have been computed with n or n - 1."""


def missing(facts: AuditFacts) -> Iterator[Flag]:
    """Flag missing values in the files."""
    if facts.missing_rows:
        columns = ", ".join(f"{name} ({count})" for name, count in facts.missing_cells.items())
        cells = sum(facts.missing_cells.values())
        text = f"{cells} values in {facts.missing_rows} rows of the files are missing: {columns}"
        yield Flag("missing-values", text)


def lowest_apart(dataset: Dataset) -> Iterator[Flag]:
    """Flag features with a repeated least value far below all others, such as 0 or -999 for missing."""
    suspects = [
        f"{name} ({count})"
        for name, column in zip(dataset.feature_names, dataset.X.T, strict=True)
        if (count := _isolated_least_count(column))
    ]
    if suspects:
        text = "least value far from the others, missing or clipped?"
        yield Flag("lowest-apart", f"{text}: {join_names(suspects, MOST_SUSPECTS)}")


def _isolated_least_count(column: Floats) -> int:
    """Return the count of the least value if it is repeated and far below the others; else 0."""
    lowest = column.min()
    count = int((column == lowest).sum())
    if not FEWEST <= count < 0.6 * column.size:
        return 0
    others = column[column != lowest] - lowest
    middle, low = np.quantile(others, [0.5, 0.05])
    values = np.unique(others)
    if values.size < 20:  # codes or classes, not measurements
        return 0
    # integer counts have steps of 1 everywhere: the gap must exceed the usual step
    gap = max(0.1 * middle, STEPS * float(np.median(np.diff(values))))
    return count if values[0] >= gap and low >= 0.3 * middle else 0


def uninformative(dataset: Dataset, facts: AuditFacts) -> Iterator[Flag]:
    """Flag constant features, and features that are equal to another."""
    constant = facts.constant_columns
    if constant:
        yield Flag("constant-column", f"constant: {join_names(constant, MOST_NAMED)}")
    first: dict[bytes, str] = {}
    for name, column in zip(dataset.feature_names, dataset.X.T, strict=True):
        if name in constant:
            continue
        # -0.0 equals 0.0 but has other bytes; digests spare a comparison of every pair of columns
        twin = first.setdefault(hashlib.blake2b((column + 0.0).tobytes()).digest(), name)
        if twin != name:
            yield Flag("equal-columns", f"{twin} and {name} are equal")


def centred(dataset: Dataset) -> Iterator[Flag]:
    """Flag features that all have mean 0: they were centred with all rows, test rows included.

    Columns that are constant, symmetric about 0 (a possible design) or count the rows are ignored.
    """
    deviations = []
    for column in dataset.X.T:
        deviation = float(column.std())
        ordered = np.sort(column)
        symmetric = np.array_equal(ordered, -ordered[::-1])
        if np.ptp(column) == 0 or symmetric or counts_rows(column):
            continue
        # by chance a mean is this near 0 with probability .008, and here every column's has to be
        if abs(column.mean()) > CENTRED * deviation / np.sqrt(column.size):
            return
        deviations.append(deviation)
    if deviations:
        unit = max(abs(deviation - 1.0) for deviation in deviations) < UNIT
        done = "mean 0 and deviation 1: standardised" if unit else "mean 0: centred"
        yield Flag("centred", f"each column has {done} with all rows, test rows included")


def few_digits(dataset: Dataset) -> Iterator[Flag]:
    """Flag features so far from 0 that float64 holds few digits of their differences.

    Such as nanoseconds since 1970 within a millisecond: nothing that reads them can have the digits back.
    """
    spread, largest = np.ptp(dataset.X, axis=0), np.abs(dataset.X).max(axis=0)
    varies = spread > 0.0
    lost = np.zeros(len(spread))
    lost[varies] = np.spacing(largest[varies]) / spread[varies]
    if names := [x for x, share in zip(dataset.feature_names, lost, strict=True) if share > DIGITS]:
        text = f"float64 holds it to {lost.max():.0e} of its range, as it lies far from 0"
        yield Flag(
            "few-digits", f"{join_names(names, MOST_NAMED)}: {text}; subtract a constant before"
        )
