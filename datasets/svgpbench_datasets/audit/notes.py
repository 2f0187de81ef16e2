"""Flags for the rows and the target of a data set, such as sorted rows or a capped target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

import numpy as np

from svgpbench_datasets.audit.facts import AuditFacts, Flag, rank_correlation
from svgpbench_datasets.dataset import Dataset, Floats
from svgpbench_datasets.errors import join_names
from svgpbench_datasets.standardise import column_statistics

ORDERED, ALIKE = 0.3, 0.7
"""Thresholds of ordered rows: least row-number correlation, and largest previous-row ratio."""
ERRORS = 4.0
"""Least distance of both from their value for shuffled rows, in standard errors."""
NO_LINEAR, NO_NEAREST = 0.01, 0.9
"""Thresholds of no signal: adjusted R² below the first, and nearest ratio above the second."""
FEWEST_ROWS = 200
FEW_VALUES, FEWEST_EACH = 100, 10
FEWEST = 5
FEWEST_CELLS = 20
"""Fewest cells of a grid, so that equal counts are not due to chance."""
HARD = ("constant-target", "heavy-target", "rare-class", "few-digits")
"""Kinds of flags of `hard_target`, and of inputs that lack digits."""
HEAVY = 100.0
"""Least ratio of the greatest target and the median of a heavy tail."""
RARE, FEWEST_OF_CLASS = 20, 10
"""A class is rare if it has fewer rows than this, or than this part of an equal share."""
MOST_CLASSES = 12
"""Most classes that a flag names."""


def ordered(dataset: Dataset, facts: AuditFacts) -> Iterator[Flag]:
    """Flag rows that are ordered by the target, or similar to the previous row."""
    classes = max(1, sum(count > 0 for count in facts.classes.values()) - 1)
    together = max(facts.row_correlation, facts.row_correlation_ratio)
    if not facts.classes:  # a heavy tail hides the order from the correlation of the values
        numbers = np.arange(facts.rows, dtype=np.float64)
        together = max(together, abs(rank_correlation(numbers, dataset.y)))
    # standard errors for independent rows: 1/√N of a correlation,
    # about √((K − 1)/N) of the correlation ratio of K classes
    by_chance = ERRORS * np.sqrt(classes / facts.rows)
    if together >= max(ORDERED, by_chance):
        text = f"row number and target go together ({together:.2f}): shuffle, never input"
        yield Flag("ordered-by-target", text)
    # 1/√N is the standard error of von Neumann's ratio of independent rows
    elif facts.previous_ratio < min(ALIKE, 1 - ERRORS / np.sqrt(facts.rows)):
        text = f"rows are like the row before (ratio {facts.previous_ratio:.2f}): "
        text += "split by groups or blocks if neighbours belong together, else shuffle"
        yield Flag("ordered-rows", text)


def own_groups(dataset: Dataset) -> Iterator[Flag]:
    """Flag groups of one row each, as an id has."""
    if dataset.groups is not None and len(dataset.group_labels) == len(dataset.y):
        text = "each row is a group of its own: a split by these groups is one by rows"
        yield Flag("groups-of-one", text)


def without_signal(facts: AuditFacts) -> Iterator[Flag]:
    """Flag a target that neither a linear fit nor the nearest row predicts."""
    spare = facts.rows - facts.features - 1
    if facts.rows < FEWEST_ROWS or spare < 1:
        return
    # of pure noise R² is D/(N − 1) on average; the adjusted one is 0
    adjusted = 1 - (1 - facts.linear_r2) * (facts.rows - 1) / spare
    if adjusted < NO_LINEAR and facts.nearest_ratio > NO_NEAREST:
        text = (
            f"no signal: a linear fit explains {facts.linear_r2:.1e} of the variance, and nearest "
            f"rows are no more alike than any two (ratio {facts.nearest_ratio:.2f})"
        )
        yield Flag("no-signal", text)


def hard_target(y: Floats, classes: Mapping[str, int]) -> Iterator[Flag]:
    """Flag a constant target, one with a heavy tail, and rare classes; `classes` are the rows of each."""
    if column_statistics(y[:, None]).constant[0]:
        yield Flag(
            "constant-target", f"the target is {y[0]:g} in every row: nothing can be learned"
        )
    fewest = max(FEWEST_OF_CLASS, len(y) / (RARE * max(1, len(classes))))
    if rare := [f"{label} ({count})" for label, count in classes.items() if count < fewest]:
        text = f"few of {len(y)} rows are of class {join_names(rare, MOST_CLASSES)}"
        yield Flag("rare-class", f"{text}: accuracy says little, compare the NLPD")
    if not classes and y.min() >= 0 and y.max() >= HEAVY * (median := float(np.median(y))) > 0:
        text = f"the greatest target {y.max():g} is {y.max() / median:.0f} times the median"
        yield Flag("heavy-target", f"{text}: predict its logarithm, unless these are counts")


def few_values(dataset: Dataset, facts: AuditFacts) -> Iterator[Flag]:
    """Flag a regression target of few distinct values, where a predictive density is unbounded."""
    few = 1 < facts.target_values <= min(FEW_VALUES, facts.rows / FEWEST_EACH)
    if dataset.task == "regression" and few:
        yield Flag("few-target-values", f"the target takes {facts.target_values} values only")


def gridded(dataset: Dataset) -> Iterator[Flag]:
    """Flag rows that form a full grid."""
    if levels := grid_levels(dataset):
        factors = " x ".join(f"{name} ({count})" for name, count in levels.items())
        repeats = len(dataset.y) // prod(levels.values())
        rows = f"{repeats} row" + "s" * (repeats > 1)
        yield Flag("full-grid", f"rows are a full grid: {factors}, {rows} each")


def capped(dataset: Dataset) -> Iterator[Flag]:
    """Flag a regression target whose least or greatest value is by far the most frequent."""
    values, counts = np.unique(dataset.y, return_counts=True)
    if dataset.task != "regression" or values.size < 20:
        return
    for index, end in ((0, "least"), (-1, "greatest")):
        count, others = counts[index], np.delete(counts, index).max()
        if count >= FEWEST and count >= 1.5 * others:
            text = f"the {end} target {values[index]:g} stands in {count} rows: capped?"
            yield Flag("capped-target", text)


def repeated(facts: AuditFacts) -> Iterator[Flag]:
    """Flag repeated inputs or rows."""
    if facts.distinct_inputs < 0.9 * facts.rows:
        text = f"{facts.distinct_inputs} of {facts.rows} input rows are distinct"
        yield Flag("few-distinct-inputs", text)
    elif count := facts.repeated_rows:
        text = f"{count} {'row repeats' if count == 1 else 'rows repeat'} an earlier row"
        yield Flag("repeated-rows", text)


def grid_levels(dataset: Dataset) -> dict[str, int]:
    """Return the number of levels of each column of a full grid; empty if there is no grid.

    The target and the features are tried in turn. The values of a column are levels if they are equally
    frequent, at least two, and at most as many as half the rows. The column joins the grid if every
    combination of levels still has equally many rows. A grid has at least two columns and 20 combinations.
    """
    n = len(dataset.y)
    cells, number = 1, np.zeros(n, dtype=np.int64)
    grid: dict[str, int] = {}
    names = (dataset.target_name, *dataset.feature_names)
    for name, column in zip(names, (dataset.y, *dataset.X.T), strict=True):
        values, counts = np.unique(column, return_counts=True)
        levels = values.size
        # with more levels than n / cells, some combination has no row
        if not 1 < levels <= n // max(2, cells) or counts.min() != counts.max():
            continue
        joint = number * levels + np.searchsorted(values, column)
        counts = np.bincount(joint, minlength=cells * levels)
        if counts.min() == counts.max():
            cells, number, grid[name] = cells * levels, joint, levels
    return grid if len(grid) >= 2 and cells >= FEWEST_CELLS else {}
