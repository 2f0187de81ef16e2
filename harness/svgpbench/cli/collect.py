"""`svgpbench collect`: put the records of several folders into one table or one folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from svgpbench.cli.printing import say
from svgpbench.errors import UserError


class Keep(StrEnum):
    """Choices between two records of one cell with different numbers."""

    newest = "newest"


def collect_command(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR...", help="Folders whose records are collected, subfolders included."
        ),
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Table to write: a .parquet or .csv file."),
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(
            "--into",
            metavar="RESULTS",
            help="Folder of records to write, one Parquet file per experiment.",
        ),
    ] = None,
    traces: Annotated[
        bool,
        typer.Option("--traces", help="Write one row per traced point instead of one per cell."),
    ] = False,
    keep: Annotated[
        Keep | None,
        typer.Option(
            "--keep", help="Record to keep if two records of a cell have different numbers."
        ),
    ] = None,
) -> None:
    """Put the records of several folders into one table, or into one folder."""
    from svgpbench.results.merging import merge
    from svgpbench.suite.joining import collect_entrants

    if out is None and into is None:
        raise UserError("give --out FILE for a table or --into RESULTS for a folder of records")
    if out is not None and into is not None:
        raise UserError("--out and --into are two outputs; give one of them at a time")
    if out is not None:
        _print_warnings(_write(folders, out, traces, keep is not None))
    elif into is not None:
        if traces:
            raise UserError("--traces is for a table; give --out, not --into")
        merged = merge(folders, into, keep is not None)
        collect_entrants(folders, into)
        _print_warnings(merged.warnings)
        say(f"{into}: {merged.added} records added, {merged.existing} were there")


def _write(folders: list[Path], out: Path, traces: bool, newest: bool) -> Iterable[str]:
    """Write the table, print a summary of it, and return its warnings."""
    from svgpbench.results import tidy
    from svgpbench.results.duplicates import deduplicate
    from svgpbench.results.store import records_below

    tidy.check_table_path(out)
    records = records_below(folders)
    stored = deduplicate(records.stored, newest)
    table = tidy.traces_table(stored) if traces else tidy.cells_table(stored)
    tidy.write_table(out, table)
    counts = Counter(cell.record.status for cell in stored)
    listed = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    rows = f", {len(table)} trace points" if traces else ""
    say(f"{out}: {len(stored)} cells ({listed}){rows}, {len(table.columns)} columns")
    left_out = [f"left out: {line}" for line in records.damaged]
    return [*left_out, *tidy.warnings(stored, table)]


def _print_warnings(lines: Iterable[str]) -> None:
    for line in lines:
        say(f"warning: {line}", err=True)
