"""Columns that number the rows: row numbers and ids, in the order of the rows or in another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import pdtr

from svgpbench_datasets.audit.dependence import single_ratios, target_columns
from svgpbench_datasets.audit.facts import Flag, rank_correlation
from svgpbench_datasets.dataset import Dataset, Floats
from svgpbench_datasets.errors import join_names

USUAL = 0.99
"""Least share of equal steps, or of steps in one direction, of rows that are numbered in order."""
DISTINCT = 0.95
"""Least share of distinct values of an id; repeated rows repeat their id."""
CHANCE = -9.0
"""Log probability below which measurements on the same scale would have had more equal values."""
OFF_SCALE = 0.1
"""Largest distance from a whole number of units, of values that may have been rounded."""
FEWEST, SPARSE = 20, 10
"""Fewest rows, and most numbers a row on the scale, of an id that is recognised by its order."""
SORTED = 0.98
"""Least rank correlation of a column and a target that are sorted alike."""
ERRORS = 4.0
"""Least distance of a neighbour ratio from 1, in standard errors, of a target that goes with a column."""
MOST_NAMED = 4
_WORDS = {
    (True, True): "counts the rows",
    (True, False): "rises or falls with every row",
    (False, True): "numbers the rows in another order",
    (False, False): "is different in each row, as an id is",
}
"""What is said of a numbering that is (in order, without gaps)."""


class Numbering(NamedTuple):
    """A numbering of the rows by the values of a column: one number per row, in equal units."""

    in_order: bool  # from row to row the numbers rise, or they fall
    all_taken: bool  # no number between the least and the greatest is left out
    dense: bool  # measurements on this scale would have had equal values, or another order


def counts_rows(column: Floats) -> bool:
    """Return True if more than 99% of the steps between consecutive rows are equal and not 0."""
    steps = np.diff(column)
    if steps.size < 2:
        return False
    usual = np.median(steps)
    # centred or rounded columns have steps that differ in the last digits
    same = np.abs(steps - usual) <= 1e-3 * abs(usual)
    return bool(usual != 0 and same.mean() > USUAL)


def numbering(column: Floats) -> Numbering | None:
    """Return how a column numbers the rows, whatever its offset and unit; None if it does not."""
    steps = np.diff(column)
    directions = np.sign(steps)
    # a share p of steps in one direction gives signs with the mean 2p − 1
    in_order = bool(steps.size and abs(directions.mean()) > 2 * USUAL - 1)
    if counts_rows(column):
        return Numbering(True, True, True)
    values = np.unique(column)
    if values.size < max(3, DISTINCT * column.size):
        return None
    numbers = _numbers(values)
    if numbers is None:
        return None
    places, repeats = numbers[-1] + 1.0, column.size - values.size
    if repeats:  # of draws from as many places; their number is about that of a Poisson law
        # n draws take places · (1 − exp(−n/places)) different places, the others are repeats;
        # expm1 keeps the digits where n is far below places
        expected = column.size + places * np.expm1(-column.size / places)
        with np.errstate(divide="ignore"):
            # `pdtr` is Poisson's distribution; an import of scipy.stats would take half a second
            chance = float(np.log(pdtr(repeats, expected)))
    else:
        # as in the birthday problem, no two draws are equal with probability Π (1 − i/places)
        chance = float(np.log1p(-np.arange(values.size) / places).sum())
    ordered_id = in_order and values.size >= FEWEST and places <= SPARSE * values.size
    return Numbering(in_order, bool(values.size >= USUAL * places), ordered_id or chance < CHANCE)


def _numbers(values: Floats) -> Floats | None:
    """Return sorted distinct values as whole numbers of one unit above the least; None without a unit."""
    steps = np.diff(values)
    if np.array_equal(values, np.rint(values)) and abs(values[[0, -1]]).max() < 2.0**53:
        unit = float(np.gcd.reduce(steps.astype(np.int64)))
    else:
        # the usual step of dense numbers; its mean is exact where each step is rounded
        least = steps.min()
        unit = float(steps[steps < 1.5 * least].mean())
        multiples = np.rint(steps / unit)
        unit = float(steps.sum() / multiples.sum())
    numbers = (values - values[0]) / unit
    whole = np.rint(numbers)
    return np.asarray(whole) if np.abs(numbers - whole).max() <= OFF_SCALE else None


def row_numbers(dataset: Dataset) -> Iterator[Flag]:
    """Flag features that number the rows: leaks, as the target may follow them, and ids without harm.

    Where no other feature varies, they may be times or places, as in a time series or a design: the
    program cannot know, so that this is a note.
    """
    varying = np.flatnonzero(np.ptp(dataset.X, axis=0) > 0).tolist()
    found = {j: how for j in varying if (how := numbering(dataset.X[:, j])) is not None}
    if found and all(j in found and (found[j].dense or found[j].in_order) for j in varying):
        names = join_names((dataset.feature_names[j] for j in varying), MOST_NAMED)
        text = f"{names}: a number of its own in each row; is it a time or a place? "
        yield Flag("row-number-input", f"{text}a row number or an id is no input")
        return
    for j, how in found.items():
        column = dataset.X[:, j]
        whole = np.array_equal(column, np.rint(column))
        sorts = abs(rank_correlation(column, dataset.y)) >= SORTED
        if not (how.dense or how.in_order or (sorts and whole)):
            continue  # measurements on a fine scale have distinct values too
        in_order = how.in_order or how.all_taken
        leak = (how.in_order and sorts) or (
            how.dense and (in_order or sorts or _follows(dataset, j))
        )
        text = f"{dataset.feature_names[j]} {_WORDS[how.in_order, how.all_taken]}"
        text += " (the target is sorted by it)" if sorts else ""
        if not leak:
            text += "; an id is no input" if how.dense else ": is it an id? an id is no input"
        yield Flag("row-number-input", text, leak)


def _follows(dataset: Dataset, feature: int) -> bool:
    """Return True if the targets of rows with neighbouring numbers are more alike than by chance."""
    ranks = np.asarray(pd.Series(dataset.y).rank(), np.float64)
    X = dataset.X[:, [feature]]
    ratio = single_ratios(X, target_columns(dataset), ranks[:, None])[0]
    return bool(ratio < 1 - ERRORS / np.sqrt(len(dataset.y)))
