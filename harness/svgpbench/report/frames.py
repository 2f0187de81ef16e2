"""Records as pandas tables: a row a cell, and a row an EM iteration of a cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pandas as pd

from svgpbench.errors import UserError
from svgpbench.plugins import LIKELIHOODS, load
from svgpbench.runner.records import Record

METRICS = ("elbo", "nlpd", "nlpd_original", "rmse", "rmse_original", "error_rate")
SAME_CELL = ["data", "method", "split_seed", "fold", "seed"]
"""What cells share that should give the same numbers on every backend."""


def final_frame(records: Sequence[Record]) -> pd.DataFrame:
    """One row a cell: what it is, its status, and its metrics where it ended well."""
    rows = []
    for record in records:
        metrics = record.metrics if record.status == "ok" else {}
        row = _identity(record) | {"status": record.status, "message": record.message}
        rows.append(row | {name: metrics.get(name) for name in METRICS})
    frame = pd.DataFrame(rows)
    return frame.astype(dict.fromkeys(METRICS, float))


def trace_frame(records: Sequence[Record]) -> pd.DataFrame:
    """One row an EM iteration of each cell, of failed cells up to where they failed."""
    frames = []
    for record in records:
        trace = pd.DataFrame({k: v for k, v in record.trace.items() if k != "seconds"})
        if len(trace):
            frames.append(trace.assign(**_identity(record), status=record.status))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _identity(record: Record) -> dict[str, Any]:
    config = record.config
    return {
        "data": config.data.name,
        "task": load(LIKELIHOODS, config.likelihood.name).task,
        "method": config.method.title,
        "backend": config.backend.title,
        "dtype": config.backend.dtype,
        "split_seed": config.split.seed,
        "fold": config.split.fold,
        "seed": config.seed,
        "perturbation": config.perturbation,
        "iterations": config.training.iterations,
        "n_train": record.data.get("n_train"),
        "dimensions": record.data.get("dimensions"),
    }


def count_by(frame: pd.DataFrame, *columns: str) -> Counter[tuple[str, ...]]:
    """How many rows have each combination of values, in the order they come in."""
    return Counter(zip(*(frame[column].map(str) for column in columns), strict=True))


def reference_backend(frame: pd.DataFrame) -> str:
    """The backend whose numbers stand for all: that of most good cells, in double precision.

    Raises `UserError` where there are perturbed replicas alone, which stand for nothing.
    """
    plain = frame[frame["perturbation"] == 0]
    if plain.empty:
        raise UserError("these records are all of perturbed replicas: run the cells themselves too")
    order = {name: at for at, name in enumerate(plain["backend"].unique())}
    double = plain[plain["dtype"] == "float64"]
    good = (double if len(double) else plain)["backend"]
    counts = good[plain["status"] == "ok"].value_counts()
    return str(min(good.unique(), key=lambda name: (-int(counts.get(name, 0)), order[name])))
