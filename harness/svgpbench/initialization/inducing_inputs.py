"""Initial inducing inputs: k-means centres, a random subset, or greedily chosen data.

Two bases are disjoint parts of one set of such points: if γ and β shared a point, the residue that γ models
would be singular. Salimbeni et al. (2018b), Sec. 4, leave the initial points to an appendix; their
published code runs k-means once for each basis.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.cluster.vq import kmeans2
from scipy.spatial.distance import cdist

from svgpbench.backends import load_backend
from svgpbench.config import InducingConfig
from svgpbench.errors import UserError
from svgpbench.kernels.bases import Decoupled, Features, common_centre
from svgpbench.kernels.covariance import Covariance
from svgpbench.numerics.streams import Stream
from svgpbench.options import with_options
from svgpbench.plugins import INDUCING, load
from svgpbench_datasets import StandardisedRows

Floats = npt.NDArray[np.float64]
Inputs: TypeAlias = Floats | StandardisedRows
MOST_ROWS = 1 << 16
"""Most rows to choose from, because their distances to all points are stored; more are subsampled."""


def initial_bases(
    X: Inputs,
    inducing: InducingConfig,
    seed: int,
    covariance: Covariance | None = None,
) -> Floats | Decoupled:
    """Return Z [count, D], or disjoint γ [gamma, D] and β [count, D].

    `covariance` and errors are those of `initial_inducing_inputs`.
    """
    way = initialisation(inducing.init, inducing.options)
    if inducing.gamma is None:
        return initial_inducing_inputs(X, inducing.count, way, seed, covariance)
    M_b, total = inducing.count, inducing.count + inducing.gamma
    points = initial_inducing_inputs(X, total, way, seed, covariance)
    order = Stream.TWO_BASES.generator(seed).permutation(total)
    if way.leads:
        order = np.arange(total)  # the first points explain most variance: they go to β
    return Decoupled(points[order[M_b:]], points[order[:M_b]])


def windows(Z: Floats, width: float | None, lengthscales: Floats) -> Floats | Features:
    """Return inducing functions at Z [M, D]; `width` is in units of `lengthscales` [1, D] or [1, 1].

    Returns Z itself if `width` is None.
    """
    if width is None:
        return Z
    return Features(Z, np.broadcast_to(width * lengthscales, Z.shape).copy())


@dataclass(frozen=True)
class Initialisation(ABC):
    """A way to choose inducing inputs; its fields are its options."""

    leads: ClassVar[bool] = False  # True if β gets the first points, as they explain most

    @abstractmethod
    def choose(
        self, X: Inputs, count: int, rng: np.random.Generator, covariance: Covariance | None
    ) -> Floats:
        """Return Z [count, D] from the training inputs X [n, D]; all randomness comes from `rng`.

        `covariance` is the kernel at its initial parameters, on NumPy.
        """


@dataclass(frozen=True)
class RandomRows(Initialisation):
    """Training inputs drawn at random, each at most once."""

    def choose(
        self, X: Inputs, count: int, rng: np.random.Generator, covariance: Covariance | None
    ) -> Floats:
        return np.array(X[rng.choice(len(X), count, replace=False)])


@dataclass(frozen=True)
class KMeans(Initialisation):
    """Centres of k-means, from a k-means++ start."""

    def choose(
        self, X: Inputs, count: int, rng: np.random.Generator, covariance: Covariance | None
    ) -> Floats:
        rows = candidates(X, rng)
        origin = common_centre(load_backend("numpy"), rows)  # SciPy's distances cancel far from 0
        rows = rows - origin
        with warnings.catch_warnings():
            # a cluster that loses its points keeps its centre, which is a valid inducing input
            warnings.filterwarnings("ignore", message="One of the clusters is empty")
            centres, _ = kmeans2(rows, plus_plus(rows, count, rng), iter=50, minit="matrix")
        return np.asarray(centres + origin, dtype=np.float64)


def plus_plus(rows: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Draw starts [count, D] from rows [n, D], in proportion to squared distance from earlier starts.

    The result equals SciPy's `minit="++"` bit by bit, but each distance is computed once. SciPy computes
    all distances again for every centre: two minutes for 500 of 65,536 rows.
    Source: Arthur and Vassilvitskii 2007.
    """
    starts, nearest = np.empty((count, rows.shape[1])), np.full(len(rows), np.inf)
    row = int(rng.integers(len(rows)))
    for i in range(count):
        if i:
            row = int(np.searchsorted((nearest / nearest.sum()).cumsum(), rng.uniform()))
        starts[i] = rows[row]
        distances = cdist(starts[i : i + 1], rows, metric="sqeuclidean")[0]
        nearest = np.minimum(nearest, distances)
    return starts


