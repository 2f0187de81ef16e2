"""The table of an experiment: data set × method × backend, mean ± standard error."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from svgpbench.report.agreement import between_backends, by_rounding
from svgpbench.report.collect import Collected
from svgpbench.report.frames import METRICS, count_by, final_frame, reference_backend


@dataclass(frozen=True)
class ResultTable:
    """A row a data set, method and backend; `shown` are the backends that a terminal gets."""

    experiment: str
    rows: pd.DataFrame
    shown: tuple[str, ...]
    notes: tuple[str, ...]

    def to_csv(self) -> str:
        """Every row, numbers in full."""
        return (
            self.rows.drop(columns="failed")
            .assign(failed=self.rows["failed"].map(json.dumps))
            .to_csv(index=False)
        )

    def to_json(self) -> dict[str, Any]:
        """Every row, numbers in full, and the notes; what is not there is null."""
        rows = [
            {str(key): _plain(value) for key, value in row.items()}
            for row in self.rows.to_dict(orient="records")
        ]
        return {"experiment": self.experiment, "rows": rows, "notes": list(self.notes)}


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def build_table(collected: Collected, backends: tuple[str, ...] = ()) -> ResultTable:
    """Aggregate records; a failed cell is counted under its status and is in no mean.

    `backends`: titles to show in a terminal; empty shows the one that stands for all.
    """
    frame = final_frame(collected.records)
    reference = reference_backend(frame)
    rows = pd.DataFrame(list(_rows(frame)))
    shown = backends or (reference,)
    notes = (*collected.notes, *_failures(frame, shown), *_not_finite(frame))
    return ResultTable(collected.experiment, rows, shown, notes)


def _rows(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for (data, method), group in frame.groupby(["data", "method"], sort=False):
        differences = {
            "backends_differ": between_backends(group),
            "rounding_differs": by_rounding(group),
        }
        plain = group[group["perturbation"] == 0]
        for backend, cells in plain.groupby("backend", sort=False):
            good = cells[cells["status"] == "ok"]
            bad = cells[cells["status"] != "ok"]["status"].value_counts()
            row: dict[str, Any] = {
                "data": data,
                "task": cells["task"].iloc[0],
                "method": method,
                "backend": backend,
                "cells": len(cells),
                "ok": len(good),
                "failed": {str(status): int(count) for status, count in bad.items()},
            }
            for metric in METRICS:
                row[f"{metric}_mean"], row[f"{metric}_se"] = mean_and_error(good[metric])
            yield row | differences


def mean_and_error(values: pd.Series[float]) -> tuple[float, float]:
    """Mean and its standard error; NaN where there are too few values for one.

    A value that is not finite, which a record holds as null, has no mean: that of the others would flatter.
    """
    if values.empty or values.isna().any():
        return math.nan, math.nan
    error = float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return float(values.mean()), error


def _failures(frame: pd.DataFrame, shown: tuple[str, ...]) -> Iterator[str]:
    """Failed cells that the rows of the shown backends do not tell of."""
    visible = frame["backend"].isin(shown) & (frame["perturbation"] == 0)
    hidden = frame[(frame["status"] != "ok") & ~visible]
    hidden = hidden.assign(
        where=hidden["backend"].where(hidden["perturbation"] == 0, hidden["backend"] + " perturbed")
    )
    for (data, method), group in hidden.groupby(["data", "method"], sort=False):
        counts = count_by(group, "where", "status")
        listed = ", ".join(f"{where} {n} {status}" for (where, status), n in counts.items())
        yield f"failed besides: {data}, {method}: {listed}"


def _not_finite(frame: pd.DataFrame) -> Iterator[str]:
    """Rows whose cells ended well, but some of them with an infinite score."""
    good = frame[(frame["status"] == "ok") & (frame["perturbation"] == 0)]
    for (data, method, backend), group in good.groupby(["data", "method", "backend"], sort=False):
        for metric in METRICS:
            absent = int(group[metric].isna().sum())
            if 0 < absent < len(group):
                yield (
                    f"no mean of {metric}: {data}, {method} on {backend}: "
                    f"not finite in {absent} of {len(group)} cells"
                )
