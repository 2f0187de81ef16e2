"""Printing of speed reports, either new or read from records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from svgpbench.benchmarks.timing import SpeedReport
from svgpbench.benchmarks.timing.record_files import read_report
from svgpbench.benchmarks.timing.tables import CONVENTION, floor_table, rates_table, times_table
from svgpbench.cli.printing import say, show


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
    reports = {path: read_report(path, "speed", SpeedReport.from_json) for path in paths}
    if roofline is not None:
        draw_roofline(list(reports.values()), roofline)
        return
    for index, (path, report) in enumerate(reports.items()):
        if len(reports) > 1:
            typer.echo(f"{chr(10) if index else ''}{path}")
        print_report(report)


def draw_roofline(reports: Sequence[SpeedReport], path: Path) -> None:
    """Write the roofline figure, and print its path and caption."""
    from svgpbench.benchmarks.timing.roofline import draw_roofline as draw

    say(f"{path}\n{draw(reports, path)}")