@dataclass(frozen=True)
class GreedyVariance(Initialisation):
    """Training inputs, each where f has most variance given f at those before it."""

    leads: ClassVar[bool] = True

    def choose(
        self, X: Inputs, count: int, rng: np.random.Generator, covariance: Covariance | None
    ) -> Floats:
        if covariance is None:
            raise ValueError("greedy-variance chooses by a covariance, and none was given")
        rows = candidates(X, rng)
        return np.array(rows[greedy_variance(covariance, rows, count)])


def initialisation(name: str, options: Mapping[str, Any] | None = None) -> Initialisation:
    """Return a way to choose inducing inputs by name; options that are left out have its defaults.

    Raises `UserError` for an unknown name and for an option that it does not have.
    """
    cls: type[Initialisation] = load(INDUCING, name)
    return with_options(cls, f"inducing.init {name!r}", options or {}, InducingConfig.model_fields)


def candidates(X: Inputs, rng: np.random.Generator) -> Floats:
    """Return the rows to choose from: all of X, or `MOST_ROWS` random rows if it has more."""
    return X[rng.choice(len(X), MOST_ROWS, replace=False)] if len(X) > MOST_ROWS else X[:]


def initial_inducing_inputs(
    X: Inputs,
    count: int,
    init: str | Initialisation,
    seed: int,
    covariance: Covariance | None = None,
) -> Floats:
    """Return Z [count, D] from the training inputs X [n, D]; `greedy-variance` needs a NumPy covariance.

    Raises `UserError` if there are fewer rows than inducing inputs, or if the result has a wrong shape or
    is not finite.
    """
    if count > len(X):
        raise UserError(
            f"{count} inducing inputs for {len(X)} training rows; "
            f"set inducing.count (and inducing.gamma, if any) ≤ {len(X)}"
        )
    way = initialisation(init) if isinstance(init, str) else init
    rng = Stream.INDUCING_INPUTS.generator(seed)
    Z = np.asarray(way.choose(X, count, rng, covariance), dtype=np.float64)
    if Z.shape != (count, X.shape[1]) or not np.all(np.isfinite(Z)):
        raise UserError(
            f"{type(way).__name__} gave inducing inputs of shape {list(Z.shape)}, where finite ones of "
            f"{[count, X.shape[1]]} are needed; use another inducing.init"
        )
    return Z


def greedy_variance(covariance: Covariance, X: Floats, count: int) -> npt.NDArray[np.int64]:
    """Return distinct rows [count] of X [n, D], each with the largest variance of f given f at earlier ones.

    It is a partial Cholesky of K_ff + jitter·I with the largest pivot first: O(n count²) time, O(n count)
    memory. With the jitter, rows beyond the kernel's numerical rank are still chosen deterministically.
    Source: Burt et al. 2020, Sec. 4 (the MAP of a determinantal process, Chen et al. 2018).
    """
    variance = np.array(covariance.diagonal(X)[0]) + covariance.jitter  # variance left, [n]
    columns, pivots = np.empty((count, len(X))), np.empty(count, dtype=np.int64)
    for i in range(count):
        pivot = pivots[i] = int(np.argmax(variance))
        if not variance[pivot] > 0.0:
            raise UserError(
                f"the kernel tells no more than {i} training rows apart; "
                f"set inducing.count ≤ {i}, or a jitter above 0"
            )
        covered = columns[:i]
        k = np.array(covariance.cross(X, X[pivot : pivot + 1])[0, :, 0])
        # `cross` has no jitter: in K_ff + jitter·I it stands at the pivot's own row alone
        k[pivot] += covariance.jitter
        columns[i] = (k - covered[:, pivot] @ covered) / np.sqrt(variance[pivot])
        variance -= columns[i] ** 2
        # rounding leaves a chosen row some variance, by which it could be chosen again
        variance[pivots[: i + 1]] = -np.inf
    return pivots
