"""Printed numbers of a paper beside our records of the same setting.

The `setting` of a printed number is a method's label or the table row it stands for. A data set may follow
(`label, data set`). `svgpbench.papers.printed_units` reads its `metric`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from svgpbench.experiments.schema import MethodEntry
from svgpbench.metrics import METRICS
from svgpbench.output.number_formats import plus_minus
from svgpbench.output.table import Table, columns
from svgpbench.papers import PrintedFigure
from svgpbench.papers.grades import Grade
from svgpbench.papers.grading import Judged
from svgpbench.papers.predicates.averages import Average
from svgpbench.papers.predicates.traces import convergence_times
from svgpbench.papers.printed_units import (
    STATISTICS,
    STEPS,
    Quantity,
    Statistic,
    read_quantity,
)
from svgpbench.results.frames import reference_backend
from svgpbench.results.records import Record
from svgpbench.results.trace_measures import frame_of
from svgpbench.stats.differences import REPLICATE, TooFewError, percentile_interval, sampled
from svgpbench.stats.means import overlap
from svgpbench.stats.rules import RULES

TOLERANCE = 0.01
"""Tolerance of convergence for a printed number of steps; the middle one of the three in `stats.rules`."""


@dataclass(frozen=True)
class OurValue:
    """Our mean of a setting in the units of the print, with half its 95 % interval."""

    mean: float = math.nan
    half: float = math.nan
    n: int = 0
    unit: str = "cells"  # counted by `n`: splits, starts, data sets, …
    note: str = ""
    other_data: tuple[str, ...] = ()  # our data sets, if the print is of others


@dataclass(frozen=True)
class PrintedComparison:
    """A printed number, our value, and the claims about it."""

    printed: PrintedFigure
    method: str  # our method for a printed row; empty if the setting names it
    ours: OurValue
    claims: tuple[Judged, ...]

    @property
    def difference(self) -> float:
        """Our mean minus the printed value; NaN if the print is a bound or unreadable."""
        bound = not self.printed.value or self.printed.value[0] in "<>"
        return math.nan if bound else self.ours.mean - float(self.printed.value)

    @property
    def grades(self) -> str:
        """Grades of the claims, each that of the part on this number if there is one."""
        if self.ours.other_data and not self.claims:
            return str(Grade.not_testable)
        about = (judged for judged in self.claims if self._is_judged_by(judged))
        return "; ".join(f"{judged.claim.id}: {self._grade(judged)}" for judged in about)

    def _is_judged_by(self, judged: Judged) -> bool:
        """Return False for a claim whose parts on the artefact are each about another number."""
        setting = self.printed.setting
        if not self.printed.value:  # no part can be about it, and its grade is "no figure"
            return True
        own = {setting, setting.rpartition(", ")[0], self.method}
        stated = [x.compared for x in judged.claim.parts if x.artefact == self.printed.artefact]
        return any(len(names) != 1 or own & {*names} for names in stated) or not stated

    def _grade(self, judged: Judged) -> str:
        if self.ours.other_data:
            return str(Grade.not_testable)
        for stated, part in zip(judged.claim.parts, judged.parts, strict=True):
            same = stated.artefact == self.printed.artefact
            if same and stated.compared == (self.printed.setting,):
                return part.grade
        return judged.grade if self.printed.value else "no figure"


def compare_with_records(
    printed: Iterable[PrintedFigure],
    records: Sequence[Record],
    judged: Iterable[Judged],
    methods: Iterable[MethodEntry] = (),
    *,
    stand_in: bool = False,
) -> list[PrintedComparison]:
    """Return the printed numbers whose settings have records, beside ours on the reference backend.

    An entry of `methods` has the printed row that it stands for. A number occurs once for each method of its
    row. With `stand_in` the records are of other data than the paper's. Our value is then the mean over
    their data sets.
    """
    printed = list(printed)
    frame = frame_of(records)
    frame = frame[(frame["backend"] == reference_backend(frame)) & (frame["perturbation"] == 0)]
    rows = {entry.title: entry.row for entry in methods}
    over_sets = stand_in or any(x.metric.startswith(tuple(STATISTICS)) for x in printed)
    groups: dict[str, list[tuple[str, pd.DataFrame]]] = {}
    for setting, method, cells in _settings(frame, rows, several_sets=over_sets):
        groups.setdefault(setting, []).append((method, cells))
    sets, judged = tuple(map(str, frame["data"].unique())), list(judged)
    comparisons = []
    for figure in printed:
        quantity = read_quantity(figure.metric)
        if quantity is None:
            continue
        settings = {x.setting for x in printed if x.metric == figure.metric}
        # a setting may end in a data set
        pairs = [setting.rpartition(", ") for setting in settings]
        settings |= {name for name, _, data in pairs if data in sets}
        field = [name for name in frame["method"].unique() if {name, rows.get(name)} & settings]
        setting = figure.setting
        if setting not in groups and (stand_in or quantity.statistic):
            setting = setting.rpartition(", ")[0] or setting
        other_data = sets if stand_in or quantity.statistic else ()
        for method, cells in groups.get(setting, ()):
            value = replace(_value(cells, frame, quantity, field), other_data=other_data)
            comparisons.append(PrintedComparison(figure, method, value, _about(figure, judged)))
    return comparisons


def with_missing(
    printed: Iterable[PrintedFigure],
    comparisons: Sequence[PrintedComparison],
    judged: Iterable[Judged],
) -> list[PrintedComparison]:
    """Return all printed numbers in order; those without a value of ours get an empty one."""
    judged = list(judged)
    by_figure: dict[PrintedFigure, list[PrintedComparison]] = {}
    for row in comparisons:
        by_figure.setdefault(row.printed, []).append(row)
    return [
        row
        for figure in printed
        for row in by_figure.get(figure)
        or [PrintedComparison(figure, "", OurValue(), _about(figure, judged))]
    ]


def _about(figure: PrintedFigure, claims: Sequence[Judged]) -> tuple[Judged, ...]:
    """Return the claims of kind `number` on a number's artefact; if none, all that are not `exact`."""
    about = [judged for judged in claims if figure.artefact in judged.claim.artefacts]
    numbers = tuple(judged for judged in about if judged.claim.kind == "number")
    return numbers or tuple(judged for judged in about if judged.claim.kind != "exact")


