"""Printing of speed reports, either new or read from records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from svgpbench.benchmarks.timing import SpeedReport
from svgpbench.benchmarks.timing.method_ratios import (
    draw_ratios,
    notes_of,
    ratios_of_records,
    ratios_table,
    summary_table,
)
from svgpbench.benchmarks.timing.tables import CONVENTION, floor_table, rates_table, times_table
from svgpbench.cli.printing import say, show
from svgpbench.errors import UserError
from svgpbench.output.table_formats import markdown


def print_report(report: SpeedReport) -> None:
    """Print the times, the comparison with the floor if it was measured, and the notes."""
    if report.rates:
        tables = (times_table(report), floor_table(report), rates_table(report))
        show(*tables, notes=[CONVENTION, *report.notes()])
    else:
        show(times_table(report), notes=report.notes())


def show_records(paths: Sequence[Path], roofline: Path | None) -> None:
    """Print the report of each record or, if `roofline` is given, only draw the roofline of all.

    Raises `UserError` for a file that is not a record of a speed run.
    """
    reports = _read(paths)
    if roofline is not None:
        draw_roofline(list(reports.values()), roofline)
        return
    for index, (path, report) in enumerate(reports.items()):
        if len(reports) > 1:
            typer.echo(f"{chr(10) if index else ''}{path}")
        print_report(report)


def show_ratios(
    paths: Sequence[Path], ratio: str | None, figure: Path | None, as_markdown: bool
) -> None:
    """Print the times of one method over those of another in records, and draw them if asked.

    Raises `UserError` if `ratio` is not two methods, if there are no records, or none has both methods.
    """
    first, slash, second = (ratio or "").partition("/")
    if not (first and slash and second and paths):
        raise UserError(
            "--ratio, --figure and --markdown show records: give --load FILE and --ratio A/B, two "
            "methods such as t-svgp/q-svgp"
        )
    reports = {path.stem: report for path, report in _read(paths).items()}
    rows = ratios_of_records(reports, first, second)
    tables = summary_table(rows, first, second), ratios_table(rows, first, second)
    notes = notes_of(rows, first, second)
    if as_markdown:
        typer.echo("\n".join([markdown(tables[0]), "", *(f"* {note}" for note in notes)]))
    else:
        show(*tables, notes=notes)
    if figure is not None:
        caption = draw_ratios(rows, first, second, figure)
        if not as_markdown:
            say(f"\n{figure}\n{caption}")


def _read(paths: Sequence[Path]) -> dict[Path, SpeedReport]:
    """Return the reports of files, and of all files of folders."""
    files = [file for x in paths for file in (sorted(x.glob("*.json")) if x.is_dir() else [x])]
    return {file: SpeedReport.read(file) for file in files}


def draw_roofline(reports: Sequence[SpeedReport], path: Path) -> None:
    """Write the roofline figure, and print its path and caption."""
    from svgpbench.benchmarks.timing.roofline import draw_roofline as draw

    say(f"{path}\n{draw(reports, path)}")
