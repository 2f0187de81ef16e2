"""Growth of a basis from the batches of an online run, on the host, the same on every backend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from svgpbench.config import InducingConfig
from svgpbench.errors import UserError
from svgpbench.initialization.inducing_inputs import windows
from svgpbench.kernels.bases import Decoupled, centres
from svgpbench.ops import Tree
from svgpbench.tree import tree_map

Floats = npt.NDArray[np.float64]
CLOSEST = 1e-3
"""Least distance of a new basis point to another, in lengthscales: K stays regular in one dimension."""


@dataclass(frozen=True)
class Growth:
    """The number of points that a batch adds to each basis, and the final sizes.

    Shapes are static, so steps are compiled again for every size of the basis. A basis has about
    limit/increment sizes.
    """

    increment: int  # N_Δ
    limit: int  # M, or M_β
    limit_gamma: int | None = None  # M_α, if the mean has its own basis
    width: float | None = None  # of new inducing functions, in lengthscales; None for points

    @classmethod
    def from_config(cls, inducing: InducingConfig, increment: int) -> Growth:
        """Return the growth that an experiment file defines."""
        return cls(increment, inducing.count, inducing.gamma, inducing.window)

    def start(self, X: Floats, lengthscales: Floats) -> Tree:
        """Return the basis from a first batch X [b, D].

        Raises `UserError` if the batch has too few distinct inputs.
        """
        if self.limit_gamma is None:
            return self._first(self.limit, X, lengthscales)
        # from the same points: separate bases of mean and covariance may share points
        return Decoupled(
            self._first(self.limit_gamma, X, lengthscales),
            self._first(self.limit, X, lengthscales),
        )

    def grown(self, inducing: Tree, X: Floats, lengthscales: Floats) -> Tree:
        """Return the basis with the first new points of a batch X [b, D] appended.

        At its limit, or if the batch has too few new points, the basis is `inducing` itself.
        """
        if self.limit_gamma is None:
            return self._larger(inducing, self.limit, X, lengthscales)
        gamma = self._larger(inducing.gamma, self.limit_gamma, X, lengthscales)
        beta = self._larger(inducing.beta, self.limit, X, lengthscales)
        is_unchanged = gamma is inducing.gamma and beta is inducing.beta
        return inducing if is_unchanged else Decoupled(gamma, beta)

    def complete(self, inducing: Tree) -> bool:
        """Return True if every basis is at its limit."""
        if self.limit_gamma is None:
            return int(centres(inducing).shape[0]) >= self.limit
        sizes = [int(centres(basis).shape[0]) for basis in inducing]
        return sizes[0] >= self.limit_gamma and sizes[1] >= self.limit

    def _first(self, limit: int, X: Floats, lengthscales: Floats) -> Any:
        count = min(self.increment, limit)
        rows = new_points(X, np.empty((0, X.shape[1])), lengthscales, count)
        if len(rows) < count:
            raise UserError(
                f"the first batch holds {len(rows)} inputs that differ; "
                f"set training.online.increment ≤ {len(rows)}"
            )
        return windows(X[rows], self.width, lengthscales)

    def _larger(self, basis: Any, limit: int, X: Floats, lengthscales: Floats) -> Any:
        count = min(self.increment, limit - len(centres(basis)))
        rows = new_points(X, centres(basis), lengthscales, count)
        # all or nothing: a part of an increment would be one more size for which steps are compiled
        if not count or len(rows) < count:
            return basis
        new_part = windows(X[rows], self.width, lengthscales)
        return tree_map(lambda old, new: np.concatenate([old, new]), basis, new_part)


def new_points(
    X: Floats, existing: Floats, lengthscales: Floats, count: int
) -> npt.NDArray[np.int64]:
    """Return the first rows of X [b, D], at most `count`, apart from `existing` [M, D] and each other.

    Their distance is above CLOSEST.
    """
    X, existing = X / lengthscales, existing / lengthscales
    is_new = np.full(len(X), True)
    if len(existing):
        is_new = cdist(X, existing).min(axis=1) > CLOSEST
    rows: list[int] = []
    while len(rows) < count and is_new.any():
        rows.append(int(np.argmax(is_new)))
        # the chosen row is at distance 0 from itself, so that it leaves the candidates too
        is_new &= cdist(X, X[rows[-1:]])[:, 0] > CLOSEST
    return np.array(rows, dtype=np.int64)
