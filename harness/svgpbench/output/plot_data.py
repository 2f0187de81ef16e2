"""What a kind of figure draws from: the records of the one backend that stands for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from svgpbench.errors import UserError
from svgpbench.metrics import Metric
from svgpbench.output.palette import LineStyle, line_styles
from svgpbench.results.frames import count_by, final_frame, reference_backend, trace_frame
from svgpbench.results.records import Record


@dataclass(frozen=True)
class Drawn:
    """The records that an entry is of, and of these the ones that are drawn."""

    experiment: str
    all: pd.DataFrame  # a row a cell of any backend, replicas too
    records: tuple[Record, ...]  # of `backend`, without replicas
    backend: str

    @classmethod
    def of(cls, experiment: str, records: Sequence[Record]) -> Drawn:
        """Of the records that an entry is of."""
        frame = final_frame(records)
        backend = reference_backend(frame)
        mine = [r for r in records if r.config.backend.title == backend]
        mine = [r for r in mine if r.config.perturbation == 0]
        return cls(experiment, frame, tuple(mine), backend)

    @cached_property
    def finals(self) -> pd.DataFrame:
        """One row a drawn cell."""
        return final_frame(self.records)

    @property
    def with_replicas(self) -> pd.DataFrame:
        """One row a cell of the drawn backend, perturbed replicas too."""
        return self.all[self.all["backend"] == self.backend]

    @cached_property
    def traces(self) -> pd.DataFrame:
        """One row an evaluated iteration of a drawn cell."""
        return trace_frame(self.records)

    @property
    def data(self) -> list[str]:
        """Names of data sets, in their order."""
        return list(self.finals["data"].unique())

    @property
    def styles(self) -> dict[str, LineStyle]:
        """How each method is drawn, in their order."""
        return line_styles(self.finals["method"].unique())

    @property
    def cells(self) -> str:
        """How many cells a mean is over: `5`, or `3–5` where rows have different numbers."""
        counts = sorted(set(count_by(self.finals, "data", "method").values()))
        return "–".join(str(n) for n in (counts if len(counts) < 2 else (counts[0], counts[-1])))

    @property
    def warning_of_times(self) -> tuple[str, ...]:
        """A sentence for a figure of times, where cells were not measured for them."""
        if all(record.config.measures for record in self.records):
            return ()
        return (
            "Times are of processes that ran other cells too; `measures = true` gives each cell its own.",
        )

    def none_of(self, what: str) -> UserError:
        """The error for a figure that would be empty."""
        return UserError(f"no record of {self.experiment} on {self.backend} has {what} to draw")

    def check_recorded(self, metrics: Sequence[Metric], cells: pd.DataFrame) -> None:
        """Raise `UserError` for a metric that no row of `cells` has."""
        for metric in metrics:
            if metric.name not in cells or cells[metric.name].isna().all():
                raise self.none_of(metric.title)


def listed(phrases: Sequence[str]) -> str:
    """`one`, `one and two`, `one, two and three`."""
    *first, last = phrases
    return f"{', '.join(first)} and {last}" if first else last
