"""Measures of traces for claims: the mean, the smoothed bound, its largest drop, and hyperparameters."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from svgpbench.results.frames import final_frame
from svgpbench.results.records import Record
from svgpbench.results.unsettled import bound_trace_of, rows_of_bound
from svgpbench.stats.convergence import BoundTrace

SETTLING_ITERATIONS = 10
"""EM iterations after which drops of the bound count."""

FULL = ("t-svgp", "q-svgp")
"""Methods whose q(u) is an unrestricted Gaussian."""

ON_TWO_BASES = ("orth", "hybrid")
"""Methods whose q has a mean on γ and β. They have the same family of q in other coordinates."""

THETA = ("variance", "lengthscale_mean", "noise_variance")

THIRDS = ("elbo_early", "elbo_midway", "elbo_late")
"""Measures that are the mean bound of a third of the trace, in order."""

LOGS = dict(zip(("log_variance", "log_lengthscale", "log_noise"), THETA, strict=True))
"""Measures that are the logarithm of a final hyperparameter, with its name."""


def traced_columns(records: Sequence[Record]) -> dict[str, list[Any]]:
    """Return a column for each measure, with a value for each record."""
    traces = bound_traces(records)
    return {
        "elbo_area": [_mean(record, "elbo") for record in records],
        "nlpd_area": [_mean(record, "nlpd") for record in records],
        **{
            name: [_mean_of_third(record, index) for record in records]
            for index, name in enumerate(THIRDS)
        },
        **{
            name: [
                math.log(value) if value and record.status == "ok" else math.nan
                for record in records
                for value in (record.metrics.get(theta),)
            ]
            for name, theta in LOGS.items()
        },
        "elbo_drop": [_largest_drop(record) for record in records],
        "noise_variance": [
            float(values[-1]) if values else math.nan
            for values in (_values(record, "noise_variance") for record in records)
        ],
        "bound_trace": traces,
        "bound_rise": [trace.rise for trace in traces],
        "bound_fall": [trace.fall for trace in traces],
        "theta": [_log_theta(record) for record in records],
    }


def bound_traces(records: Sequence[Record]) -> list[BoundTrace]:
    """Return the smoothed bound of each record, with the best bound that is known for its cell.

    The best bound is the largest of all records with the same data, start, learned parts and family of q.
    """
    traces = [bound_trace_of(record) for record in records]
    best: dict[str, float] = defaultdict(lambda: -math.inf)
    keys = [_optimum_key(record) for record in records]
    for key, trace in zip(keys, traces, strict=True):
        best[key] = max(best[key], float(np.max(trace.bound, initial=-math.inf)))
    return [trace._replace(best=best[key]) for key, trace in zip(keys, traces, strict=True)]


def _optimum_key(record: Record) -> str:
    """Return a key that is equal for cells whose bounds have the same optimum.

    It leaves out the coordinates of q, the backend and the rates.
    """
    config = record.config
    parts = (config.data, config.split, config.kernel, config.likelihood, config.inducing)
    # equal for methods with the same optimal q at every θ; for DECOUPLED, of a log-concave likelihood
    family = "" if config.method.name in FULL else config.method.name
    if config.method.name in ON_TWO_BASES or config.method.options.get("union"):
        family = "two bases"
    width = config.method.options.get("residual_variance", "prior")  # of q(f|u); changes the bound
    return repr((*parts, config.training.learn, config.seed, config.perturbation, family, width))


def _log_theta(record: Record) -> pd.DataFrame:
    """Return the logarithms of the hyperparameters in the trace, with one row per iteration."""
    columns = {key: record.trace[key] for key in THETA if key in record.trace}
    index = pd.Index(record.trace.get("iteration", ()), dtype=float)
    # reshaped, as without columns the array would have one axis
    values = np.array(list(columns.values()), dtype=float).T.reshape(len(index), len(columns))
    return pd.DataFrame(np.log(values), index, list(columns))


def _values(record: Record, column: str) -> list[float]:
    """Return the numbers of a column of the trace without nulls."""
    return [value for value in record.trace.get(column, ()) if value is not None]


def _mean(record: Record, column: str) -> float:
    """Return the mean of a column of the trace over EM iterations, NaN if it has no value."""
    values = _values(record, column)
    return math.fsum(values) / len(values) if values else math.nan


def _mean_of_third(record: Record, index: int) -> float:
    """Return the mean bound of the trace in third `index` (0, 1 or 2) of the iterations, NaN if empty."""
    iterations, third = record.trace.get("iteration", ()), record.config.training.iterations / 3
    points = zip(iterations, record.trace.get("elbo", ()), strict=True)
    values = [
        x for i, x in points if i is not None and x is not None and index < i / third <= index + 1
    ]
    return math.fsum(values) / len(values) if values else math.nan


def _largest_drop(record: Record) -> float:
    """Return the largest drop of the bound between trace points after `SETTLING_ITERATIONS`, at least 0.

    NaN if the trace is too short.
    """
    bound = pd.Series(record.trace.get("elbo", ()), dtype=float)
    if len(bound) <= SETTLING_ITERATIONS + 1:
        return math.nan
    return max(0.0, -float(bound.diff()[SETTLING_ITERATIONS:].min()))


def frame_of(records: Sequence[Record]) -> pd.DataFrame:
    """Return one row per cell: the columns of `final_frame`, the measures of traces and data factors."""
    levels = [dict(record.config.data.factors) for record in records]
    factors = dict.fromkeys(name for of_record in levels for name in of_record)
    return final_frame(records).assign(
        **traced_columns(records),
        e_rate=[_e_rate(record) for record in records],
        m_rate=[_constant(record.config.training.m_rate) for record in records],
        **{name: [of_record.get(name, math.nan) for of_record in levels] for name in factors},
        bound_gap=[_bound_gap(record) for record in records],
    )


def _e_rate(record: Record) -> float:
    """Return the rate of the E-step, or γ₀ of an online run, NaN if it is not one constant number."""
    training = record.config.training
    if training.kind == "online":
        return training.online.rates[0] if len(training.online.rates) == 1 else math.nan
    return _constant(training.e_rate)


def _constant(rate: object) -> float:
    """Return a rate, NaN if it is not one constant number."""
    return rate if isinstance(rate, float) else math.nan


def _bound_gap(record: Record) -> float:
    """Return the bound per training datum minus the mean test log density; above 0, q overfits."""
    elbo, nlpd = record.metrics.get("elbo"), record.metrics.get("nlpd")
    rows = rows_of_bound(record)
    return math.nan if elbo is None or nlpd is None or not rows else elbo / rows + nlpd
