"""Result tables and their text, with numbers rounded according to their errors."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from svgpbench.metrics import METRICS, Metric
from svgpbench.output.table_formats import TextTable, latex, markdown
from svgpbench.stats.means import WHICH_ERROR
from svgpbench.stats.ranks import ENOUGH, FEWEST, Ranks, critical_difference

UNITS = {
    "standardised": "of y standardised by the training part",
    "original": "in the units of y",
}


@dataclass(frozen=True)
class ResultTable:
    """A table with one row per data set, method and backend. Texts show some of the backends and metrics."""

    experiment: str
    rows: pd.DataFrame
    shown: tuple[str, ...]  # backends
    notes: tuple[str, ...]
    metrics: tuple[Metric, ...]  # in column order
    ranks: Mapping[str, Ranks] = field(default_factory=dict)  # by metric, if it is ranked

    def metrics_of(self, task: str) -> list[Metric]:
        """Return the metrics that are columns for one task."""
        return [metric for metric in self.metrics if metric.fits(task)]

    def to_csv(self) -> str:
        """Return every row, with numbers in full."""
        return (
            self.rows.drop(columns="failed")
            .assign(failed=self.rows["failed"].map(json.dumps))
            .to_csv(index=False)
        )

    def to_json(self) -> dict[str, Any]:
        """Return every row, with numbers in full, and the notes. Missing values are null."""
        rows = [
            {str(key): _plain(value) for key, value in row.items()}
            for row in self.rows.to_dict(orient="records")
        ]
        metrics = {
            m.name: {"title": m.title, "unit": m.unit, "better": m.better} for m in self.metrics
        }
        return {
            "experiment": self.experiment,
            "metrics": metrics,
            "rows": rows,
            "average_ranks": {name: ranks.to_json() for name, ranks in self.ranks.items()},
            "notes": list(self.notes),
        }

    def to_markdown(self) -> str:
        """Return pipe tables, one per task, and the footnotes as a list."""
        return to_markdown(self)

    def to_latex(self) -> str:
        """Return tables for `booktabs`, one per task, with footnotes in the captions."""
        return to_latex(self)

    def to_terminal(self) -> TerminalTable:
        """Return an object that rich prints."""
        return TerminalTable(self)


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclass(frozen=True)
class Layout:
    """The header and the rows of one task as text."""

    task: str
    header: list[str]
    rows: list[list[str]]

    @property
    def text(self) -> TextTable:
        """The table as it is written to a file. Columns before `n` hold words."""
        return TextTable(self.header, self.rows, self.header.index("n"))


def lay_out(table: ResultTable) -> Iterator[Layout]:
    """Yield one layout per task, with the rows of the shown backends."""
    rows = table.rows[table.rows["backend"].isin(table.shown)]
    several = len(table.shown) > 1
    differ = bool(rows["backends_differ"].notna().any())
    rounding = bool(rows["rounding_differs"].notna().any())
    failed = bool((rows["ok"] < rows["cells"]).any())
    seeds = bool((rows["seeds"] > 1).any())
    for task, group in rows.groupby("task", sort=False):
        metrics = table.metrics_of(str(task))
        header = ["data set", "method"]
        header += ["backend"] * several + ["n"] + ["seeds"] * seeds + [m.title for m in metrics]
        header += ["Δ backends"] * differ + ["Δ rounding"] * rounding + ["failed"] * failed
        text = [
            [
                str(row["data"]),
                str(row["method"]),
                *[str(row["backend"])] * several,
                str(row["splits"]),
                *[str(row["seeds"])] * seeds,
                *(plus_minus(row[f"{m.name}_mean"], row[f"{m.name}_se"]) for m in metrics),
                *[difference(row["backends_differ"])] * differ,
                *[difference(row["rounding_differs"])] * rounding,
                *[", ".join(f"{n} {status}" for status, n in row["failed"].items())] * failed,
            ]
            for row in group.to_dict(orient="records")
        ]
        yield Layout(str(task), header, text)


def rank_table(table: ResultTable) -> TextTable | None:
    """Return one row per method with its average rank in each metric, or None if there are no ranks."""
    if not table.ranks:
        return None
    titles = {metric.name: metric.title for metric in table.metrics}
    header = [f"{titles[name]}, {ranks.data_sets} sets" for name, ranks in table.ranks.items()]
    of_metric = [{rank.method: rank.text for rank in ranks.of} for ranks in table.ranks.values()]
    rows = [[method, *(texts[method] for texts in of_metric)] for method in of_metric[0]]
    return TextTable(["average rank", *header], rows, words=1)


def _about_ranks(table: ResultTable) -> Iterator[str]:
    """Yield footnotes on ranks: their definition, and critical differences if there are enough data sets."""
    most = max(ranks.data_sets for ranks in table.ranks.values())
    yield (
        "average rank: among the methods here, by their means on each data set, ties shared, with 95 % "
        f"bootstrap intervals over data sets, from {FEWEST} sets on; it depends on who takes part"
    )
    if most < ENOUGH:
        yield f"no critical difference of ranks: it takes {ENOUGH} data sets, and there are {most}"
    for name, ranks in table.ranks.items():
        if ranks.data_sets >= ENOUGH:
            least = critical_difference(len(ranks.of), ranks.data_sets)
            yield f"critical difference of ranks in {METRICS[name].title} at 5 % (Nemenyi): {least:.2f}"


def plus_minus(mean: float, error: float) -> str:
    """Return text such as `-412.31±0.64`, with the mean and the error rounded to the same place.

    The error has two digits, but at most three decimal places, or four if it is 0.001 or less.
    """
    if math.isnan(mean):
        return "–"
    if max(abs(mean), 0.0 if math.isnan(error) else error) >= 1e6:
        return f"{mean:.2e}" if math.isnan(error) else f"{mean:.2e}±{error:.0e}"
    if math.isnan(error):
        return f"{mean:.{_places(mean, 4)}f}"
    if error < 1e-6:
        return f"{mean:.{_places(mean, 4)}f}±0"
    places = min(_places(error, 2), 3 if error > 1e-3 else 4)
    return f"{mean:.{places}f}±{error:.{places}f}"


def _places(value: float, digits: int) -> int:
    """Return the number of decimal places, from 0 to 4, that shows `digits` significant digits."""
    size = math.floor(math.log10(abs(value))) if value else 0
    return min(4, max(0, digits - 1 - size))


def difference(value: float) -> str:
    """Return a relative difference with one digit, empty for NaN."""
    return "" if math.isnan(value) else "0" if value == 0 else f"{value:.0e}"


def footnotes(table: ResultTable) -> Iterator[str]:
    """Yield the footnotes: the meaning of columns, and notes for the reader."""
    where = "" if len(table.shown) > 1 else f", on {table.shown[0]}"
    each = ", with each of its seeds," if (table.rows["seeds"] > 1).any() else ""
    yield f"mean over the cells of n splits{each} that ended well{where}"
    yield f"±: standard error, {WHICH_ERROR}"
    shown = [m for m in table.metrics if any(m.fits(task) for task in set(table.rows["task"]))]
    units = "; ".join(_units(shown))
    if units and "regression" in set(table.rows["task"]):
        yield units
    yield from (f"{metric.title}: {metric.formula}" for metric in shown if metric.formula)
    if table.rows["backends_differ"].notna().any():
        names = ", ".join(dict.fromkeys(table.rows["backend"]))
        yield f"Δ backends: largest relative difference of one cell's final ELBO between {names}"
    if table.rows["rounding_differs"].notna().any():
        yield "Δ rounding: the same between a cell and its replica with inputs perturbed by rounding"
    if table.ranks:
        yield from _about_ranks(table)
    yield from table.notes


def _units(metrics: Sequence[Metric]) -> Iterator[str]:
    """Yield texts that list the metrics of standardised y, and those in the units of y."""
    for y, text in UNITS.items():
        if titles := [metric.title for metric in metrics if metric.y == y]:
            yield f"{', '.join(titles[:-1])}{' and ' * (len(titles) > 1)}{titles[-1]} {text}"


class TerminalTable:
    """A result table as rich renders it."""

    def __init__(self, table: ResultTable) -> None:
        self.table = table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield one table per task, then ranks and footnotes."""
        for layout in lay_out(self.table):
            yield _rich(f"{self.table.experiment}, {layout.task}", layout)
            yield Text()
        if ranks := rank_table(self.table):
            yield _rich_ranks(ranks)
            yield Text()
        for note in footnotes(self.table):
            yield Text(note, style="dim")


