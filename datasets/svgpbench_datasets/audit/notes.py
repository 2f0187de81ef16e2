"""Notes on the rows and the target of a data set: what it is not, whatever it looks like."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from svgpbench_datasets.audit.facts import Facts, Flag
from svgpbench_datasets.dataset import Dataset, Floats
from svgpbench_datasets.errors import listed
from svgpbench_datasets.splits import Indices

ORDERED, ALIKE = 0.3, 0.7
"""The correlation of the row number from which on, and the ratio of the row before below which."""
ERRORS = 4.0
"""Standard errors, by chance alone, that both have to be away at least."""
NO_LINEAR, NO_NEAREST = 0.01, 0.9
"""Adjusted R² and nearest ratio beyond which neither a line nor a neighbour tells anything."""
FEWEST_ROWS = 200
FEW_VALUES, FEWEST_EACH = 100, 10
FEWEST = 5
FEWEST_CELLS = 20
"""Cells from which on equal counts are no chance."""
MOST_CLASSES = 12
"""That a flag names."""


def ordered(facts: Facts) -> Iterator[Flag]:
    """Rows in some order of the target."""
    classes = max(1, sum(count > 0 for count in facts.classes.values()) - 1)
    together = max(facts.row_correlation, facts.row_correlation_ratio)
    by_chance = ERRORS * np.sqrt(classes / facts.rows)
    if together >= max(ORDERED, by_chance):
        text = f"row number and target go together ({together:.2f}): shuffle, never input"
        yield Flag("ordered-by-target", text)
    elif facts.previous_ratio < min(ALIKE, 1 - ERRORS / np.sqrt(facts.rows)):
        text = f"rows are like the row before (ratio {facts.previous_ratio:.2f}): shuffle"
        yield Flag("ordered-rows", text)


def without_signal(facts: Facts) -> Iterator[Flag]:
    """A target of which neither a linear fit nor the nearest row tells anything."""
    spare = facts.rows - facts.features - 1
    if facts.rows < FEWEST_ROWS or spare < 1:
        return
    adjusted = 1 - (1 - facts.linear_r2) * (facts.rows - 1) / spare
    if adjusted < NO_LINEAR and facts.nearest_ratio > NO_NEAREST:
        text = (
            f"no signal: a linear fit explains {facts.linear_r2:.1e} of the variance, and nearest "
            f"rows are no more alike than any two (ratio {facts.nearest_ratio:.2f})"
        )
        yield Flag("no-signal", text)


def few_values(dataset: Dataset, facts: Facts) -> Iterator[Flag]:
    """A regression target of few values, to which a density can give any height."""
    few = facts.target_values <= min(FEW_VALUES, facts.rows / FEWEST_EACH)
    if dataset.task == "regression" and few:
        yield Flag("few-target-values", f"the target takes {facts.target_values} values only")


def gridded(dataset: Dataset) -> Iterator[Flag]:
    """Rows that are a full grid."""
    if levels := grid_levels(dataset):
        factors = " x ".join(f"{name} ({count})" for name, count in levels.items())
        each = len(dataset.y) // prod(levels.values())
        rows = f"{each} row" + "s" * (each > 1)
        yield Flag("full-grid", f"rows are a full grid: {factors}, {rows} each")


def capped(dataset: Dataset) -> Iterator[Flag]:
    """An end of the range that is the most frequent target by far, of many different ones."""
    values, counts = np.unique(dataset.y, return_counts=True)
    if dataset.task != "regression" or values.size < 20:
        return
    for at, end in ((0, "least"), (-1, "greatest")):
        others = np.delete(counts, at).max()
        if counts[at] >= FEWEST and counts[at] >= 1.5 * others:
            text = f"the {end} target {values[at]:g} stands in {counts[at]} rows: capped?"
            yield Flag("capped-target", text)


def repeated(facts: Facts) -> Iterator[Flag]:
    """Rows and inputs that stand there more than once, and classes that hardly do."""
    if facts.distinct_inputs < 0.9 * facts.rows:
        text = f"{facts.distinct_inputs} of {facts.rows} input rows are distinct"
        yield Flag("few-distinct-inputs", text)
    elif count := facts.repeated_rows:
        text = f"{count} {'row repeats' if count == 1 else 'rows repeat'} an earlier row"
        yield Flag("repeated-rows", text)
    if rare := [f"{label} ({count})" for label, count in facts.classes.items() if count < 10]:
        yield Flag("rare-class", f"fewer than 10 rows of class {listed(rare, MOST_CLASSES)}")


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
