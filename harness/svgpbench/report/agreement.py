"""How far backends are from each other, and how far rounding alone carries a result.

Both are |difference| / |value| of the final ELBO of one cell: same data, split, seed and method.
"""

from __future__ import annotations

import pandas as pd

from svgpbench.report.frames import SAME_CELL

NOTHING = float("nan")


def between_backends(frame: pd.DataFrame) -> float:
    """The largest difference between two backends of one dtype; NaN with fewer than two."""
    plain = frame[(frame["perturbation"] == 0) & (frame["status"] == "ok")]
    return _largest_spread(plain, [*SAME_CELL, "dtype"])


def by_rounding(frame: pd.DataFrame) -> float:
    """The largest difference between a cell and its perturbed replica; NaN without replicas."""
    good = frame[frame["status"] == "ok"]
    replicated = good[good["perturbation"] > 0]["backend"].unique()
    return _largest_spread(good[good["backend"].isin(replicated)], [*SAME_CELL, "backend"])


def _largest_spread(frame: pd.DataFrame, keys: list[str]) -> float:
    if frame.empty:
        return NOTHING
    elbo = frame.groupby(keys)["elbo"]
    several = elbo.count() > 1
    spread = (elbo.max() - elbo.min()) / elbo.agg(lambda values: values.abs().max())
    largest = spread[several].max()
    return float(largest) if several.any() else NOTHING
