"""Mean curves with error bands, and axis limits that ignore diverging curves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from svgpbench.metrics import METRICS, Better, loss
from svgpbench.stats.differences import REPLICATE
from svgpbench.stats.means import error_of_mean, overlap

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """One method on one data set: mean and standard error [T] at iterations or seconds [T].

    The error is 0 if there are too few splits or starts for one.
    """

    method: str
    x: Floats
    mean: Floats
    error: Floats
    replicates: int
    broke_at: int | None  # the first iteration that not every replicate reached

    @property
    def last(self) -> float:
        """The last mean, NaN if the curve is empty."""
        return float(self.mean[-1]) if len(self.mean) else math.nan


def curves(
    traces: pd.DataFrame, metric: str, failed_at_once: Sequence[str] = (), x: str = "iteration"
) -> list[Curve]:
    """Return the curve of each method, over the iterations that every replicate reached.

    A curve ends where a replicate fails. The mean over the remaining replicates would jump there, and
    would look better.

    Args:
        traces: one row per evaluated iteration of each cell of a data set.
        metric: the column to average.
        failed_at_once: methods with a replicate that has no iteration. Their curves are empty, and come
            last if no replicate of the method has one.
        x: "iteration", or "seconds" for the mean over replicates of the time at each iteration.
    """
    lines = []
    for method, group in traces.groupby("method", sort=False):
        values = group.set_index(["iteration", *REPLICATE])[metric]
        table = values.unstack(REPLICATE)  # [T, replicates]
        # `cummin`: after the first gap nothing counts, even where all replicates are there again
        complete = table[table.notna().all(axis=1).cummin()]
        if method in failed_at_once:
            complete = complete.iloc[:0]
        reached = int(complete.index[-1]) if len(complete) else 0  # a trace may skip iterations
        error = error_of_mean(complete.T, overlap(group), metric if metric in METRICS else "")
        positions: Any = complete.index
        if x == "seconds":
            positions = group.groupby("iteration")["seconds"].mean().reindex(positions)
        lines.append(
            Curve(
                str(method),
                np.asarray(positions, dtype=np.float64),
                np.asarray(complete.mean(axis=1), dtype=np.float64),
                np.nan_to_num(error),
                table.shape[1],
                reached + 1 if reached < int(group["iterations"].max()) else None,
            )
        )
    nothing, methods = np.empty(0), {line.method for line in lines}
    return lines + [
        Curve(method, nothing, nothing, nothing, 0, 1)
        for method in failed_at_once
        if method not in methods
    ]


def limits(lines: Sequence[Curve], better: Better) -> tuple[float, float]:
    """Return axis limits that show the better half of the curves, and near values of the others.

    Curves are sorted by their last value, with those that ended early last. A value is near if it is within
    the height of the better half's range from that range.
    """
    finite = [line for line in lines if len(line.mean) and np.isfinite(line.mean).all()]
    if not finite:
        return 0.0, 1.0
    finite.sort(key=lambda line: (line.broke_at is not None, loss(line.last, better)))
    best = finite[: math.ceil(len(finite) / 2)]
    ends = np.concatenate([_ends(line) for line in best])
    low, high = float(ends.min()), float(ends.max())
    # a flat curve has no height of its own
    height = high - low or abs(high) or 1.0
    near = np.concatenate([_ends(line) for line in finite])
    near = near[(near >= low - height) & (near <= high + height)]
    low, high = min(low, float(near.min())), max(high, float(near.max()))
    margin = 0.06 * (high - low or height)
    return low - margin, high + margin


def _ends(line: Curve) -> Floats:
    """Return the edges of the error band of a curve."""
    return np.concatenate([line.mean - line.error, line.mean + line.error])


def leaves(line: Curve, low: float, high: float) -> float | None:
    """Return the value farthest outside the limits, or None if the complete curve is inside."""
    outside = line.mean[(line.mean < low) | (line.mean > high)]
    if not len(outside):
        return None
    return float(outside[np.argmax(np.abs(outside - (low + high) / 2))])
