"""`svgpbench data`: the commands that show, audit, split and list data sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, TypeAlias

import typer

from svgpbench.cli.data.audit import audit_command, show_command
from svgpbench.cli.data.split import split_command
from svgpbench.experiments.error_messages import as_user_errors
from svgpbench.plugins import registries, registry_of
from svgpbench_datasets import DatasetEntry

app = typer.Typer(
    name="data",
    help="Show, audit and split data sets.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("show")(show_command)
app.command("audit")(audit_command)
app.command("split")(split_command)

Names: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME]...", help="Names of data sets; all by default."),
]


@app.command("table")
def table_command(names: Names = None) -> None:
    """Print sizes, task and fingerprint of data sets as Markdown."""
    entries = list(_entries(names))
    typer.echo("| name | rows | features | task | fingerprint |")
    typer.echo("|---|---:|---:|---|---|")
    for entry in entries:
        typer.echo(
            f"| `{entry.name}` | {entry.rows} | {len(entry.features)} | {entry.task} "
            f"| {_fingerprint(entry)} |"
        )


def _entries(names: list[str] | None) -> Iterator[DatasetEntry]:
    """Yield the declared entries of the named data sets, or of all."""
    if names:
        for name in names:
            with as_user_errors():
                yield registry_of(name).describe(name)
        return
    for registry in registries():
        for name in registry.names():
            yield registry.describe(name)


def _fingerprint(entry: DatasetEntry) -> str:
    """Return the first 16 digits of the fingerprint, or why there is none."""
    if entry.fingerprint:
        return entry.fingerprint.removeprefix("sha256:")[:16]
    if entry.made:
        return "made on your machine"
    return "no copy seen" if getattr(entry, "unseen", False) else "none declared"
