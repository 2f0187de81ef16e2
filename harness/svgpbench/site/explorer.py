"""Data of the explorer page: means and their errors at the end, after equal steps and equal time.

All statistics are computed here, by the functions that tables and figures use; the page only selects
among them. A moment is an iteration or a number of seconds. The score of a cell at a moment is its last
traced value up to that moment.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from svgpbench.metrics import METRICS
from svgpbench.output.palette import line_styles
from svgpbench.results.pareto import ALIKE, COSTS, costs_of
from svgpbench.results.records import Record
from svgpbench.site.fields import Field
from svgpbench.stats.differences import REPLICATE
from svgpbench.stats.means import means_and_errors, overlap

Floats: TypeAlias = npt.NDArray[np.float64]

MOMENTS = 24
"""Number of moments of each kind; at most so many iterations are shown."""

DIGITS = 8  # of a mean; enough to tell different means apart
DIGITS_OF_ERROR = 3
TRACED_BY = {"steps": "iteration", "time": "seconds"}
OUTCOMES = ("better", "worse", "equal", "undecided", "not learned")


def explorer_data(field: Field) -> dict[str, Any]:
    """Return the data of an experiment for the page. Groups refer to names by index."""
    metrics = [name for name in METRICS if field.frame[name].notna().any()]
    plain = [r for r in field.records if not r.config.is_replica]
    # at most `MOMENTS` traced iterations and times, logarithmically spaced from the first to the last
    iterations: list[float] = sorted(
        {int(i) for r in plain for i in r.trace.get("iteration", ()) if i is not None}
    )
    if len(iterations) > MOMENTS:
        targets = np.geomspace(iterations[0], iterations[-1], MOMENTS)
        iterations = sorted({min(iterations, key=lambda i: abs(i - x)) for x in targets})
    seconds = [float(s) for r in plain for s in r.trace.get("seconds", ()) if s]
    times = np.geomspace(min(seconds), max(seconds), MOMENTS) if seconds else ()
    moments = {"steps": iterations, "time": [rounded(s) for s in times]}
    backends = list(dict.fromkeys(r.config.backend.title for r in plain))
    styles = line_styles(field.methods)
    return {
        "name": field.experiment,
        "title": field.title,
        "data": field.data,
        "methods": field.methods,
        "names": [field.names[label] for label in field.methods],
        "colours": [styles[label].colour for label in field.methods],
        "backends": backends,
        "backend": backends.index(field.backend),
        "metrics": [
            {
                "name": name,
                "title": METRICS[name].label,
                "better": METRICS[name].better,
                "unit": METRICS[name].unit,
                "traced": any(name in r.trace for r in plain),
            }
            for name in metrics
        ],
        "iterations": moments["steps"],
        "times": moments["time"],
        "groups": list(_groups(field, plain, metrics, backends, moments)),
        "effects": _outcomes(field),
        "alike": ALIKE,
        "notes": list(field.collected.notes),
    }


def _groups(
    field: Field,
    plain: Sequence[Record],
    metrics: Sequence[str],
    backends: Sequence[str],
    moments: Mapping[str, Sequence[float]],
) -> Iterator[dict[str, Any]]:
    """Yield one dictionary per data set, method and backend."""
    records = {record.cell_id: record for record in plain}
    costs, _ = costs_of([r for r in plain if r.config.backend.title == field.backend])
    frame = field.frame[field.frame["perturbation"] == 0]
    for (data, method, backend), cells in frame.groupby(["data", "method", "backend"], sort=False):
        good = cells[cells["status"] == "ok"]
        # cells of other backends have no cost: `reindex` makes it NaN, and the page leaves it out
        spent = costs.reindex(good["cell_id"]).median()
        with_records = [records[cell] for cell in good["cell_id"]]
        statistics = _statistics(with_records, good, metrics, moments)
        yield {
            "d": field.data.index(str(data)),
            "m": field.methods.index(str(method)),
            "b": backends.index(str(backend)),
            "n": len(cells),
            "splits": len(good[["split_seed", "fold"]].drop_duplicates()),
            "failed": len(cells) - len(good),
            "cost": [_rounded_or_none(spent[cost], 6) for cost in COSTS],
            "end": [statistics.get((name, "end", 0), (None, None)) for name in metrics],
        } | {
            kind: [
                [statistics[name, kind, index] for index in range(len(moments[kind]))]
                if (name, kind, 0) in statistics
                else None
                for name in metrics
            ]
            for kind in moments
        }


def _statistics(
    records: Sequence[Record],
    cells: pd.DataFrame,
    metrics: Sequence[str],
    moments: Mapping[str, Sequence[float]],
) -> dict[tuple[str, str, int], tuple[float | None, float | None]]:
    """Return (mean, error) by metric and moment, with None for a number that is not finite.

    A key is `(metric, "end", 0)` or, for example, `(metric, "steps", 3)`. A metric has keys of a kind of
    moment only if all cells traced it. One NaN among the values makes their mean None.
    """
    if cells.empty:
        return {}
    columns = {(name, "end", 0): cells[name].to_numpy(dtype=float) for name in metrics}
    for name in metrics:
        for kind, moments_of_kind in moments.items():
            time_column = TRACED_BY[kind]
            if all(name in r.trace and time_column in r.trace for r in records):
                scores = np.array(
                    [_scores_at(record, name, time_column, moments_of_kind) for record in records]
                )
                columns |= {(name, kind, index): column for index, column in enumerate(scores.T)}
    values = pd.DataFrame(
        np.stack([*columns.values()], axis=1), index=pd.MultiIndex.from_frame(cells[REPLICATE])
    )
    statistics = means_and_errors(values, overlap(cells), [name for name, _, _ in columns])
    return {
        key: (_rounded_or_none(mean), _rounded_or_none(error, DIGITS_OF_ERROR))
        for key, mean, error in zip(columns, *statistics, strict=True)
    }


def _scores_at(record: Record, metric: str, time_column: str, moments: Sequence[float]) -> Floats:
    """Return the last traced value up to each moment, NaN before the first; shape (moments,)."""
    # a time that is missing is later than every moment, so the times stay sorted for the search
    times = np.array([math.inf if x is None else x for x in record.trace[time_column]], dtype=float)
    values = np.array([math.nan if x is None else x for x in record.trace[metric]], dtype=float)
    last = np.searchsorted(times, np.asarray(moments) * (1 + 1e-9), side="right") - 1
    return np.where(last >= 0, values[np.maximum(last, 0)], math.nan)


def _outcomes(field: Field) -> dict[str, list[list[Any]]]:
    """Return rows of indices by score: data set, two methods, and the outcome of the first."""
    return {
        score: [
            [
                field.data.index(data),
                *(field.methods.index(name) for name in pair),
                OUTCOMES.index(outcome),
            ]
            for pair, outcomes in pairs.items()
            for data, outcome in outcomes.items()
        ]
        for score, pairs in field.outcomes.items()
    }


def _rounded_or_none(value: float, digits: int = DIGITS) -> float | None:
    """Round a number, or return None if it is not finite."""
    return rounded(value, digits) if math.isfinite(value) else None


def rounded(value: float, digits: int = DIGITS_OF_ERROR) -> float:
    """Round a number to `digits` significant digits."""
    return float(f"{value:.{digits}g}")
