"""`svgpbench doctor`: what this machine has, and what to do about what it lacks."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from svgpbench.cli.doctor import diagnose
from svgpbench.cli.options import RESULTS, AsJson, ResultsFolder
from svgpbench.cli.printing import printer

MARKS = {
    "ok": Text("ok", style="green"),
    "missing": Text("--", style="yellow"),
    "problem": Text("no", style="red"),
}


def doctor_command(
    deep: Annotated[
        bool, typer.Option("--deep", help="Import each framework in a process of its own.")
    ] = False,
    results: ResultsFolder = RESULTS,
    as_json: AsJson = False,
) -> None:
    """Say what is installed, and what to do about what is not."""
    findings = diagnose(results, deep=deep)
    if as_json:
        typer.echo(json.dumps([finding.model_dump() for finding in findings], indent=2))
    else:
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        for finding in findings:
            advice = f"\n→ {finding.advice}" if finding.advice else ""
            found = Text(f"{finding.found}{advice}")  # not markup: advice has [brackets] in it
            table.add_row(MARKS[finding.state], finding.what, found)
        printer().print(table)
    if any(finding.state == "problem" for finding in findings):
        raise typer.Exit(1)
