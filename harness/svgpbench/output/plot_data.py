"""Data for figures: the records of the reference backend, and frames of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from svgpbench.errors import NotRecordedError, UserError
from svgpbench.metrics import Metric
from svgpbench.output.palette import LineStyle, line_styles
from svgpbench.results.frames import count_by, final_frame, reference_backend, trace_frame
from svgpbench.results.records import Record


@dataclass(frozen=True)
class PlotData:
    """The records of an entry of a file, and frames of those that a figure or table shows."""

    experiment: str
    all: pd.DataFrame  # one row per cell of any backend, with perturbed replicas
    records: tuple[Record, ...]  # of the reference backend, without replicas
    backend: str  # the reference backend

    @classmethod
    def from_records(cls, experiment: str, records: Sequence[Record]) -> PlotData:
        """Return the data of the records of an entry, with its reference backend."""
        frame = final_frame(records)
        backend = reference_backend(frame)
        mine = (r for r in records if r.config.backend.title == backend)
        return cls(experiment, frame, tuple(r for r in mine if not r.config.is_replica), backend)

    @cached_property
    def finals(self) -> pd.DataFrame:
        """A frame with one row per cell of the reference backend."""
        return final_frame(self.records)

    @property
    def with_replicas(self) -> pd.DataFrame:
        """A frame with one row per cell of the reference backend, with perturbed replicas."""
        return self.all[self.all["backend"] == self.backend]

    @cached_property
    def traces(self) -> pd.DataFrame:
        """A frame with one row per cell of the reference backend and evaluated iteration."""
        return trace_frame(self.records)

    @property
    def data(self) -> list[str]:
        """Names of data sets, in the order of the records."""
        return list(self.finals["data"].unique())

    @property
    def styles(self) -> dict[str, LineStyle]:
        """Line style of each method, in the order of the records."""
        return line_styles(self.finals["method"].unique())

    @property
    def cells(self) -> str:
        """Number of cells of a mean, such as `5`, or `3–5` if it differs between data sets and methods."""
        counts = sorted(set(count_by(self.finals, "data", "method").values()))
        return "–".join(str(n) for n in (counts if len(counts) < 2 else (counts[0], counts[-1])))

    @property
    def failures(self) -> str:
        """Numbers of failed cells, such as `uci, t-SVGP: 2 diverged`; empty if there are none."""
        bad = self.finals[self.finals["status"] != "ok"]
        counts = count_by(bad, "data", "method", "status")
        return "; ".join(f"{d}, {m}: {n} {status}" for (d, m, status), n in counts.items())

    @property
    def warning_of_times(self) -> tuple[str, ...]:
        """A caption sentence on times, if some cells shared their process with others."""
        if all(record.config.measures for record in self.records):
            return ()
        return (
            "Times are of processes that ran other cells too; `measures = true` gives each cell its own.",
        )

    def none_of(self, what: str) -> UserError:
        """Return the error for a figure that would be empty."""
        return NotRecordedError(
            f"no record of {self.experiment} on {self.backend} has {what} to draw"
        )

    def check_recorded(self, metrics: Sequence[Metric], cells: pd.DataFrame) -> None:
        """Raise `UserError` if no row of `cells` has one of the metrics."""
        for metric in metrics:
            if metric.name not in cells or cells[metric.name].isna().all():
                raise self.none_of(metric.title)


def listed(phrases: Sequence[str]) -> str:
    """Join phrases: `one`, `one and two`, `one, two and three`."""
    *first, last = phrases
    return f"{', '.join(first)} and {last}" if first else last
