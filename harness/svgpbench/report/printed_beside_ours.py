"""Figures as a paper prints them beside those of records, where these are of the same setting.

The `setting` of a printed figure is a method's label or the row that it stands for, or either and a data set
(`label, data set`); its `metric` one of ours, with ` / 1e5` behind it where it is printed in such units.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from svgpbench.experiments.schema import MethodEntry
from svgpbench.metrics import METRICS
from svgpbench.papers import PrintedFigure
from svgpbench.papers.differences import TooFewError, sampled
from svgpbench.report.evidence import frame_of
from svgpbench.report.frames import reference_backend
from svgpbench.report.grading import Judged
from svgpbench.report.layout import plus_minus
from svgpbench.report.table_formats import TextTable
from svgpbench.runner.records import Record

UNITS_OF_PRINT = " / "


@dataclass(frozen=True)
class Ours:
    """The mean of a setting in the units of the print, with half its 95 % interval."""

    mean: float = math.nan
    half: float = math.nan
    n: int = 0
    unit: str = "cells"  # what `n` counts: splits or starts where there is an interval
    note: str = ""


@dataclass(frozen=True)
class Beside:
    """A printed figure, ours, and the claims that are about it."""

    printed: PrintedFigure
    stands: str  # the method of ours for a printed row; empty where the setting names it
    ours: Ours
    claims: tuple[Judged, ...]

    @property
    def difference(self) -> float:
        """Ours less the printed one; NaN where a bound is printed, or nothing that can be read."""
        bound = not self.printed.value or self.printed.value[0] in "<>"
        return math.nan if bound else self.ours.mean - float(self.printed.value)

    @property
    def grades(self) -> str:
        """The grade of each claim, or of its part on this figure where it has one."""
        return "; ".join(f"{one.claim.id}: {self._grade(one)}" for one in self.claims)

    def _grade(self, one: Judged) -> str:
        for part, found in zip(one.claim.parts, one.parts, strict=True):
            if part.compared == (self.printed.setting,):
                return found.grade
        return one.grade if self.printed.value else "no figure"


def beside(
    printed: Iterable[PrintedFigure],
    records: Sequence[Record],
    judged: Iterable[Judged],
    methods: Iterable[MethodEntry] = (),
) -> list[Beside]:
    """The printed figures whose settings the records have, on the backend that stands for all.

    `methods` say which rows they stand for; a figure is there once for each method of its row.
    """
    frame = frame_of(records)
    frame = frame[(frame["backend"] == reference_backend(frame)) & (frame["perturbation"] == 0)]
    groups: dict[str, list[tuple[str, pd.DataFrame]]] = {}
    for setting, stands, cells in _settings(frame, {one.title: one.row for one in methods}):
        groups.setdefault(setting, []).append((stands, cells))
    about = [one for one in judged if one.claim.kind == "number"]
    found = []
    for figure in printed:
        metric, _, units = figure.metric.partition(UNITS_OF_PRINT)
        claims = tuple(one for one in about if figure.artefact in one.claim.artefacts)
        for stands, cells in groups.get(figure.setting, ()) if metric in METRICS else ():
            ours = _ours(cells, metric, float(units or 1))
            found.append(Beside(figure, stands, ours, claims))
    return found


def beside_computed(
    printed: Iterable[PrintedFigure], ours: pd.DataFrame, judged: Iterable[Judged]
) -> list[Beside]:
    """The printed figures beside ours of the same `setting` and `metric`, which `note` tells apart."""
    about = tuple(one for one in judged if one.claim.kind == "number")
    found = []
    for figure in printed:
        same = (ours["setting"] == figure.setting) & (ours["metric"] == figure.metric)
        claims = tuple(one for one in about if figure.artefact in one.claim.artefacts)
        for row in ours[same].to_dict(orient="records"):
            value = Ours(float(row["value"]), n=1, unit="computed", note=str(row["note"]))
            found.append(Beside(figure, "", value, claims))
    return found


def _settings(
    frame: pd.DataFrame, rows: Mapping[str, str]
) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """What a paper may call cells, their label where that is a row, and they.

    A name without a data set means the one that there is.
    """
    for (data, method), cells in frame.groupby(["data", "method"], sort=False):
        label = str(method)
        for name, stands in ((label, ""), (rows.get(label), label)):
            if name:
                yield f"{name}, {data}", stands, cells
            if name and frame["data"].nunique() == 1:
                yield name, stands, cells


def _ours(cells: pd.DataFrame, metric: str, units: float) -> Ours:
    values = cells.set_index(["split_seed", "fold", "seed"])[metric] / units
    if failed := int(((cells["status"] != "ok").to_numpy() | values.isna().to_numpy()).sum()):
        return Ours(n=len(cells), note=f"{failed} of {len(cells)} cells without it")
    overlap = float((cells["n_test"] / cells["n_train"]).mean())
    try:
        sample = sampled(values, overlap, METRICS[metric].rows)
    except TooFewError as error:
        return Ours(float(values.mean()), n=len(cells), note=str(error))
    count = len(sample.values)
    return Ours(sample.mean, sample.half_width(count), count, sample.unit)


def as_text(rows: Iterable[Beside]) -> TextTable:
    """The table for a reader: numbers to the digits that their errors support."""
    header = ("setting", "metric", "claims", "printed", "ours, 95 %", "n", "difference")
    return TextTable(header, [_text(row) for row in rows], words=3)


def _text(row: Beside) -> list[str]:
    printed, ours = row.printed, row.ours
    value = printed.value + (f"±{printed.spread}" if printed.spread else "")
    return [
        printed.setting + (f" ({row.stands})" if row.stands else ""),
        printed.metric,
        row.grades,
        value or "cannot be read",
        plus_minus(ours.mean, ours.half) + (f" ({ours.note})" if ours.note else ""),
        f"{ours.n} {ours.unit}",
        "–" if math.isnan(row.difference) else f"{row.difference:+.3g}",
    ]


def as_frame(rows: Iterable[Beside]) -> pd.DataFrame:
    """The same with numbers in full."""
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
            "claims": row.grades,
        }
        for row in rows
    )
