"""`svgpbench doctor`: state of this machine, its differences from a record's, a record's lock."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from svgpbench.cli.doctor import diagnose
from svgpbench.cli.options import RESULTS, AsJson, ResultsFolder
from svgpbench.cli.printing import printer
from svgpbench.environment import OURS
from svgpbench.errors import UserError

MARKS = {
    "ok": Text("ok", style="green"),
    "missing": Text("--", style="yellow"),
    "problem": Text("no", style="red"),
}


def doctor_command(
    deep: Annotated[
        bool, typer.Option("--deep", help="Import each framework in a process of its own.")
    ] = False,
    compare: Annotated[
        str | None,
        typer.Option(
            "--compare",
            metavar="RECORD",
            help="How this differs from where a record (.json, id) was made.",
        ),
    ] = None,
    lock: Annotated[
        str | None,
        typer.Option(
            "--lock",
            metavar="RECORD",
            help="What was installed where a record was made, as pip's requirements.",
        ),
    ] = None,
    results: ResultsFolder = RESULTS,
    as_json: AsJson = False,
) -> None:
    """Say what is installed, and what to do about what is not."""
    if lock is not None:
        _lock(lock, results)
        return
    if compare is not None:
        _compare(compare, results, as_json)
        return
    findings = diagnose(results, deep=deep)
    if as_json:
        typer.echo(json.dumps([finding.model_dump() for finding in findings], indent=2))
    else:
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        for finding in findings:
            advice = f"\n→ {finding.advice}" if finding.advice else ""
            found = Text(f"{finding.found}{advice}")  # `Text`, because advice contains [brackets]
            table.add_row(MARKS[finding.state], finding.what, found)
        printer().print(table)
    if any(finding.state == "problem" for finding in findings):
        raise typer.Exit(1)


def _lock(text: str, results: Path) -> None:
    """Print the packages of a record as a requirements file of pip.

    Raises `UserError` if the record has no lock.
    """
    from svgpbench.cli.then_and_now import commit_of, environment_of, record_named

    record = record_named(text, results)
    then = environment_of(record)
    if not then.lock:
        raise UserError(
            f"the record of {record.cell_id} was made before records had a lock; "
            f"--compare {text} says which versions it has"
        )
    ours = f"{OURS} {then.versions.get(OURS, 'of no version')} ({commit_of(then)})"
    typer.echo(f"# record {record.cell_id}: Python {then.python}, {ours}")
    typer.echo("\n".join(then.lock))


def _compare(text: str, results: Path, as_json: bool) -> None:
    """Print the differences between the environment of a record and this one, one per line."""
    from svgpbench.cli.then_and_now import (
        differences,
        environment_here,
        environment_of,
        record_named,
    )

    record = record_named(text, results)
    then, backend = environment_of(record), record.config.backend
    found = list(differences(then, environment_here(backend, then.threads)))
    if as_json:
        typer.echo(json.dumps([one.model_dump() for one in found], indent=2))
        return
    of = f"{record.cell_id}, {backend.title}, {record.started:%Y-%m-%d}"
    if not found:
        typer.echo(f"nothing differs from where {of} ran")
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for head in ("", f"then ({of})", "now"):
        table.add_column(head)
    for one in found:
        table.add_row(one.what, one.then, one.now)
    printer().print(table)
