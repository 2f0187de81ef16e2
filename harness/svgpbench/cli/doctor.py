"""`svgpbench doctor`: state of this machine, its differences from a record's, a record's lock."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from svgpbench.cli.diagnosis import diagnose
from svgpbench.cli.options import RESULTS, AsJson, ResultsFolder
from svgpbench.cli.printing import FAILED, print_json, show
from svgpbench.environment import OURS
from svgpbench.errors import UserError
from svgpbench.output.table import Column, Styled, Table, columns

MARKS = {
    "ok": Styled("ok", "green"),
    "missing": Styled("--", "yellow"),
    "problem": Styled("no", "red"),
}


def doctor_command(
    deep: Annotated[
        bool, typer.Option("--deep", help="Import each framework in a separate process.")
    ] = False,
    compare: Annotated[
        str | None,
        typer.Option(
            "--compare",
            metavar="RECORD",
            help="Show how this machine differs from that of a record (.json or id).",
        ),
    ] = None,
    lock: Annotated[
        str | None,
        typer.Option(
            "--lock",
            metavar="RECORD",
            help="Print the packages that a record was made with, as a requirements file.",
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
    findings = list(diagnose(results, deep=deep))
    if as_json:
        print_json([finding.model_dump() for finding in findings])
    else:
        rows = [
            [
                MARKS[finding.state],
                finding.what,
                f"{finding.found}\n→ {finding.advice}" if finding.advice else finding.found,
            ]
            for finding in findings
        ]
        show(Table((Column("", wrap=False), Column("", wrap=False), Column("")), rows))
    if any(finding.state == "problem" for finding in findings):
        raise typer.Exit(FAILED)


def _lock(text: str, results: Path) -> None:
    """Print the packages of a record as a requirements file of pip.

    Raises `UserError` if the record has no lock.
    """
    from svgpbench.cli.environment_diff import commit_of, environment_of, record_named

    record = record_named(text, results)
    then = environment_of(record)
    if not then.lock:
        raise UserError(
            f"the record of {record.cell_id} was made before records had a lock; "
            f"--compare {text} says which versions it has"
        )
    package = f"{OURS} {then.versions.get(OURS, 'of no version')} ({commit_of(then)})"
    typer.echo(f"# record {record.cell_id}: Python {then.python}, {package}")
    typer.echo("\n".join(then.lock))


def _compare(text: str, results: Path, as_json: bool) -> None:
    """Print the differences between the environment of a record and this one, one per line."""
    from svgpbench.cli.environment_diff import (
        differences,
        environment_here,
        environment_of,
        record_named,
    )

    record = record_named(text, results)
    then, backend = environment_of(record), record.config.backend
    changes = list(differences(then, environment_here(backend, then.threads)))
    if as_json:
        print_json([change.model_dump() for change in changes])
        return
    title = f"{record.cell_id}, {backend.title}, {record.started:%Y-%m-%d}"
    if not changes:
        typer.echo(f"nothing differs from where {title} ran")
        return
    rows = [[change.what, change.then, change.now] for change in changes]
    show(Table(columns(("", f"then ({title})", "now")), rows))