def compare_with_computed(
    printed: Iterable[PrintedFigure], frame: pd.DataFrame, judged: Iterable[Judged]
) -> list[PrintedComparison]:
    """Return the printed numbers beside our computed rows of the same `setting` and `metric`.

    The column `note` tells several such rows apart.
    """
    judged = list(judged)
    comparisons = []
    for figure in printed:
        same = (frame["setting"] == figure.setting) & (frame["metric"] == figure.metric)
        claims = _about(figure, judged)
        for row in frame[same].to_dict(orient="records"):
            value = OurValue(float(row["value"]), n=1, unit="computed", note=str(row["note"]))
            comparisons.append(PrintedComparison(figure, "", value, claims))
    return comparisons


def _settings(
    frame: pd.DataFrame, rows: Mapping[str, str], *, several_sets: bool
) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Yield (setting, method, cells) for each name that a paper may use for cells.

    `method` is our method's label if the setting names its row, else empty. A setting without a data set
    means the only data set, or all of them with `several_sets`.
    """
    for (data, method), cells in frame.groupby(["data", "method"], sort=False):
        label = str(method)
        for name, shown_method in ((label, ""), (rows.get(label), label)):
            if name:
                yield f"{name}, {data}", shown_method, cells
            if name and frame["data"].nunique() == 1:
                yield name, shown_method, cells
    if several_sets and frame["data"].nunique() > 1:
        for method, cells in frame.groupby("method", sort=False):
            label = str(method)
            yield label, "", cells
            if row := rows.get(label):
                yield row, label, cells


def _value(
    cells: pd.DataFrame, frame: pd.DataFrame, quantity: Quantity, field: Sequence[str]
) -> OurValue:
    """Return our value for the cells of one method; ranks and T compare it with `field` in `frame`."""
    if quantity.statistic is not None:
        return _over_sets(cells, frame, quantity, quantity.statistic, field)
    if quantity.metric == STEPS:
        return _steps(cells, frame, field)
    values = quantity.of_cells(cells.set_index(REPLICATE))
    if failed := int(((cells["status"] != "ok").to_numpy() | values.isna().to_numpy()).sum()):
        return OurValue(n=len(cells), note=f"{failed} of {len(cells)} cells without it")
    if cells["data"].nunique() > 1:  # such as the outputs of a stand-in
        means = quantity.of_cells(cells).groupby(cells["data"]).mean()
        note = f"s.d. {means.std(ddof=1):.3g}"
        return OurValue(float(means.mean()), n=len(means), unit="outputs", note=note)
    try:
        sample = sampled(values, overlap(cells), METRICS[quantity.metric].rows)
    except TooFewError as error:
        return OurValue(float(values.mean()), n=len(cells), note=str(error))
    count = len(sample.values)
    return OurValue(sample.mean, sample.half_width(count), count, sample.unit)


def _over_sets(
    cells: pd.DataFrame,
    frame: pd.DataFrame,
    quantity: Quantity,
    statistic: Statistic,
    field: Sequence[str],
) -> OurValue:
    """Return a statistic over data sets with its bootstrap interval; ranks are among `field`."""
    label, ranks = str(cells["method"].iloc[0]), statistic == "rank"
    part = Average(
        predicate="average", says="", artefact="", metric=quantity.metric,
        statistic=statistic, method=label, field=tuple(field), printed=0.0,
    )  # fmt: skip
    found = part.bootstrap(frame, of_losses=ranks)
    if found.why_not:
        return OurValue(n=found.sets, unit="data sets", note=found.why_not)
    value = float(found.values[label])
    low, high = map(float, percentile_interval(found.resampled[label]))
    mean = value if ranks else quantity.in_units(value)
    half = (high - low) / 2 * (1.0 if ranks else abs(quantity.factor))
    note = f"of {len(field)} methods" if ranks else ""
    return OurValue(mean, half, found.sets, "data sets", note)


def _steps(cells: pd.DataFrame, frame: pd.DataFrame, field: Sequence[str]) -> OurValue:
    """Return the median convergence time T (iterations) of the runs at `TOLERANCE`."""
    if failed := int((cells["status"] != "ok").sum()):
        return OurValue(n=len(cells), note=f"{failed} of {len(cells)} cells failed")
    label = str(cells["method"].iloc[0])
    same_data = frame[frame["data"] == cells["data"].iloc[0]]
    times = convergence_times(same_data, tuple(field), TOLERANCE, RULES)[label].dropna()
    least, most = times.min(), times.max()
    note = f"T at {100 * TOLERANCE:g} %, {least:g} to {most:g}"
    # `lower`: nothing lies between a finite T and an infinite one
    middle = float(np.quantile(times, 0.5, method="lower"))
    if math.isinf(middle):
        unreached = int(np.isinf(times).sum())
        note = f"T at {100 * TOLERANCE:g} % beyond the last in {unreached} of {len(times)} runs"
    return OurValue(
        math.nan if math.isinf(middle) else middle, n=len(times), unit="runs", note=note
    )


def as_text(rows: Iterable[PrintedComparison]) -> Table:
    """Return the table with numbers rounded to the digits that their errors support."""
    header = columns(("setting", "metric", "grade"), ("printed", "ours, 95 %", "n", "difference"))
    table = []
    for row in rows:
        printed, ours = row.printed, row.ours
        value = printed.value + (f"±{printed.spread}" if printed.spread else "")
        table.append(
            [
                printed.setting + (f" ({row.method})" if row.method else ""),
                printed.metric,
                row.grades,
                value or "cannot be read",
                plus_minus((ours.mean, ours.half)) + (f" ({ours.note})" if ours.note else ""),
                f"{ours.n} {ours.unit}" if ours.n else "–",
                "–" if math.isnan(row.difference) else f"{row.difference:+.3g}",
            ]
        )
    return Table(header, table)


def as_frame(rows: Iterable[PrintedComparison]) -> pd.DataFrame:
    """Return the table as a frame with unrounded numbers."""
    return pd.DataFrame(
        {
            "artefact": row.printed.artefact,
            "setting": row.printed.setting,
            "stands": row.method,
            "metric": row.printed.metric,
            "printed": row.printed.value,
            "printed_spread": row.printed.spread,
            "ours": row.ours.mean,
            "ours_half_interval": row.ours.half,
            "n": row.ours.n,
            "unit": row.ours.unit,
            "note": row.ours.note,
            "difference": row.difference,
            "other_data": "; ".join(row.ours.other_data),
            "grade": row.grades,
        }
        for row in rows
    )
