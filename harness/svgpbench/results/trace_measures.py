"""What claims ask of traces: their area, the smoothed bound, how far it drops, where θ goes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pandas as pd

from svgpbench.config import MethodConfig
from svgpbench.results.frames import final_frame
from svgpbench.results.records import Record
from svgpbench.stats.convergence import BoundTrace, bound_trace
from svgpbench.stats.measures import MEASURES

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


def traced_columns(records: Sequence[Record]) -> dict[str, list[Any]]:
    """Return a column for each measure, with a value for each record."""
    traces = bound_traces(records)
    return {
        "elbo_area": [_mean(record, "elbo") for record in records],
        "nlpd_area": [_mean(record, "nlpd") for record in records],
        **{third: [_third(record, at) for record in records] for at, third in enumerate(THIRDS)},
        **{log: [_log(record, theta) for record in records] for log, theta in LOGS.items()},
        "elbo_drop": [_largest_drop(record) for record in records],
        "noise_variance": [_last(record, "noise_variance") for record in records],
        "bound_trace": traces,
        "bound_rise": [trace.rise for trace in traces],
        "bound_fall": [trace.fall for trace in traces],
        "theta": [_log_theta(record) for record in records],
    }


def bound_traces(records: Sequence[Record]) -> list[BoundTrace]:
    """Return the smoothed bound of each record, with the best that is known for its cell.

    The best is that of any record with the same data, start, learned parts and family of q.
    """
    traces = [_bound_trace(record) for record in records]
    best: dict[str, float] = defaultdict(lambda: -math.inf)
    places = [_place(record) for record in records]
    for place, trace in zip(places, traces, strict=True):
        best[place] = max(best[place], float(np.max(trace.bound, initial=-math.inf)))
    return [trace._replace(best=best[place]) for place, trace in zip(places, traces, strict=True)]


def _bound_trace(record: Record) -> BoundTrace:
    training, rows = record.config.training, record.data.get("n_train")
    covered = training.rows or (rows if isinstance(rows, int) else 0)
    batches = training.kind == "online" or (training.batch_size or covered) < covered
    found = bound_trace(record.trace.get("iteration", ()), record.trace.get("elbo", ()), batches)
    return found._replace(region=MEASURES["elbo"].region_at(0.0, covered))


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


def _log_theta(record: Record) -> pd.DataFrame:
    """Return the logarithms of the hyperparameters, by iteration."""
    columns = {key: record.trace[key] for key in THETA if key in record.trace}
    index = pd.Index(record.trace.get("iteration", ()), dtype=float)
    return pd.DataFrame(columns, index, dtype=float).map(np.log)


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


def frame_of(records: Sequence[Record]) -> pd.DataFrame:
    """A row a cell: its metrics, and what of its data and its trace predicates ask for."""
    return final_frame(records).assign(
        **traced_columns(records),
        e_rate=[_rate(record) for record in records],
        **_factors(records),
        bound_gap=[_gap(record) for record in records],
    )


def _factors(records: Sequence[Record]) -> dict[str, list[float]]:
    """A column a factor of a grid."""
    levels = [dict(record.config.data.factors) for record in records]
    names = dict.fromkeys(name for each in levels for name in each)
    return {name: [each.get(name, math.nan) for each in levels] for name in names}


def _rate(record: Record) -> float:
    """The rate of the E-step, or γ₀ of an online run, where it is one for the whole run."""
    training = record.config.training
    if training.kind == "online":
        return training.online.rates[0] if len(training.online.rates) == 1 else math.nan
    return training.e_rate if isinstance(training.e_rate, float) else math.nan


def _gap(record: Record) -> float:
    """The bound a datum that was trained on, less the test log density: above 0 where q fits too well."""
    elbo, nlpd = record.metrics.get("elbo"), record.metrics.get("nlpd")
    n = record.config.training.rows or record.data.get("n_train")
    return math.nan if elbo is None or nlpd is None or not n else elbo / cast(float, n) + nlpd
