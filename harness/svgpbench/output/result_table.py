"""Table of an experiment: mean ± standard error by data set, method and backend."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import pandas as pd

from svgpbench.metrics import METRICS, USUAL, Metric, loss
from svgpbench.output.built_table import BuiltTable
from svgpbench.output.figure_and_table_types import MetricName, TableKind
from svgpbench.output.number_formats import difference, plus_minus
from svgpbench.output.plot_data import listed
from svgpbench.output.table import Column, Table, columns, number
from svgpbench.results.backend_agreement import between_backends, by_rounding, on_some_cells
from svgpbench.results.collect import Collected
from svgpbench.results.frames import (
    averaged_over_outputs,
    count_by,
    final_frame,
    reference_backend,
)
from svgpbench.results.records import Record
from svgpbench.results.unsettled import unsettled_note
from svgpbench.stats.differences import REPLICATE
from svgpbench.stats.means import WHICH_ERROR, means_and_errors, overlap
from svgpbench.stats.ranks import ENOUGH, FEWEST, Ranks, average_ranks, critical_difference


class Finals(TableKind):
    """Final metrics by data set, method and backend: mean ± standard error over splits and seeds.

    Without `metrics`, the usual ones of each task are shown. `outputs = "averaged"` gives one row for all
    outputs of a table. `sorted_by` names a metric that sorts the methods of each data set and the average
    ranks, the best first; methods with a failed cell come last.
    """

    outputs: Literal["each", "averaged"] = "each"
    sorted_by: MetricName | None = None

    def build(self, collected: Collected, backends: tuple[str, ...] = ()) -> BuiltTable:
        """Return the aggregated records. A failed cell is counted under its status and is in no mean."""
        records = self.records_of(collected)
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
        if self.sorted_by and f"{self.sorted_by}_mean" not in rows:
            notes.append(f"not sorted: no record has {METRICS[self.sorted_by].title}")
        elif self.sorted_by:
            rows = _best_first(rows, METRICS[self.sorted_by])
        # what records lack has a note already, and is not a score that came out infinite
        complete = [metric for metric in metrics if metric.name not in unrecorded]
        notes += [*_failures(frame, shown), *_not_finite(frame, complete)]
        notes += filter(None, (on_some_cells(frame, reference), unsettled_note(records)))
        # of one backend: a method that ran on several would have more cells in its mean than others
        compared = frame[frame["backend"] == reference]
        methods = [str(name) for name in compared["method"].unique()]
        by_metric = {  # for each shown metric that is no time
            m.name: average_ranks(compared, m.name, m.better, methods)
            for m in metrics
            if m.unit != "s"
        }
        ranks = {name: of_metric for name, of_metric in by_metric.items() if of_metric is not None}
        name = collected.experiment
        tables = list(_tables(name, rows, shown, metrics))
        if ranks:
            header = [f"{METRICS[key].title}, {x.data_sets} sets" for key, x in ranks.items()]
            texts = [{rank.method: rank.text for rank in x.by_method} for x in ranks.values()]
            ranked = next(iter(ranks.values())).by_method
            if self.sorted_by in ranks:
                ranked = tuple(sorted(ranks[self.sorted_by].by_method, key=lambda rank: rank.mean))
            table_rows = [[rank.method, *(text[rank.method] for text in texts)] for rank in ranked]
            about = tuple(_about_ranks(ranks))
            tables.append(Table(columns(["average rank"], header), table_rows, name, about))
        return BuiltTable(
            name,
            tuple(tables),
            rows,
            tuple(_meanings(records, rows, shown, metrics, ranks)),
            tuple(notes),
            {
                "metrics": {
                    m.name: {"title": m.title, "unit": m.unit, "better": m.better} for m in metrics
                },
                "average_ranks": {metric: value.to_json() for metric, value in ranks.items()},
            },
        )


def _columns(
    requested: Sequence[str], frame: pd.DataFrame, recorded: set[str]
) -> tuple[tuple[Metric, ...], list[str]]:
    """Return the metrics to show, and a note on each requested metric that no cell has."""
    tasks = tuple(dict.fromkeys(frame["task"]))
    if not requested:
        usual = [name for task in tasks for name in USUAL[task]]
        special = ["heldout_elbo"] if "heldout_elbo" in recorded else []
        names = dict.fromkeys([*usual[:1], *special, *usual])
        return tuple(METRICS[name] for name in names), []
    metrics = [METRICS[name] for name in requested]
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
    """Yield one row per data set, method and backend, with means and errors in full."""
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
            }
            values = good.set_index(REPLICATE)[list(metrics)]
            for name, mean, error in zip(
                metrics, *means_and_errors(values, overlap(good), metrics), strict=True
            ):
                row[f"{name}_mean"], row[f"{name}_se"] = float(mean), float(error)
            failed = {str(status): int(count) for status, count in bad.items()}
            yield row | differences | {"failed": failed}


def _best_first(rows: pd.DataFrame, metric: Metric) -> pd.DataFrame:
    """Return the rows of each data set sorted by a metric; rows of tasks without it keep their order."""
    means = rows[f"{metric.name}_mean"].map(partial(loss, better=metric.better))
    # as in ranks: a mean over the cells that did not fail is no better than no mean
    losses = means.where(rows["ok"] == rows["cells"], math.inf)
    data = rows["data"].map({name: place for place, name in enumerate(rows["data"].unique())})
    places = pd.DataFrame({"data": data, "loss": losses})
    return rows.loc[places.sort_values(["data", "loss"], kind="stable").index]


def _tables(
    experiment: str, rows: pd.DataFrame, shown: Sequence[str], metrics: Sequence[Metric]
) -> Iterator[Table]:
    """Yield one table per task, with the rows of the shown backends and the columns that say something."""
    rows = rows[rows["backend"].isin(shown)]
    head: dict[str, Column] = {"data": Column("data set", wrap=False), "method": Column("method")}
    if len(shown) > 1:
        head["backend"] = Column("backend")
    head["splits"] = number("n")
    if (rows["seeds"] > 1).any():
        head["seeds"] = number("seeds")
    tail: dict[str, Column] = {}
    if rows["backends_differ"].notna().any():
        tail["backends_differ"] = Column("Δ backends", difference, numeric=True, missing="")
    if rows["rounding_differs"].notna().any():
        tail["rounding_differs"] = Column("Δ rounding", difference, numeric=True, missing="")
    if (rows["ok"] < rows["cells"]).any():
        tail["failed"] = Column(
            "failed",
            _counts,
            numeric=True,
            wrap=True,
        )
    for task, group in rows.groupby("task", sort=False):
        scores = [metric for metric in metrics if metric.fits(str(task))]
        middle = [number(metric.title, plus_minus) for metric in scores]
        values = [
            [
                *(row[name] for name in head),
                *((row[f"{metric.name}_mean"], row[f"{metric.name}_se"]) for metric in scores),
                *(row[name] for name in tail),
            ]
            for row in group.to_dict(orient="records")
        ]
        yield Table(
            [*head.values(), *middle, *tail.values()], values, f"{experiment}, {task}", grouped=True
        )


def _counts(failed: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {status}" for status, count in failed.items())


def _about_ranks(ranks: Mapping[str, Ranks]) -> Iterator[str]:
    """Yield footnotes on ranks: their definition, and critical differences if there are enough data sets."""
    most = max(value.data_sets for value in ranks.values())
    yield (
        "average rank: among the methods here, by their means on each data set, ties shared, with 95 % "
        f"bootstrap intervals over data sets, from {FEWEST} sets on; it depends on who takes part"
    )
    if most < ENOUGH:
        yield f"no critical difference of ranks: it takes {ENOUGH} data sets, and there are {most}"
    for name, value in ranks.items():
        if value.data_sets >= ENOUGH:
            least = critical_difference(len(value.by_method), value.data_sets)
            yield f"critical difference of ranks in {METRICS[name].title} at 5 % (Nemenyi): {least:.2f}"


def _meanings(
    records: Sequence[Record],
    rows: pd.DataFrame,
    shown: Sequence[str],
    metrics: Sequence[Metric],
    ranks: Mapping[str, Ranks],
) -> Iterator[str]:
    """Yield footnotes on the meaning of the columns."""
    tasks = set(rows["task"])
    where = "" if len(shown) > 1 else f", on {shown[0]}"
    seeds = ", with each of its seeds," if (rows["seeds"] > 1).any() else ""
    yield f"mean over the cells of n splits{seeds} that ended well{where}"
    yield f"±: standard error, {WHICH_ERROR}"
    metrics = [metric for metric in metrics if any(metric.fits(task) for task in tasks)]
    yield from _units(records, metrics)
    yield from (f"{metric.title}: {metric.formula}" for metric in metrics if metric.formula)
    if rows["backends_differ"].notna().any():
        names = ", ".join(dict.fromkeys(rows["backend"]))
        yield f"Δ backends: largest relative difference of one cell's final ELBO between {names}"
    if rows["rounding_differs"].notna().any():
        yield "Δ rounding: the same between a cell and its replica with inputs perturbed by rounding"
    if ranks:
        yield from _about_ranks(ranks)


def _units(records: Sequence[Record], metrics: Sequence[Metric]) -> Iterator[str]:
    """Yield a footnote on the units of scores of a regression, where any are shown."""
    standardised = {
        record.config.data.standardise_y for record in records if record.task == "regression"
    }
    scored = [metric.title for metric in metrics if metric.y == "standardised"]
    original = [metric.title for metric in metrics if metric.y == "original"]
    if standardised == {False}:
        scored, original = [], [metric.title for metric in metrics if metric.y]
    where = "" if len(standardised) == 1 else ", on data whose y is standardised"
    units = {
        f"of y standardised by the training part{where}": scored,
        "in the units of y": original,
    }
    texts = [f"{listed(titles)} {text}" for text, titles in units.items() if titles]
    if standardised and texts:
        yield "; ".join(texts)


def _failures(frame: pd.DataFrame, shown: tuple[str, ...]) -> Iterator[str]:
    """Yield notes on failed cells that are not counted in the rows of the shown backends."""
    visible = frame["backend"].isin(shown) & (frame["perturbation"] == 0)
    hidden = frame[(frame["status"] != "ok") & ~visible]
    hidden = hidden.assign(
        where=hidden["backend"].where(hidden["perturbation"] == 0, hidden["backend"] + " perturbed")
    )
    for (data, method), group in hidden.groupby(["data", "method"], sort=False):
        counts = count_by(group, "where", "status")
        failures = ", ".join(f"{where} {n} {status}" for (where, status), n in counts.items())
        yield f"failed besides: {data}, {method}: {failures}"


def _not_recorded(records: Sequence[Record], metrics: Sequence[Metric]) -> dict[str, str]:
    """Return a note on each shown metric that some records lack and others have, by name."""
    ended = [record for record in records if record.status == "ok"]
    notes = {}
    for metric in metrics:
        if metric.name == "seconds":  # has another place in a record
            continue
        fitting = [record for record in ended if metric.fits(record.task)]
        lack = sum(metric.name not in record.metrics for record in fitting)
        if 0 < lack < len(fitting):
            notes[metric.name] = f"{metric.title} is not in {lack} of {len(fitting)} records"
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
