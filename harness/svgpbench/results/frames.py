"""Records as data frames: one row per cell, or one row per EM iteration of a cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pandas as pd

from svgpbench.errors import UserError
from svgpbench.metrics import METRICS
from svgpbench.results.records import Record

SAME_CELL = ["data", "method", "split_seed", "fold", "seed"]
"""Columns that identify a cell; its numbers should agree on every backend."""


def final_frame(records: Sequence[Record]) -> pd.DataFrame:
    """Return one row per cell: configuration, status, and final metrics if its status is `ok`.

    `unrecorded` is the set of metrics that the record of an `ok` cell lacks.
    """
    rows = []
    for record in records:
        metrics = record.metrics if record.status == "ok" else {}
        metrics = {"seconds": record.timing.get("train_s")} | metrics
        lacks = METRICS.keys() - metrics.keys() if record.status == "ok" else ()
        row = _identity(record) | {"status": record.status, "message": record.message}
        row["unrecorded"] = frozenset(lacks)
        rows.append(row | {name: metrics.get(name) for name in METRICS})
    frame = pd.DataFrame(rows)
    return frame.astype(dict.fromkeys(METRICS, float))


def trace_frame(records: Sequence[Record]) -> pd.DataFrame:
    """Return one row per cell and EM iteration, for failed cells up to the failure."""
    points: list[dict[str, Any]] = []
    for record in records:
        trace = dict(record.trace)
        cell = _identity(record) | {"status": record.status}
        points += [
            dict(zip(trace, point, strict=True)) | cell
            for point in zip(*trace.values(), strict=True)
        ]
    return pd.DataFrame(points)


def averaged_over_outputs(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return a frame with one row per cell averaged over outputs `NAME@OUTPUT`, and notes on the tables.

    A metric is averaged if it is declared to have a mean over outputs, else it is NaN. A row has the
    status of a failed cell if there is one, and `skipped` if it lacks outputs that others have.
    """
    frame = frame.assign(table=frame["data"].str.partition("@")[0])
    outputs = {str(table): len(cells["data"].unique()) for table, cells in frame.groupby("table")}
    rows = []
    one_cell = ["table", *SAME_CELL[1:], "backend", "perturbation"]
    for _, cells in frame.groupby(one_cell, sort=False):
        table = str(cells["table"].iloc[0])
        row = cells.iloc[0].to_dict() | {"data": table}
        bad = cells[cells["status"] != "ok"]
        if len(bad):
            row |= {"status": bad["status"].iloc[0], "message": bad["message"].iloc[0]}
        # a mean over fewer outputs is of easier or harder problems than that of other methods
        elif len(cells) < outputs[table]:
            row |= {"status": "skipped", "message": "outputs are missing"}
        good = row["status"] == "ok"
        for name, metric in METRICS.items():
            has_mean = good and (metric.over_outputs or outputs[table] == 1)
            row[name] = cells[name].mean(skipna=False) if has_mean else float("nan")
        rows.append(row)
    notes = [
        f"{table}: mean over its {count} outputs" for table, count in outputs.items() if count > 1
    ]
    return pd.DataFrame(rows, columns=frame.columns).drop(columns="table"), notes


def _identity(record: Record) -> dict[str, Any]:
    config = record.config
    return {
        "cell_id": record.cell_id,
        "data": config.data.title,
        "task": record.task,
        "method": config.method.title,
        "backend": config.backend.title,
        "dtype": config.backend.dtype,
        "split_seed": config.split.seed,
        "fold": config.split.fold,
        "seed": config.seed,
        "perturbation": config.perturbation,
        "iterations": config.training.iterations,
        "n_train": record.data.get("n_train"),
        "n_test": record.data.get("n_test"),
        "n_bound": config.training.rows or record.data.get("n_train"),
        "dimensions": record.data.get("dimensions"),
    }


def count_by(frame: pd.DataFrame, *columns: str) -> Counter[tuple[str, ...]]:
    """Count the rows with each combination of values, in order of first appearance."""
    return Counter(zip(*(frame[column].map(str) for column in columns), strict=True))


def reference_backend(frame: pd.DataFrame) -> str:
    """Return the reference backend, which has most `ok` cells; only float64 counts if a backend has it.

    Raises `UserError` if all records are of perturbed replicas.
    """
    plain = frame[frame["perturbation"] == 0]
    if plain.empty:
        raise UserError("these records are all of perturbed replicas: run the cells themselves too")
    order = {name: position for position, name in enumerate(plain["backend"].unique())}
    double = plain[plain["dtype"] == "float64"]
    good = (double if len(double) else plain)["backend"]
    counts = good[plain["status"] == "ok"].value_counts()
    return str(min(good.unique(), key=lambda name: (-int(counts.get(name, 0)), order[name])))
