"""Differences of the final ELBO between backends, and between a cell and its perturbed replica.

Both are |difference| / |value| for the same data, split, seed and method.
"""

from __future__ import annotations

import math

import pandas as pd

from svgpbench.results.frames import SAME_CELL

NO_VALUE = float("nan")


def between_backends(frame: pd.DataFrame) -> float:
    """Return the largest difference between backends of one dtype, NaN if no cell ran on two."""
    plain = frame[(frame["perturbation"] == 0) & (frame["status"] == "ok")]
    # within a dtype: float32 differs from float64 by its digits, whatever the backend
    return _largest_spread(plain, [*SAME_CELL, "dtype"])


def by_rounding(frame: pd.DataFrame) -> float:
    """Return the largest difference between a cell and its perturbed replica, NaN without replicas."""
    good = frame[frame["status"] == "ok"]
    replicated = good[good["perturbation"] > 0]["backend"].unique()
    return _largest_spread(good[good["backend"].isin(replicated)], [*SAME_CELL, "backend"])


def on_some_cells(frame: pd.DataFrame, reference: str) -> str:
    """Return a note on the cells that other backends also ran, if they ran only some of the cells.

    Empty if they ran all cells or none, or if no two results can be compared.
    """
    plain = frame[frame["perturbation"] == 0]
    is_reference = plain["backend"] == reference
    others = plain[~is_reference]
    cells = set(plain[is_reference][SAME_CELL].itertuples(index=False, name=None))
    shared = cells & set(others[SAME_CELL].itertuples(index=False, name=None))
    difference, rounding = between_backends(plain), by_rounding(frame)
    if not shared or shared == cells or math.isnan(difference):
        return ""
    moves = f"rounding moves it by {rounding:.0e}"
    replicas = "no cell ran perturbed" if math.isnan(rounding) else moves
    names = ", ".join(others["backend"].unique())
    return (
        f"{len(shared)} of {len(cells)} cells ran on {names} too: "
        f"the final ELBO of one is up to {difference:.0e} apart, relative; {replicas}"
    )


def _largest_spread(frame: pd.DataFrame, keys: list[str]) -> float:
    if frame.empty:
        return NO_VALUE
    elbo = frame.groupby(keys)["elbo"]
    is_repeated = elbo.count() > 1
    spread = (elbo.max() - elbo.min()) / elbo.agg(lambda values: values.abs().max())
    largest = spread[is_repeated].max()
    return float(largest) if is_repeated.any() else NO_VALUE
