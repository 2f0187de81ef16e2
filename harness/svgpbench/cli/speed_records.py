"""Printing of speed reports, either new or read from records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from svgpbench.benchmarks.timing import SpeedReport
from svgpbench.benchmarks.timing.floor_table import CONVENTION, floor_table, rates_table
from svgpbench.cli.printing import printer
from svgpbench.cli.timed import read_record


def print_report(report: SpeedReport) -> None:
    """Print the times, the comparison with the floor if it was measured, and the notes."""
    wide = printer(140)
    wide.print(report.table())
    if report.rates:
        for table in (floor_table(report), rates_table(report)):
            wide.print()
            wide.print(table)
        wide.print()
        wide.print(CONVENTION, markup=False, highlight=False, soft_wrap=True)
    for line in report.notes():
        wide.print(line, markup=False, highlight=False, soft_wrap=True)


def show_records(paths: Sequence[Path], roofline: Path | None) -> None:
    """Print the report of each record or, if `roofline` is given, only draw the roofline of all.

    Raises `UserError` for a file that is not a record of a speed run.
    """
    reports = {
        path: read_record(path, "--from-records", "speed", SpeedReport.from_json) for path in paths
    }
    if roofline is not None:
        draw_roofline(list(reports.values()), roofline)
        return
    for place, (path, report) in enumerate(reports.items()):
        if len(reports) > 1:
            typer.echo(f"{'' if place == 0 else chr(10)}{path}")
        print_report(report)


def draw_roofline(reports: Sequence[SpeedReport], path: Path) -> None:
    """Write the roofline figure, and print its path and caption."""
    from svgpbench.benchmarks.timing.roofline import draw_roofline as draw

    typer.echo(f"{path}\n{draw(reports, path)}")
