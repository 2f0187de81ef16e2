"""Table of an experiment: mean ± standard error by data set, method and backend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import pandas as pd

from svgpbench.metrics import METRICS, USUAL, Metric
from svgpbench.output.figure_and_table_types import TableKind
from svgpbench.output.layout import ResultTable
from svgpbench.plugins import LIKELIHOODS, load
from svgpbench.results.backend_agreement import between_backends, by_rounding, on_some_cells
from svgpbench.results.collect import Collected
from svgpbench.results.frames import (
    averaged_over_outputs,
    count_by,
    final_frame,
    reference_backend,
)
from svgpbench.results.records import Record
from svgpbench.stats.means import mean_and_error
from svgpbench.stats.ranks import Ranks, average_ranks


class Finals(TableKind):
    """Final metrics by data set, method and backend: mean ± standard error over splits and seeds.

    Without `metrics`, the usual ones of each task are shown. `outputs = "averaged"` gives one row for all
    outputs of a table.
    """

    outputs: Literal["each", "averaged"] = "each"

    def build(self, collected: Collected, backends: tuple[str, ...] = ()) -> ResultTable:
        """Return the aggregated records. A failed cell is counted under its status and is in no mean."""
        records = self.chosen(collected)
        frame, notes = final_frame(records), list(collected.notes)
        recorded = {name for record in records for name in record.metrics}
        metrics, absent = _columns(self.metrics, frame, recorded)
        unrecorded = _not_recorded(records, metrics)
        notes += [*absent, *unrecorded.values()]
        if self.outputs == "averaged":
            frame, averaged = averaged_over_outputs(frame)
            notes += averaged
        reference = reference_backend(frame)
        shown = backends or (reference,)
        names = [n for n in METRICS if n in recorded or n in {metric.name for metric in metrics}]
        rows = pd.DataFrame(list(_rows(frame, names)))
        known = [metric for metric in metrics if metric.name not in unrecorded]
        notes += [*_failures(frame, shown), *_not_finite(frame, known)]
        notes += [line] if (line := on_some_cells(frame, reference)) else []
        ranks = _ranks(frame[frame["backend"] == reference], metrics)
        return ResultTable(collected.experiment, rows, shown, tuple(notes), metrics, ranks)


def build_table(collected: Collected, backends: tuple[str, ...] = ()) -> ResultTable:
    """Return the default table of an experiment.

    `backends` are the titles of backends that a terminal shows. Empty shows the reference backend.
    """
    return Finals().build(collected, backends)


def _ranks(frame: pd.DataFrame, metrics: Sequence[Metric]) -> dict[str, Ranks]:
    """Return the average ranks of all methods over data sets, for each shown metric that is no time."""
    methods = [str(name) for name in frame["method"].unique()]
    scores = [metric for metric in metrics if metric.unit != "s"]
    found = {m.name: average_ranks(frame, m.name, m.better, methods) for m in scores}
    return {name: ranks for name, ranks in found.items() if ranks is not None}


def _columns(
    asked: Sequence[str], frame: pd.DataFrame, recorded: set[str]
) -> tuple[tuple[Metric, ...], list[str]]:
    """Return the metrics to show, and a note on each requested metric that no cell has."""
    tasks = tuple(dict.fromkeys(frame["task"]))
    if not asked:
        usual = [name for task in tasks for name in USUAL[task]]
        special = ["heldout_elbo"] if "heldout_elbo" in recorded else []
        names = dict.fromkeys([*usual[:1], *special, *usual])
        return tuple(METRICS[name] for name in names), []
    metrics = [METRICS[name] for name in asked]
    absent = [metric for metric in metrics if frame[metric.name].isna().all()]
    return tuple(metric for metric in metrics if metric not in absent), [
        f"no {metric.title}: {why_absent(metric, tasks)}" for metric in absent
    ]


def why_absent(metric: Metric, tasks: Sequence[str]) -> str:
    """Return why no record has a requested metric."""
    if not any(metric.fits(task) for task in tasks):
        return f"it is one of {metric.task}"
    if metric.gaussian:
        return "no record has it (only those of a Gaussian predictive density may)"
    return "no record has it"


def _rows(frame: pd.DataFrame, metrics: Sequence[str]) -> Iterator[dict[str, Any]]:
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
                "splits": len(good[["split_seed", "fold"]].drop_duplicates()),
                "seeds": int(good["seed"].nunique()),
                "failed": {str(status): int(count) for status, count in bad.items()},
            }
            for metric in metrics:
                row[f"{metric}_mean"], row[f"{metric}_se"] = mean_and_error(good, metric)
            yield row | differences


def _failures(frame: pd.DataFrame, shown: tuple[str, ...]) -> Iterator[str]:
    """Yield notes on failed cells that are not counted in the rows of the shown backends."""
    visible = frame["backend"].isin(shown) & (frame["perturbation"] == 0)
    hidden = frame[(frame["status"] != "ok") & ~visible]
    hidden = hidden.assign(
        where=hidden["backend"].where(hidden["perturbation"] == 0, hidden["backend"] + " perturbed")
    )
    for (data, method), group in hidden.groupby(["data", "method"], sort=False):
        counts = count_by(group, "where", "status")
        listed = ", ".join(f"{where} {n} {status}" for (where, status), n in counts.items())
        yield f"failed besides: {data}, {method}: {listed}"


def _not_recorded(records: Sequence[Record], metrics: Sequence[Metric]) -> dict[str, str]:
    """Return a note on each shown metric that some records lack and others have, by name."""
    ended = [record for record in records if record.status == "ok"]
    notes = {}
    for metric in metrics:
        if metric.name == "seconds":  # has another place in a record
            continue
        mine = [r for r in ended if metric.fits(load(LIKELIHOODS, r.config.likelihood.name).task)]
        lack = sum(metric.name not in record.metrics for record in mine)
        if 0 < lack < len(mine):
            notes[metric.name] = f"{metric.title} is not in {lack} of {len(mine)} records"
    return notes


def _not_finite(frame: pd.DataFrame, metrics: Sequence[Metric]) -> Iterator[str]:
    """Yield notes on rows of `ok` cells of which some have a score that is not finite."""
    good = frame[(frame["status"] == "ok") & (frame["perturbation"] == 0)]
    for (data, method, backend), group in good.groupby(["data", "method", "backend"], sort=False):
        for metric in metrics:
            absent = int(group[metric.name].isna().sum())
            if 0 < absent < len(group):
                yield (
                    f"no mean of {metric.name}: {data}, {method} on {backend}: "
                    f"not finite in {absent} of {len(group)} cells"
                )
