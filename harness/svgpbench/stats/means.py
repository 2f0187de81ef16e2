"""Means over cells and the errors that they have; a test score's accounts for training parts that overlap."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from svgpbench.metrics import METRICS
from svgpbench.stats.differences import REPLICATE, STARTS, TooFewError, sampled

WHICH_ERROR: Final = (
    "of a test score over splits, corrected for their overlap (Nadeau and Bengio 2003); of the ELBO, of "
    f"times, and where there is one split, over starts, from {STARTS} on"
)
"""What a footnote or a caption says behind `standard error`."""


def mean_and_error(cells: pd.DataFrame, metric: str) -> tuple[float, float]:
    """The mean of a metric over cells of one data set and method, and its standard error.

    The error is NaN where there are too few splits or starts for one. A value that is not finite, which a
    record holds as null, has no mean: that of the others would flatter.
    """
    values = cells.set_index(REPLICATE)[metric]
    if values.empty or values.isna().any():
        return math.nan, math.nan
    return float(values.mean()), float(error_of_mean(values, overlap(cells), metric))


def overlap(cells: pd.DataFrame) -> float:
    """n_test / n_train of cells of one data set."""
    return float((cells["n_test"] / cells["n_train"]).mean())


def error_of_mean(
    values: pd.Series[float] | pd.DataFrame, overlap: float, metric: str = ""
) -> npt.NDArray[np.floating[Any]]:
    """The standard error of the mean over rows, which `REPLICATE` indexes; of each column of a frame.

    NaN where there are too few. Without a metric, of a test score.
    """
    try:
        return sampled(values, overlap, METRICS[metric].rows if metric else "test").error
    except TooFewError:
        return np.full(values.shape[1:], np.nan)
