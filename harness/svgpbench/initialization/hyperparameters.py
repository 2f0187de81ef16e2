"""Where a kernel's hyperparameters start when they are taken from the data (SciPy, NumPy)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import pdist

from svgpbench.errors import UserError

Floats = npt.NDArray[np.float64]
MEDIAN_ROWS = 1024
"""Most rows of the median trick, the batch of Cheng and Boots 2017: its cost grows with their square."""


def median_lengthscale(X: Floats) -> float:
    """The median distance between two of the inputs X [n, D], one lengthscale for every dimension.

    Cheng and Boots 2017, Sec. 4, name the median trick on a first minibatch and no formula; of the signal
    and noise variances they say nothing. Raises `UserError` where most inputs coincide.
    """
    middle = float(np.median(pdist(X))) if len(X) > 1 else 0.0
    if not middle > 0.0:
        raise UserError(
            'kernel.init = "median" needs inputs that differ, and most of these do not; '
            'use kernel.init = "given"'
        )
    return middle


def mean_gaps(X: Floats, y: Floats) -> tuple[float, float]:
    """Mean gaps of inputs X [n, D] and of targets y [n]: the lengthscale and σ_SE at the start.

    For each column: the mean of the non-zero gaps between its sorted values, and between the targets in
    that order; then the means of both over the columns. Columns that do not vary are left out. Raises
    `UserError` where nothing varies. Source: Ulapane et al. 2020, as in Kobe 2021, Sec. 4.1.3.

    In Ulapane et al. σ_SE is a standard deviation, of k = σ_SE² exp(…). The thesis calls it the kernel
    variance, there and wherever it gives a number (σ_SE = 0.5, σ_SE = 0.112), and writes σ_likelihood = 0.1
    for a likelihood variance of 0.1: so in the thesis the gap is the variance itself.
    """
    varying = X[:, np.ptp(X, axis=0) > 0.0]
    order = np.argsort(varying, axis=0, kind="stable")
    inputs = np.diff(np.take_along_axis(varying, order, axis=0), axis=0)
    outputs = np.abs(np.diff(y[order], axis=0))
    if not inputs.size or not outputs.any():
        raise UserError(
            "mean gaps as a start of the kernel need inputs and targets that vary; "
            'use kernel.init = "given"'
        )
    lengthscale, sigma = (
        float(np.mean(gaps.sum(axis=0) / np.count_nonzero(gaps, axis=0)))
        for gaps in (inputs, outputs)
    )
    return lengthscale, sigma
