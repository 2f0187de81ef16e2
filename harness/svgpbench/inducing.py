"""Where the inducing inputs start: k-means centres or a random subset of the data (SciPy, NumPy).

Two bases are one set of such points dealt out at random, so that they have no point in common: where γ
and β share one, the residue that γ models is singular. Salimbeni et al. (2018b), Sec. 4, leave the start
to an appendix; their published code runs k-means once for each basis.
"""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt
from scipy.cluster.vq import kmeans2

from svgpbench.bases import Decoupled
from svgpbench.config import InducingConfig
from svgpbench.errors import UserError
from svgpbench.methods.method import Method

Floats = npt.NDArray[np.float64]


def check_bases(method: Method, inducing: InducingConfig) -> None:
    """Raise `UserError` where `inducing.gamma` is missing for two bases, or given for one."""
    if method.basis == "decoupled" and inducing.gamma is None:
        raise UserError(
            f"method {method.name!r} has two bases: set inducing.gamma, the points of its mean "
            "(inducing.count are those of its covariance)"
        )
    if method.basis != "decoupled" and inducing.gamma is not None:
        raise UserError(
            f"method {method.name!r} has one basis: remove inducing.gamma, or give it in the "
            "`inducing` of the methods that have two"
        )


def initial_bases(X: Floats, inducing: InducingConfig, seed: int) -> Floats | Decoupled:
    """Z [count, D], or γ [gamma, D] and β [count, D] disjoint; raises `UserError` as below."""
    if inducing.gamma is None:
        return initial_inducing_inputs(X, inducing.count, inducing.init, seed)
    points = initial_inducing_inputs(X, inducing.count + inducing.gamma, inducing.init, seed)
    dealt = np.random.default_rng([seed, 6]).permutation(len(points))
    return Decoupled(points[dealt[inducing.count :]], points[dealt[: inducing.count]])


def initial_inducing_inputs(X: Floats, count: int, init: str, seed: int) -> Floats:
    """Z [count, D] from the training inputs X [n, D].

    Raises `UserError` where there are fewer rows than inducing inputs.
    """
    if count > len(X):
        raise UserError(
            f"{count} inducing inputs for {len(X)} training rows; "
            f"set inducing.count (and inducing.gamma, if any) ≤ {len(X)}"
        )
    rng = np.random.default_rng([seed, 1])
    if init == "random":
        return np.array(X[rng.choice(len(X), count, replace=False)])
    with warnings.catch_warnings():
        # a cluster that loses its points keeps its centre, which is a valid inducing input
        warnings.filterwarnings("ignore", message="One of the clusters is empty")
        centres, _ = kmeans2(X, count, iter=50, minit="++", rng=rng)
    return np.asarray(centres, dtype=np.float64)
