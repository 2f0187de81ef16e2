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
from svgpbench.stats.differences import TooFewError, sampled
from svgpbench.stats.pairs import is_learned
from svgpbench.stats.rules import RULES

TOLERANCE = 0.01
"""Tolerance of convergence for a printed number of steps; the middle one of the three in `stats.rules`."""


@dataclass(frozen=True)
class Ours:
    """Our mean of a setting in the units of the print, with half its 95 % interval."""

    mean: float = math.nan
    half: float = math.nan
    n: int = 0
    unit: str = "cells"  # counted by `n`: splits, starts, data sets, …
    note: str = ""
    other_data: tuple[str, ...] = ()  # our data sets, if the print is of others


@dataclass(frozen=True)
class Beside:
    """A printed number, our value, and the claims about it."""

    printed: PrintedFigure
    stands: str  # our method for a printed row; empty if the setting names it
    ours: Ours
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
        return "; ".join(f"{one.claim.id}: {self._grade(one)}" for one in self.claims)

    def _grade(self, one: Judged) -> str:
        if self.ours.other_data:
            return str(Grade.not_testable)
        for part, found in zip(one.claim.parts, one.parts, strict=True):
            same = part.artefact == self.printed.artefact
            if same and part.compared == (self.printed.setting,):
                return found.grade
        return one.grade if self.printed.value else "no figure"


def beside(
    printed: Iterable[PrintedFigure],
    records: Sequence[Record],
    judged: Iterable[Judged],
    methods: Iterable[MethodEntry] = (),
    *,
    stand_in: bool = False,
) -> list[Beside]:
    """Return the printed numbers whose settings have records, beside ours on the reference backend.

    `methods` give the printed row that each stands for. A number occurs once for each method of its row.
    With `stand_in` the records are of other data than the paper's; our value is then the mean over their
    data sets.
    """
    printed = list(printed)
    frame = frame_of(records)
    frame = frame[(frame["backend"] == reference_backend(frame)) & (frame["perturbation"] == 0)]
    rows = {one.title: one.row for one in methods}
    several = stand_in or any(x.metric.startswith(tuple(STATISTICS)) for x in printed)
    groups: dict[str, list[tuple[str, pd.DataFrame]]] = {}
    for setting, stands, cells in _settings(frame, rows, several_sets=several):
        groups.setdefault(setting, []).append((stands, cells))
    sets, judged = tuple(map(str, frame["data"].unique())), list(judged)
    found = []
    for figure in printed:
        quantity = read_quantity(figure.metric)
        if quantity is None:
            continue
        named = {x.setting for x in printed if x.metric == figure.metric}
        field = [name for name in frame["method"].unique() if {name, rows.get(name)} & named]
        setting = figure.setting
        if setting not in groups and (stand_in or quantity.statistic):
            setting = setting.rpartition(", ")[0] or setting
        other = sets if stand_in or quantity.statistic else ()
        for stands, cells in groups.get(setting, ()):
            ours = replace(_ours(cells, frame, quantity, field), other_data=other)
            found.append(Beside(figure, stands, ours, _about(figure, judged)))
    return found


def without_ours(
    printed: Iterable[PrintedFigure], found: Sequence[Beside], judged: Iterable[Judged]
) -> list[Beside]:
    """Return all printed numbers in order; those without a value of ours get an empty one."""
    judged = list(judged)
    of: dict[PrintedFigure, list[Beside]] = {}
    for row in found:
        of.setdefault(row.printed, []).append(row)
    return [
        row
        for figure in printed
        for row in of.get(figure) or [Beside(figure, "", Ours(), _about(figure, judged))]
    ]


def _about(figure: PrintedFigure, judged: Sequence[Judged]) -> tuple[Judged, ...]:
    """Return the claims of kind `number` on a number's artefact; if none, all that are not `exact`."""
    about = [one for one in judged if figure.artefact in one.claim.artefacts]
    numbers = tuple(one for one in about if one.claim.kind == "number")
    return numbers or tuple(one for one in about if one.claim.kind != "exact")


def beside_computed(
    printed: Iterable[PrintedFigure], ours: pd.DataFrame, judged: Iterable[Judged]
) -> list[Beside]:
    """Return the printed numbers beside our computed rows of the same `setting` and `metric`.

    `note` tells several such rows apart.
    """
    judged = list(judged)
    found = []
    for figure in printed:
        same = (ours["setting"] == figure.setting) & (ours["metric"] == figure.metric)
        claims = _about(figure, judged)
        for row in ours[same].to_dict(orient="records"):
            value = Ours(float(row["value"]), n=1, unit="computed", note=str(row["note"]))
            found.append(Beside(figure, "", value, claims))
    return found


