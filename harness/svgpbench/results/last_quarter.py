"""The numbers of a run that comparisons of methods read: at its end, and a quarter of the run earlier."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from svgpbench.results.records import Record
from svgpbench.results.trace_measures import LOGS
from svgpbench.results.unsettled import bound_trace_of, rows_of_bound
from svgpbench.stats.convergence import LAST_QUARTER
from svgpbench.stats.measures import MEASURES

Floats: TypeAlias = npt.NDArray[np.float64]

THIRD_QUARTER: Final = 0.5
"""Share of a run after which its third quarter begins."""


class Ends(NamedTuple):
    """A number at the end of a run, a quarter of the run earlier, and its median over the last quarter."""

    end: float
    before: float  # NaN if the trace has no value there
    median: float


def columns_of_ends(records: Sequence[Record], frame: pd.DataFrame) -> dict[str, list[float]]:
    """Return columns `NAME, end`, `NAME, before` and `NAME, median` of each measure, and `fall`.

    `fall` is how far the bound falls in the last quarter: below an earlier value of it, or on minibatches
    the mean of the quarter below that of the quarter before.

    Args:
        records: the records, in the order of the rows.
        frame: their frame, with a column for each measure.
    """
    finals = {
        name: frame[name].to_numpy(dtype=float) if name in frame else np.full(len(frame), np.nan)
        for name in MEASURES
    }
    columns: dict[str, list[float]] = {}
    for row, record in enumerate(records):
        minibatches = record.config.training.uses_minibatches(rows_of_bound(record))
        ends = {
            name: ends_of(record, name, float(values[row]), minibatches)
            for name, values in finals.items()
        }
        for name, found in ends.items():
            for key, value in found._asdict().items():
                columns.setdefault(f"{name}, {key}", []).append(value)
        bound = ends["elbo"]
        fall = max(0.0, bound.before - bound.end) if minibatches else bound_trace_of(record).fall
        columns.setdefault("fall", []).append(fall)
    return columns


def ends_of(record: Record, name: str, final: float, minibatches: bool) -> Ends:
    """Return a measure at the end of a run, whose final value is `final`.

    On minibatches the end is the mean over the evaluations of the last quarter, and the value before it the
    mean of the third quarter. A measure of the whole trace has no quarters, and so does not move.
    """
    if MEASURES[name].of_trace or math.isnan(final):
        return Ends(final, final, final)
    values = _values(record, name)
    iterations = np.array(record.trace.get("iteration", ())[: len(values)], dtype=np.float64)
    known = np.isfinite(values)
    # of iterations, not of evaluations: those of an `EvaluationPlan` are dense at the start
    values, share = values[known], iterations[known] / max(iterations.max(initial=0.0), 1.0)
    late = values[share >= LAST_QUARTER]
    median = float(np.median(late)) if len(late) else final
    if minibatches:
        third = values[(share >= THIRD_QUARTER) & (share < LAST_QUARTER)]
        before = _mean(third, math.nan)
        return Ends(_mean(late, final), before, median)
    until = values[share <= LAST_QUARTER]
    return Ends(final, float(until[-1]) if len(until) else math.nan, median)


def _mean(values: Floats, otherwise: float) -> float:
    """Return the mean, whatever the order of the values; `otherwise` if there are none."""
    return math.fsum(values) / len(values) if len(values) else otherwise


def _values(record: Record, name: str) -> Floats:
    """Return a measure at each evaluation of a trace, NaN where it is absent; empty if it is not traced."""

    def column(key: str) -> Floats:
        return np.array(record.trace.get(key, ()), dtype=np.float64)

    if name in LOGS:
        values = column(LOGS[name])
        return np.log(np.where(values > 0.0, values, np.nan))
    if name == "bound_gap" and {"elbo", "nlpd"} <= record.trace.keys():
        return column("elbo") / max(rows_of_bound(record), 1) + column("nlpd")
    return column(name)
