"""`svgpbench data`: the commands that show, audit, split and pin data sets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from svgpbench.cli.data.audit import audit_command, show_command
from svgpbench.cli.data.split import split_command
from svgpbench.cli.exit_codes import FAILED
from svgpbench.errors import UserError
from svgpbench.experiments.data_errors import data_errors_are_the_users
from svgpbench.plugins import registries, registry_of
from svgpbench_datasets import DataError, DatasetEntry

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


@app.command("pin")
def pin_command(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Registry files, such as registry.toml.")
    ],
    write: Annotated[
        bool, typer.Option("--write", help="Write the computed fingerprints into the files.")
    ] = False,
) -> None:
    """Compare fingerprints in registry files with the data at hand."""
    from svgpbench_datasets.pinning import pins
    from svgpbench_datasets.pinning import write as write_pin

    pinned = wrong = 0
    try:
        for pin in pins(registry_of, files):
            typer.echo(f"{'same   ' if pin.agrees else 'DIFFERS'} {pin.name} {pin.computed}")
            pinned, wrong = pinned + 1, wrong + (not pin.agrees)
            if write and not pin.agrees:
                write_pin(pin)
    except (DataError, OSError) as error:
        raise UserError(str(error)) from error
    if not pinned:
        listed = ", ".join(str(file) for file in files)
        raise UserError(f"no fingerprint of a data set at hand in {listed}; name a registry file")
    if wrong and not write:
        raise typer.Exit(FAILED)


def _entries(names: list[str] | None) -> Iterator[DatasetEntry]:
    """Yield the declared entries of the named data sets, or of all."""
    if names:
        for name in names:
            with data_errors_are_the_users():
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