def _settings(
    frame: pd.DataFrame, rows: Mapping[str, str], *, several_sets: bool
) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Yield (setting, stands, cells) for each name that a paper may use for cells.

    `stands` is the method's label if the setting names its row, else empty. A setting without a data set
    means the only data set, or all of them with `several_sets`.
    """
    for (data, method), cells in frame.groupby(["data", "method"], sort=False):
        label = str(method)
        for name, stands in ((label, ""), (rows.get(label), label)):
            if name:
                yield f"{name}, {data}", stands, cells
            if name and frame["data"].nunique() == 1:
                yield name, stands, cells
    if several_sets and frame["data"].nunique() > 1:
        for method, cells in frame.groupby("method", sort=False):
            label = str(method)
            yield label, "", cells
            if row := rows.get(label):
                yield row, label, cells


def _ours(
    cells: pd.DataFrame, frame: pd.DataFrame, quantity: Quantity, field: Sequence[str]
) -> Ours:
    """Return our value for the cells of one method; ranks and T compare it with `field` in `frame`."""
    if quantity.statistic is not None:
        return _over_sets(cells, frame, quantity, quantity.statistic, field)
    if quantity.metric == STEPS:
        return _steps(cells, frame, field)
    return _over_outputs(cells, quantity) if cells["data"].nunique() > 1 else _mean(cells, quantity)


def _mean(cells: pd.DataFrame, quantity: Quantity) -> Ours:
    values = quantity.of(cells.set_index(["split_seed", "fold", "seed"]))
    if failed := int(((cells["status"] != "ok").to_numpy() | values.isna().to_numpy()).sum()):
        return Ours(n=len(cells), note=f"{failed} of {len(cells)} cells without it")
    overlap = float((cells["n_test"] / cells["n_train"]).mean())
    try:
        sample = sampled(values, overlap, METRICS[quantity.metric].rows)
    except TooFewError as error:
        return Ours(float(values.mean()), n=len(cells), note=str(error))
    count = len(sample.values)
    return Ours(sample.mean, sample.half_width(count), count, sample.unit)


def _over_sets(
    cells: pd.DataFrame,
    frame: pd.DataFrame,
    quantity: Quantity,
    statistic: Statistic,
    field: Sequence[str],
) -> Ours:
    """Return a statistic over data sets with its bootstrap interval; ranks are among `field`."""
    label = str(cells["method"].iloc[0])
    part = Average(
        predicate="average", says="", artefact="", metric=quantity.metric,
        statistic=statistic, method=label, field=tuple(field), printed=0.0,
    )  # fmt: skip
    (effect,) = part.judge(frame).effects
    count = sum(is_learned(cells) for _, cells in frame.groupby("data"))
    if effect.value is None or effect.low is None or effect.high is None:
        return Ours(n=count, unit="data sets", note=effect.note)
    ranks = statistic == "rank"
    mean = effect.value if ranks else quantity.in_units(effect.value)
    half = (effect.high - effect.low) / 2 * (1.0 if ranks else abs(quantity.factor))
    return Ours(mean, half, count, "data sets", f"of {len(field)} methods" if ranks else "")


def _over_outputs(cells: pd.DataFrame, quantity: Quantity) -> Ours:
    """Return the mean over the data sets (such as outputs) of a stand-in, with their s.d. in `note`."""
    if failed := int(((cells["status"] != "ok") | cells[quantity.metric].isna()).sum()):
        return Ours(n=len(cells), note=f"{failed} of {len(cells)} cells without it")
    means = quantity.of(cells).groupby(cells["data"]).mean()
    note = f"s.d. {means.std(ddof=1):.3g}" if len(means) > 1 else ""
    return Ours(float(means.mean()), n=len(means), unit="outputs", note=note)


def _steps(cells: pd.DataFrame, frame: pd.DataFrame, field: Sequence[str]) -> Ours:
    """Return the median convergence time T (iterations) of the runs at `TOLERANCE`."""
    if failed := int((cells["status"] != "ok").sum()):
        return Ours(n=len(cells), note=f"{failed} of {len(cells)} cells failed")
    label, here = str(cells["method"].iloc[0]), frame[frame["data"] == cells["data"].iloc[0]]
    times = convergence_times(here, tuple(field), TOLERANCE, RULES)[label].dropna()
    least, most = times.min(), times.max()
    note = f"T at {100 * TOLERANCE:g} %, {least:g} to {most:g}"
    middle = float(np.quantile(times, 0.5, method="lower"))
    if math.isinf(middle):
        beyond = int(np.isinf(times).sum())
        note = f"T at {100 * TOLERANCE:g} % beyond the last in {beyond} of {len(times)} runs"
    return Ours(math.nan if math.isinf(middle) else middle, n=len(times), unit="runs", note=note)


def as_text(rows: Iterable[Beside]) -> Table:
    """Return the table with numbers rounded to the digits that their errors support."""
    header = columns(("setting", "metric", "grade"), ("printed", "ours, 95 %", "n", "difference"))
    return Table(header, [_text(row) for row in rows])


def _text(row: Beside) -> list[str]:
    printed, ours = row.printed, row.ours
    value = printed.value + (f"±{printed.spread}" if printed.spread else "")
    return [
        printed.setting + (f" ({row.stands})" if row.stands else ""),
        printed.metric,
        row.grades,
        value or "cannot be read",
        plus_minus(ours.mean, ours.half) + (f" ({ours.note})" if ours.note else ""),
        f"{ours.n} {ours.unit}" if ours.n else "–",
        "–" if math.isnan(row.difference) else f"{row.difference:+.3g}",
    ]


def as_frame(rows: Iterable[Beside]) -> pd.DataFrame:
    """Return the table as a frame with unrounded numbers."""
    return pd.DataFrame(
        {
            "artefact": row.printed.artefact,
            "setting": row.printed.setting,
            "stands": row.stands,
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