def _rich(title: str, layout: Layout) -> Table:
    table = Table(
        title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0)
    )
    for at, column in enumerate(layout.header):
        numeric = at >= layout.header.index("n") and column != "failed"
        table.add_column(
            Text(column.replace("Δ ", "Δ\n")),  # narrow: a full row must fit in 120 characters
            justify="right" if numeric else "left",
            header_style="dim",
            vertical="bottom",
            no_wrap=numeric,
        )
    previous = None
    for row in layout.rows:
        if previous is not None and row[0] != previous:
            table.add_row()
        name = "" if row[0] == previous else row[0]
        table.add_row(*(Text(cell) for cell in (name, *row[1:])))
        previous = row[0]
    return table


def _rich_ranks(ranks: TextTable) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for at, column in enumerate(ranks.header):
        table.add_column(Text(column), justify="right" if at else "left", vertical="bottom")
    for row in ranks.rows:
        table.add_row(*map(Text, row))
    return table


def to_markdown(table: ResultTable) -> str:
    """Return pipe tables, one per task, and the footnotes as a list."""
    parts = [markdown(layout.text) for layout in lay_out(table)]
    if ranks := rank_table(table):
        parts.append(markdown(ranks))
    parts.append("\n".join(f"- {note}" for note in footnotes(table)))
    return "\n\n".join(parts)


def to_latex(table: ResultTable) -> str:
    """Return tables for `booktabs`, one per task, with footnotes in the captions."""
    notes = ". ".join(footnotes(table))
    parts = [
        latex(layout.text, f"{table.experiment}, {layout.task}: {notes}.")
        for layout in lay_out(table)
    ]
    if ranks := rank_table(table):
        parts.append(latex(ranks, f"{table.experiment}: {'. '.join(_about_ranks(table))}."))
    return "\n\n".join(parts)
