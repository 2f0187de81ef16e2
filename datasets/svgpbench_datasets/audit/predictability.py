"""How much of the target the simplest predictors tell: a linear fit, the nearest row, the row before."""

from __future__ import annotations

import numpy as np
from scipy.spatial import KDTree

from svgpbench_datasets.audit.dependence import correlations, neighbour_ratio
from svgpbench_datasets.dataset import Floats

SAMPLE = 2000
"""Rows among which the nearest one is looked for."""
_NEGLIGIBLE = 1e-12
"""Variance of a direction of the features, of the greatest, below which it is rounding."""


def linear_r2(X: Floats, target: Floats) -> float:
    """R² of the least-squares fit of the target [n, K] on all features [n, D], over all rows, from 0 to 1.

    Of several target columns it is the share of their variance in all.
    """
    D = X.shape[1]
    whole = correlations(X, target)
    spread = target.var(axis=0)
    if not spread.any():
        return 0.0
    values, vectors = np.linalg.eigh(whole[:D, :D])
    kept = values > _NEGLIGIBLE * max(1.0, values[-1])
    along = vectors[:, kept].T @ whole[:D, D:]
    explained = (np.square(along) / values[kept, None]).sum(axis=0)
    return float(np.clip((explained * spread).sum() / spread.sum(), 0.0, 1.0))


def nearest_ratio(X: Floats, target: Floats) -> float:
    """How unlike the target [n, K] is to that of the row with the nearest inputs: 0 alike, 1 as any two.

    Distances are of standardised features [n, D], among a part of the rows.
    """
    chosen = np.random.default_rng(2).permutation(len(X))[:SAMPLE]
    some, own = X[chosen], target[chosen]
    spread = float(np.square(own - own.mean(axis=0)).mean(axis=0).sum())
    if spread == 0.0 or len(some) < 2:
        return 1.0
    scaled = (some - some.mean(axis=0)) / np.where(np.ptp(some, axis=0) == 0, 1, some.std(axis=0))
    nearest = np.asarray(KDTree(scaled).query(scaled, k=2)[1])
    # of rows that are equal either may come first
    other = np.where(nearest[:, 0] == np.arange(len(some)), nearest[:, 1], nearest[:, 0])
    return float(np.square(own - own[other]).sum(axis=1).mean() / (2 * spread))


def previous_ratio(target: Floats) -> float:
    """The same for the row before: below 1 where rows are in some order of the target [n, K]."""
    return float(neighbour_ratio(np.arange(len(target))[:, None], target)[0])
