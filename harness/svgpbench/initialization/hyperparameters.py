"""Initial hyperparameters of a kernel, computed from the data (SciPy, NumPy)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import pdist

from svgpbench.errors import UserError

Floats = npt.NDArray[np.float64]
MEDIAN_ROWS = 1024
"""Most rows for the median trick, whose cost is quadratic; the batch size of Cheng and Boots 2017."""


def median_lengthscale(X: Floats) -> float:
    """Return the median distance between pairs of inputs X [n, D]: one lengthscale for all dimensions.

    Cheng and Boots 2017, Sec. 4, name the median trick on a first minibatch, without a formula. They do not
    give signal and noise variances. Raises `UserError` if most inputs coincide.
    """
    middle = float(np.median(pdist(X))) if len(X) > 1 else 0.0
    if not middle > 0.0:
        raise UserError(
            'kernel.init = "median" needs inputs that differ, and most of these do not; '
            'use kernel.init = "given"'
        )
    return middle


def mean_gaps(X: Floats, y: Floats) -> tuple[float, float]:
    """Return mean gaps of inputs X [n, D] and targets y [n]: the lengthscale and σ_SE at the start.

    For each column, take the mean of the non-zero gaps between its sorted values, and between the targets
    in that order. Then average both over the columns. Constant columns are left out. Raises `UserError`
    if nothing varies. Source: Ulapane et al. 2020, as in Kobe 2021, Sec. 4.1.3.

    In Ulapane et al. σ_SE is a standard deviation, of k = σ_SE² exp(…). The thesis calls it the kernel
    variance, there and wherever it gives a number (σ_SE = 0.5, σ_SE = 0.112), and writes σ_likelihood = 0.1
    for a likelihood variance of 0.1: so in the thesis the gap is the variance itself.
    """
    varying = X[:, np.ptp(X, axis=0) > 0.0]
    # stable: where inputs are tied, the gaps between targets depend on the order of rows
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
