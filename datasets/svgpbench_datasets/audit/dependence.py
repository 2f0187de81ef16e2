"""Dependence of the target on features, measured without a model by von Neumann's ratio.

Sort the rows by a quantity and compare the targets of neighbouring rows. If the quantity says nothing
about the target, neighbours differ as any two rows do, and the ratio is about 1. If the target is a
function of the quantity, also a nonlinear one, neighbours are alike, and the ratio tends to 0.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import KDTree

from svgpbench_datasets.dataset import Dataset, Floats
from svgpbench_datasets.splits import Indices

WORK, FEWEST = 20_000_000, 2000
"""Values (rows x features x target columns) used for single features, and the fewest rows used."""
SAMPLE = 1000
"""Number of rows on which pairs of features are screened."""
BLOCK = 1 << 16
"""Number of rows per block of a matrix product."""
MOST_PAIRED = 64
"""Most features that are paired: those with the smallest ratios alone."""
NEAREST_AMONG = 2000
"""Number of rows among which the nearest is searched."""
_NEGLIGIBLE = 1e-12
"""Eigenvalue of the correlation matrix, relative to the largest, below which it is rounding."""


def target_columns(dataset: Dataset) -> Floats:
    """Return the target as columns: y itself [N, 1], or one-hot classes [N, K]."""
    if dataset.task == "regression":
        return dataset.y[:, None]
    return np.asarray(dataset.y[:, None] == np.arange(len(dataset.class_labels or ())), dtype=float)


def neighbour_ratio(order: Indices, target: Floats) -> Floats:
    """Return von Neumann's ratio, [P], of a target [n, K] along P orderings of its rows, [n, P].

    It is about 1 for an ordering unrelated to the target, and 0 if neighbours have equal targets.
    """
    # two independent draws differ by E(y − y′)² = 2 Var y
    spread = 2.0 * float(np.square(target - target.mean(axis=0)).sum()) / len(target)
    if spread == 0.0:
        return np.ones(order.shape[1])
    steps = np.zeros(order.shape[1])
    for column in target.T:
        steps += np.square(np.diff(column[order], axis=0)).mean(axis=0)
    return steps / spread


def single_ratios(X: Floats, *targets: Floats) -> Floats:
    """Return the neighbour ratio along each feature, the least over the targets, [D].

    Tied rows are in random order. For a wide table (images) only a random part of the rows is used.
    """
    most = max(FEWEST, WORK // (X.shape[1] * max(target.shape[1] for target in targets)))
    shuffled = np.random.default_rng(0).permutation(len(X))[:most]
    targets = tuple(target[shuffled] for target in targets)
    ratios = []
    for column in X.T:
        # stable after the shuffle: ties in the order of the file would show how its rows are sorted
        order = np.argsort(column[shuffled], kind="stable")[:, None]
        ratios.append(min(neighbour_ratio(order, target)[0] for target in targets))
    return np.where(np.ptp(X, axis=0) == 0, 1.0, np.array(ratios))


def determining_sums(
    X: Floats, target: Floats, singles: Floats, threshold: float
) -> list[tuple[int, int, str]]:
    """Find pairs of features whose sum (`+`) or difference (`-`) determines the target, but neither alone.

    X is [n, D] and the target [n, K]; `singles` [D] holds the ratio along each feature. An
    ordering with a ratio below `threshold` determines the target.
    """
    candidates = [j for j in np.argsort(singles, kind="stable") if singles[j] >= threshold]
    features = sorted([j for j in candidates if np.ptp(X[:, j]) > 0][:MOST_PAIRED])
    rows = np.random.default_rng(1).permutation(len(X))[:SAMPLE]
    X_sample, target_sample = X[rows], target[rows]
    pairs = []
    for index, first in enumerate(features):
        others = np.array(features[index + 1 :], dtype=np.int64)
        for sign, factor in (("+", 1.0), ("-", -1.0)):
            # screen on few rows, with a looser threshold as the ratio is larger there
            sums = X_sample[:, [first]] + factor * X_sample[:, others]
            order = np.argsort(sums, axis=0, kind="stable")
            for second in others[neighbour_ratio(order, target_sample) < 30 * threshold]:
                all_sums = (X[:, first] + factor * X[:, second])[:, None]
                if single_ratios(all_sums, target)[0] < threshold:
                    pairs.append((int(first), int(second), sign))
    return pairs


def linear_pairs(X: Floats, y: Floats, unexplained: float) -> list[tuple[int, int]]:
    """Find pairs of features [n, D] of which y [n] is a linear function, but of neither alone.

    `unexplained` is the share of the variance of y that may remain unexplained.
    """
    varying = np.flatnonzero(np.ptp(X, axis=0) > 0)
    if varying.size < 2 or np.ptp(y) == 0 or len(y) < 10:
        return []
    correlation = correlations(X, y[:, None])
    r, R = correlation[-1, varying], correlation[np.ix_(varying, varying)]
    determinant = 1.0 - np.square(R)
    # R² of two regressors: (r₁² + r₂² − 2 r₁ r₂ ρ)/(1 − ρ²)
    with np.errstate(divide="ignore", invalid="ignore"):
        explained = (r[:, None] ** 2 + r**2 - 2 * np.outer(r, r) * R) / determinant
    # the quotient is meaningless for two nearly collinear features
    explained[~np.isfinite(explained) | (determinant < 1e-6)] = 0.0
    alone = np.square(r) > 1.0 - unexplained
    explained[alone, :] = explained[:, alone] = 0.0
    pairs = np.argwhere(np.triu(explained > 1.0 - unexplained, k=1))
    return [(int(varying[i]), int(varying[j])) for i, j in pairs]


def correlations(X: Floats, target: Floats) -> Floats:
    """Return the correlations [D + K, D + K] of features [n, D] and target columns [n, K].

    They are 0 for a constant column. Rows are processed in blocks, so that X is not copied.
    """
    centre = np.concatenate([X.mean(axis=0), target.mean(axis=0)])
    products = np.zeros((centre.size, centre.size))
    for start in range(0, len(X), BLOCK):
        rows = slice(start, start + BLOCK)
        block = np.concatenate([X[rows], target[rows]], axis=1) - centre
        products += block.T @ block
    # not by the products: the rounded mean of a constant column can leave them above 0
    constant = np.concatenate([np.ptp(X, axis=0) == 0, np.ptp(target, axis=0) == 0])
    scale = np.sqrt(np.where(constant, 1.0, np.diag(products)))
    products[constant] = products[:, constant] = 0.0
    return np.asarray(products / np.outer(scale, scale))


def linear_r2(X: Floats, target: Floats) -> float:
    """Return R² of a least-squares fit of the target [n, K] on all features [n, D], from 0 to 1.

    For several target columns it is the explained share of their total variance.
    """
    D = X.shape[1]
    correlation = correlations(X, target)
    spread = target.var(axis=0)
    if not spread.any():
        return 0.0
    # R² = cᵀ R⁺ c; by eigenvalues, as collinear columns such as one-hot codes make R singular
    values, vectors = np.linalg.eigh(correlation[:D, :D])
    nonzero = values > _NEGLIGIBLE * max(1.0, values[-1])
    along = vectors[:, nonzero].T @ correlation[:D, D:]
    explained = (np.square(along) / values[nonzero, None]).sum(axis=0)
    return float(np.clip((explained * spread).sum() / spread.sum(), 0.0, 1.0))


def nearest_ratio(X: Floats, target: Floats) -> float:
    """Compare the target [n, K] of each row with that of the row with the nearest inputs.

    The ratio is 0 for equal targets and about 1 if they differ as any two. Distances are between
    standardised features [n, D], among at most 2000 random rows.
    """
    rows = np.random.default_rng(2).permutation(len(X))[:NEAREST_AMONG]
    X, target = X[rows], target[rows]
    spread = float(np.square(target - target.mean(axis=0)).mean(axis=0).sum())
    if spread == 0.0 or len(rows) < 2:
        return 1.0
    scaled = (X - X.mean(axis=0)) / np.where(np.ptp(X, axis=0) == 0, 1, X.std(axis=0))
    first, second = np.asarray(KDTree(scaled).query(scaled, k=2)[1]).T
    # for equal rows the query may return either one first
    nearest = np.where(first == np.arange(len(rows)), second, first)
    return float(np.square(target - target[nearest]).sum(axis=1).mean() / (2 * spread))


def previous_ratio(target: Floats) -> float:
    """Return von Neumann's ratio of the target [n, K] in row order: below 1 if rows follow the target."""
    return float(neighbour_ratio(np.arange(len(target))[:, None], target)[0])
