"""How far an ordering of the rows gives the target away, without a model.

Von Neumann's ratio: put the rows in order of a quantity and compare the target of neighbours. Where the
quantity tells nothing, neighbours differ as any two rows do and the ratio is about 1; where the target is
a function of it, however bent, neighbours are alike and the ratio goes to 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from svgpbench_datasets.dataset import Dataset, Floats
from svgpbench_datasets.splits import Indices

WORK, FEWEST = 20_000_000, 2000
"""Numbers that are put in order for single features, and the rows that are looked at in any case."""
SAMPLE = 1000
"""Rows that pairs of features are screened on."""
BLOCK = 1 << 16
"""Rows that are multiplied at once."""
MOST_PAIRED = 64
"""Features that are paired with each other: those that say most of the target alone."""
NEAREST_AMONG = 2000
"""Rows among which the nearest one is looked for."""
_NEGLIGIBLE = 1e-12
"""Variance of a direction of the features, of the greatest, below which it is rounding."""


def signal(dataset: Dataset) -> Floats:
    """The target as columns whose distances count: y itself, or one column a class, [N, 1 or K]."""
    if dataset.task == "regression":
        return dataset.y[:, None]
    return np.asarray(dataset.y[:, None] == np.arange(len(dataset.class_labels or ())), dtype=float)


def neighbour_ratio(order: Indices, target: Floats) -> Floats:
    """Von Neumann's ratio of a target [n, K] along orderings of its rows, a column each [n, P].

    It is about 1 for an ordering that tells nothing and 0 for one that tells all, [P].
    """
    spread = 2.0 * float(np.square(target - target.mean(axis=0)).sum()) / len(target)
    if spread == 0.0:
        return np.ones(order.shape[1])
    steps = np.zeros(order.shape[1])
    for column in target.T:
        steps += np.square(np.diff(column[order], axis=0)).mean(axis=0)
    return steps / spread


def single_ratios(X: Floats, *targets: Floats) -> Floats:
    """The ratio along each feature alone, the least of several targets, [D].

    Rows that tie are put in random order. Of a wide table (images) a part of the rows is looked at.
    """
    most = max(FEWEST, WORK // (X.shape[1] * max(target.shape[1] for target in targets)))
    shuffled = np.random.default_rng(0).permutation(len(X))[:most]
    own = [target[shuffled] for target in targets]
    ratios = []
    for at in range(X.shape[1]):
        order = np.argsort(X[shuffled, at], kind="stable")[:, None]
        ratios.append(min(neighbour_ratio(order, one)[0] for one in own))
    return np.where(np.ptp(X, axis=0) == 0, 1.0, np.array(ratios))


def determining_sums(
    X: Floats, target: Floats, singles: Floats, threshold: float
) -> list[tuple[int, int, str]]:
    """Pairs of features whose sum (`+`) or difference (`-`) determines the target, neither doing it alone.

    X is [n, D], the target [n, K], `singles` the ratio along each feature [D]; below `threshold` an
    ordering determines the target.
    """
    candidates = [at for at in np.argsort(singles, kind="stable") if singles[at] >= threshold]
    varying = [at for at in candidates if np.ptp(X[:, at]) > 0]
    chosen = sorted(varying[:MOST_PAIRED])
    rows = np.random.default_rng(1).permutation(len(X))[:SAMPLE]
    some, own = X[rows], target[rows]
    found = []
    for at, first in enumerate(chosen):
        others = np.array(chosen[at + 1 :], dtype=np.int64)
        for sign, factor in (("+", 1.0), ("-", -1.0)):
            # a screen on few rows, where a function of the sum is told less sharply
            order = np.argsort(some[:, [first]] + factor * some[:, others], axis=0, kind="stable")
            near = others[neighbour_ratio(order, own) < 30 * threshold]
            for second in near:
                whole = (X[:, first] + factor * X[:, second])[:, None]
                if single_ratios(whole, target)[0] < threshold:
                    found.append((int(first), int(second), sign))
    return found


def linear_pairs(X: Floats, y: Floats, unexplained: float) -> list[tuple[int, int]]:
    """Pairs of features [n, D] of which y [n] is a linear function, neither explaining it alone.

    `unexplained` is the share of the variance of y that may remain.
    """
    varying = np.flatnonzero(np.ptp(X, axis=0) > 0)
    if varying.size < 2 or np.ptp(y) == 0 or len(y) < 10:
        return []
    whole = correlations(X, y[:, None])
    r, R = whole[-1, varying], whole[np.ix_(varying, varying)]
    determinant = 1.0 - np.square(R)
    with np.errstate(divide="ignore", invalid="ignore"):
        explained = (r[:, None] ** 2 + r**2 - 2 * np.outer(r, r) * R) / determinant
    # two features that are nearly one make the quotient meaningless
    explained[~np.isfinite(explained) | (determinant < 1e-6)] = 0.0
    alone = np.square(r) > 1.0 - unexplained
    explained[alone, :] = explained[:, alone] = 0.0
    pairs = np.argwhere(np.triu(explained > 1.0 - unexplained, k=1))
    return [(int(varying[i]), int(varying[j])) for i, j in pairs]


def correlations(X: Floats, target: Floats) -> Floats:
    """Correlations of features [n, D] and target columns [n, K], [D + K, D + K]; 0 for a constant one.

    Rows are taken in blocks, so that no copy of X is made.
    """
    centre = np.concatenate([X.mean(axis=0), target.mean(axis=0)])
    products = np.zeros((centre.size, centre.size))
    for start in range(0, len(X), BLOCK):
        rows = slice(start, start + BLOCK)
        block = np.concatenate([X[rows], target[rows]], axis=1) - centre
        products += block.T @ block
    constant = np.concatenate([np.ptp(X, axis=0) == 0, np.ptp(target, axis=0) == 0])
    scale = np.sqrt(np.where(constant, 1.0, np.diag(products)))
    products[constant] = products[:, constant] = 0.0
    return np.asarray(products / np.outer(scale, scale))


def counts_rows(column: NDArray[np.float64]) -> bool:
    """Whether a feature counts the rows: it grows by one same step from row to row, but for restarts."""
    steps = np.diff(column)
    if steps.size < 2:
        return False
    usual = np.median(steps)
    # columns are centred and rounded at times, so that equal steps differ in late digits
    same = np.abs(steps - usual) <= 1e-3 * abs(usual)
    return bool(usual != 0 and same.mean() > 0.99)


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
    chosen = np.random.default_rng(2).permutation(len(X))[:NEAREST_AMONG]
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
