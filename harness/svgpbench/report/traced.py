"""What claims ask of traces: their area, how far the bound drops, when it has settled, where θ goes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from svgpbench.config import MethodConfig
from svgpbench.papers.measures import MEASURES
from svgpbench.runner.records import Record

SETTLED = 10
"""EM iterations after which a drop of the bound counts against steadiness."""

FULL = ("t-svgp", "q-svgp")
"""Methods whose q(u) is any Gaussian."""

ON_TWO_BASES = ("orth", "hybrid")
"""Methods whose q is any with a mean on γ and β: in other coordinates the same."""

THETA = ("variance", "lengthscale_mean", "noise_variance")

THIRDS = ("elbo_early", "elbo_midway", "elbo_late")
"""The mean bound of a third of a trace."""

LOGS = dict(zip(("log_variance", "log_lengthscale", "log_noise"), THETA, strict=True))
"""The logarithm of what a run ends with."""


def traced_columns(records: Sequence[Record]) -> dict[str, list[float]]:
    """A column a measure, a row a record."""
    settled = settled_at(records)
    return {
        "elbo_area": [_mean(record, "elbo") for record in records],
        "nlpd_area": [_mean(record, "nlpd") for record in records],
        **{third: [_third(record, at) for record in records] for at, third in enumerate(THIRDS)},
        **{log: [_log(record, theta) for record in records] for log, theta in LOGS.items()},
        "elbo_drop": [_largest_drop(record) for record in records],
        "noise_variance": [_last(record, "noise_variance") for record in records],
        "settled_at": settled,
        "theta_drift": [_drift(record, at) for record, at in zip(records, settled, strict=True)],
    }


def settled_at(records: Sequence[Record]) -> list[float]:
    """T: the first EM iteration after which the bound stays within its region of the best that is known.

    The best is that of any record with the same data, start, learned parts and family of q. Infinite
    where the bound is below at the end of its budget, NaN where the cell failed.
    """
    best: dict[str, float] = defaultdict(lambda: -math.inf)
    for record in records:
        best[_place(record)] = max(best[_place(record)], np.max(_bound(record), initial=-math.inf))
    return [_settles(record, best[_place(record)]) for record in records]


def _settles(record: Record, best: float) -> float:
    if record.status != "ok":
        return math.nan
    region = MEASURES["elbo"].region_at(best, cast(float, record.data["n_train"]))
    below = np.flatnonzero(_bound(record) < best - region)
    first = below[-1] + 1 if len(below) else 0  # after the last that is below
    iterations = record.trace.get("iteration", ())
    return cast(float, iterations[first]) if first < len(iterations) else math.inf


def _place(record: Record) -> str:
    """What cells share whose bounds have one optimum: all but coordinates of q, backend and rates."""
    config = record.config
    parts = (config.data, config.split, config.kernel, config.likelihood, config.inducing)
    of = _family(config.method)
    width = config.method.options.get("residual_variance", "prior")  # of q(f|u): a bound of its own
    return repr((*parts, config.training.learn, config.seed, config.perturbation, of, width))


def _family(method: MethodConfig) -> str:
    """What methods share that have one best q at every θ, DECOUPLED where its likelihood is log-concave."""
    if method.name in FULL:
        return ""
    if method.name in ON_TWO_BASES or method.options.get("union"):
        return "two bases"
    return method.name


def _bound(record: Record) -> npt.NDArray[np.float64]:
    """The trace of the bound, −∞ where there is no number."""
    return np.array(
        [-math.inf if x is None else x for x in record.trace.get("elbo", ())], dtype=np.float64
    )


def _drift(record: Record, settled: float) -> float:
    """The largest range of log θ from where the bound has settled on; NaN where it has not."""
    if not math.isfinite(settled):
        return math.nan
    trace = pd.DataFrame(
        {key: record.trace[key] for key in ("iteration", *THETA) if key in record.trace}
    )
    after = np.log(trace.loc[trace["iteration"] >= settled].drop(columns="iteration").astype(float))
    return float((after.max() - after.min()).max())


def _mean(record: Record, column: str) -> float:
    """The mean of a trace: its area, a row an EM iteration."""
    values = [value for value in record.trace.get(column, ()) if value is not None]
    return math.fsum(values) / len(values) if values else math.nan


def _third(record: Record, at: int) -> float:
    """The mean bound of the points of a trace in a third of its iterations, from 0."""
    iterations, third = record.trace.get("iteration", ()), record.config.training.iterations / 3
    points = zip(iterations, record.trace.get("elbo", ()), strict=True)
    values = [x for i, x in points if i is not None and x is not None and at < i / third <= at + 1]
    return math.fsum(values) / len(values) if values else math.nan


def _log(record: Record, theta: str) -> float:
    value = record.metrics.get(theta)
    return math.log(value) if value and record.status == "ok" else math.nan


def _last(record: Record, column: str) -> float:
    """The last number of a trace, NaN where it has no such column."""
    values = [value for value in record.trace.get(column, ()) if value is not None]
    return float(values[-1]) if values else math.nan


def _largest_drop(record: Record) -> float:
    """By how much the bound fell at most from one EM iteration to the next, once it should have settled."""
    bound = pd.Series(record.trace.get("elbo", ()), dtype=float)
    if len(bound) <= SETTLED + 1:
        return math.nan
    return max(0.0, -float(bound.diff()[SETTLED:].min()))
