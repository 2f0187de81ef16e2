"""Where the inducing inputs start: k-means centres or a random subset of the data (SciPy, NumPy)."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt
from scipy.cluster.vq import kmeans2

from svgpbench.errors import UserError

Floats = npt.NDArray[np.float64]


def initial_inducing_inputs(X: Floats, count: int, init: str, seed: int) -> Floats:
    """Z [count, D] from the training inputs X [n, D].

    Raises `UserError` where there are fewer rows than inducing inputs.
    """
    if count > len(X):
        raise UserError(
            f"{count} inducing inputs for {len(X)} training rows; set inducing.count ≤ {len(X)}"
        )
    rng = np.random.default_rng([seed, 1])
    if init == "random":
        return np.array(X[rng.choice(len(X), count, replace=False)])
    with warnings.catch_warnings():
        # a cluster that loses its points keeps its centre, which is a valid inducing input
        warnings.filterwarnings("ignore", message="One of the clusters is empty")
        centres, _ = kmeans2(X, count, iter=50, minit="++", rng=rng)
    return np.asarray(centres, dtype=np.float64)
