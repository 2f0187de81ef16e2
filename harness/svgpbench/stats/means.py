"""Means over cells with standard errors; those of test scores account for overlapping training parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from svgpbench.metrics import METRICS
from svgpbench.stats.differences import REPLICATE, STARTS, TooFewError, sampled

Floats: TypeAlias = npt.NDArray[np.floating[Any]]

WHICH_ERROR: Final = (
    "of a test score over splits, corrected for their overlap (Nadeau and Bengio 2003); of the ELBO, of "
    f"times, and where there is one split, over starts, from {STARTS} on"
)
"""Text that follows `standard error` in footnotes and captions."""


def mean_and_error(cells: pd.DataFrame, metric: str) -> tuple[float, float]:
    """Return the mean of a metric over cells of one data set and method, and its standard error.

    The error is NaN if there are too few splits or starts. Both are NaN if any cell has no finite value
    (null in its record): the mean of the other cells would look too good.
    """
    means, errors = means_and_errors(cells.set_index(REPLICATE)[[metric]], overlap(cells), [metric])
    return float(means[0]), float(errors[0])


def means_and_errors(
    values: pd.DataFrame, overlap: float, metrics: Sequence[str]
) -> tuple[Floats, Floats]:
    """Return the mean of each column and its standard error, as `mean_and_error` does for one column.

    Args:
        values: rows indexed by `REPLICATE`.
        overlap: n_test / n_train.
        metrics: the metric of each column, a name in `METRICS`.
    """
    means, errors = np.full((2, len(metrics)), np.nan)
    rows = np.array([METRICS[metric].rows for metric in metrics])
    for kind in dict.fromkeys(rows) if len(values) else ():
        columns = np.flatnonzero(rows == kind)
        of_kind = values.iloc[:, columns]
        means[columns] = of_kind.mean(skipna=False)
        errors[columns] = error_of_mean(of_kind, overlap, metrics[columns[0]])
    return means, np.where(np.isnan(means), np.nan, errors)


def overlap(cells: pd.DataFrame) -> float:
    """Return the mean of n_test / n_train over cells of one data set."""
    return float((cells["n_test"] / cells["n_train"]).mean())


def error_of_mean(
    values: pd.Series[float] | pd.DataFrame, overlap: float, metric: str = ""
) -> Floats:
    """Return the standard error of the mean over rows, for each column if `values` is a frame.

    NaN if there are too few units. Without a metric, the values are treated as test scores.

    Args:
        values: rows indexed by `REPLICATE`.
        overlap: n_test / n_train.
        metric: a name in `METRICS`, or empty.
    """
    try:
        return sampled(values, overlap, METRICS[metric].rows if metric else "test").error
    except TooFewError:
        return np.full(values.shape[1:], np.nan)
