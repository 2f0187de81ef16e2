"""Figures as a paper prints them beside those of records, where these are of the same setting.

The `setting` of a printed figure is a method's label, or `label, data set`; its `metric` one of ours,
with ` / 1e5` behind it where it is printed in such units.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from svgpbench.metrics import METRICS
from svgpbench.papers import PrintedFigure
from svgpbench.papers.differences import TooFewError, sampled
from svgpbench.report.evidence import frame_of
from svgpbench.report.frames import reference_backend
from svgpbench.report.layout import plus_minus
from svgpbench.report.table_formats import TextTable
from svgpbench.report.verdicts import Judged
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
    ours: Ours
    claims: tuple[Judged, ...]

    @property
    def difference(self) -> float:
        """Ours less the printed one; NaN where a bound is printed, or nothing that can be read."""
        bound = not self.printed.value or self.printed.value[0] in "<>"
        return math.nan if bound else self.ours.mean - float(self.printed.value)


def beside(
    printed: Iterable[PrintedFigure], records: Sequence[Record], judged: Iterable[Judged]
) -> list[Beside]:
    """The printed figures whose settings the records have, on the backend that stands for all."""
    frame = frame_of(records)
    frame = frame[(frame["backend"] == reference_backend(frame)) & (frame["perturbation"] == 0)]
    groups = dict(_settings(frame))
    about = [one for one in judged if one.claim.kind == "number"]
    found = []
    for figure in printed:
        metric, _, units = figure.metric.partition(UNITS_OF_PRINT)
        if figure.setting in groups and metric in METRICS:
            ours = _ours(groups[figure.setting], metric, float(units or 1))
            claims = tuple(one for one in about if figure.artefact in one.claim.artefacts)
            found.append(Beside(figure, ours, claims))
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
            found.append(Beside(figure, value, claims))
    return found


def _settings(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Cells by what a paper may call them; a label alone means the one data set that there is."""
    for (data, method), cells in frame.groupby(["data", "method"], sort=False):
        yield f"{method}, {data}", cells
        if frame["data"].nunique() == 1:
            yield str(method), cells


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
        printed.setting,
        printed.metric,
        "; ".join(f"{one.claim.id}: {one.verdict}" for one in row.claims),
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
            "metric": row.printed.metric,
            "printed": row.printed.value,
            "printed_spread": row.printed.spread,
            "ours": row.ours.mean,
            "ours_half_interval": row.ours.half,
            "n": row.ours.n,
            "unit": row.ours.unit,
            "note": row.ours.note,
            "difference": row.difference,
            "claims": "; ".join(f"{one.claim.id}: {one.verdict}" for one in row.claims),
        }
        for row in rows
    )
