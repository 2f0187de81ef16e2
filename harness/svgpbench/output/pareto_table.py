"""Table of accuracy against compute: the score, costs and place on the front of each method."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args

import pandas as pd
from pydantic import field_validator
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from svgpbench.errors import UserError
from svgpbench.metrics import METRICS
from svgpbench.output.figure_and_table_types import MetricName, TableKind
from svgpbench.output.layout import plus_minus
from svgpbench.output.plot_data import Drawn
from svgpbench.output.table_formats import TextTable, latex, markdown
from svgpbench.results.collect import Collected
from svgpbench.results.pareto import RULE, Cost, Point, costs_of, known_score, points, scaled
from svgpbench.stats.means import WHICH_ERROR

HEADER = ("data set", "method", "n", "", "FLOPs", "seconds", "at its FLOPs", "at its seconds")
WORDS = ("data set", "method", "at its FLOPs", "at its seconds")


@dataclass(frozen=True)
class FrontTable:
    """A table of the points of each score, by FLOPs and by seconds in the same order."""

    experiment: str
    scores: dict[str, tuple[list[Point], list[Point]]]  # by FLOPs, by seconds
    splits: dict[tuple[str, str], int]
    notes: tuple[str, ...]

    def texts(self) -> Iterator[tuple[str, TextTable]]:
        """Yield a heading and a table for each score."""
        for score, (by_flops, by_seconds) in self.scores.items():
            title = METRICS[score].label
            rows = [
                [
                    a.data, a.method, str(self.splits[a.data, a.method]), plus_minus(a.mean, a.error),
                    scaled(a.cost), scaled(b.cost), a.text, b.text,
                ]
                for a, b in zip(by_flops, by_seconds, strict=True)
            ]  # fmt: skip
            header = [name or title for name in HEADER]
            yield f"{self.experiment}: {title} against compute", TextTable(header, rows, 2)

    def footnotes(self) -> Iterator[str]:
        """Yield the footnotes: the meaning of the numbers, the rule, and notes for the reader."""
        yield f"mean over the cells of n splits that ended well; ±: standard error, {WHICH_ERROR}"
        yield "FLOPs: of all training steps, counted on shapes with nothing fused; evaluation left out"
        yield f"seconds: {METRICS['seconds'].formula}; as the FLOPs, the median over cells"
        yield f"place: {RULE}"
        yield from self.notes

    def _rows(self) -> Iterator[dict[str, Any]]:
        for score, both in self.scores.items():
            for cost, found in zip(get_args(Cost), both, strict=True):
                for point in found:
                    yield {
                        "data": point.data, "method": point.method, "metric": score, "mean": point.mean,
                        "se": point.error, "cost": cost, "value": point.cost, "place": point.place,
                        "by": [effect.of for effect in point.by],
                    }  # fmt: skip

    def to_csv(self) -> str:
        """Return one row per score, cost, data set and method, with numbers in full."""
        rows = [row | {"by": "; ".join(row["by"])} for row in self._rows()]
        return pd.DataFrame(rows).to_csv(index=False)

    def to_json(self) -> dict[str, Any]:
        """Return the rows of `to_csv`, the rule and the notes. Missing values are null."""
        rows = [{key: _plain(value) for key, value in row.items()} for row in self._rows()]
        return {
            "experiment": self.experiment,
            "rows": rows,
            "rule": RULE,
            "notes": list(self.notes),
        }

    def to_markdown(self) -> str:
        """Return one pipe table per score, and the footnotes as a list."""
        parts = [markdown(text) for _, text in self.texts()]
        return "\n\n".join([*parts, "\n".join(f"- {note}" for note in self.footnotes())])

    def to_latex(self) -> str:
        """Return one table for `booktabs` per score, with footnotes in the captions."""
        notes = ". ".join(self.footnotes())
        return "\n\n".join(latex(text, f"{title}: {notes}.") for title, text in self.texts())

    def to_terminal(self) -> FrontTable:
        """Return the table itself, which rich can print."""
        return self

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield one table per score, then the footnotes."""
        for title, text in self.texts():
            yield _rich(title, text)
            yield Text()
        for note in self.footnotes():
            yield Text(note, style="dim")


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _rich(title: str, text: TextTable) -> Table:
    table = Table(
        title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0)
    )
    for name in text.header:
        words = name in WORDS
        table.add_column(
            name,
            justify="left" if words else "right",
            header_style="dim",
            no_wrap=not name.startswith("at"),
        )
    previous = None
    for row in text.rows:
        if previous is not None and row[0] != previous:
            table.add_row()
        table.add_row(*map(Text, ("" if row[0] == previous else row[0], *row[1:])))
        previous = row[0]
    return table


class ParetoTable(TableKind):
    """Score, FLOPs and seconds of each method, and whether it is on the front of either.

    `metrics`: scores with a region of practical equivalence; NLPD by default.
    """

    metrics: tuple[MetricName, ...] = ("nlpd",)

    @field_validator("metrics")
    @classmethod
    def _are_judged(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(known_score, names))

    def build(self, collected: Collected, backends: tuple[str, ...] = ()) -> FrontTable:
        """Return the table on the reference backend.

        Raises `UserError` if no record has one of the scores, or if several backends are given.
        """
        if len(backends) > 1:
            raise UserError("costs are compared on one backend: give one --backend")
        drawn = Drawn.of(collected.experiment, self.chosen(collected))
        drawn.check_recorded([METRICS[name] for name in self.metrics], drawn.finals)
        costs, notes = costs_of(drawn.records)
        frame = drawn.with_replicas
        scores = {
            name: (points(frame, costs, name, "flops"), points(frame, costs, name, "seconds"))
            for name in self.metrics
        }
        ended = drawn.finals[drawn.finals["status"] == "ok"]
        splits = {
            (str(data), str(method)): len(ended_of(ended, data, method))
            for data, method in drawn.finals[["data", "method"]].drop_duplicates().to_numpy()
        }
        said = (*collected.notes, f"on {drawn.backend}", *notes, *drawn.warning_of_times)
        return FrontTable(collected.experiment, scores, splits, said)


def ended_of(ended: pd.DataFrame, data: str, method: str) -> pd.DataFrame:
    """Return the distinct splits (split_seed, fold) of one data set and method."""
    cells = ended[(ended["data"] == data) & (ended["method"] == method)]
    return cells[["split_seed", "fold"]].drop_duplicates()
