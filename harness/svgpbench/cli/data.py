"""`svgpbench data`: what is known of the data sets, and what their numbers give away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from svgpbench.cli.data_card import card, declared_card
from svgpbench.cli.making import make_command
from svgpbench.cli.options import AsJson
from svgpbench.cli.printing import printer
from svgpbench.cli.splitting import split_command
from svgpbench.errors import UserError
from svgpbench.plugins import registries, registry_of
from svgpbench_datasets import DataError, DatasetEntry, Registry
from svgpbench_datasets.audit import Audit, audit

data_app = typer.Typer(
    name="data",
    help="What is known of the data sets, and what their numbers give away.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
data_app.command("split")(split_command)
data_app.command("make")(make_command)

Names: TypeAlias = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help="Data sets; all by default.")
]


@data_app.command("show")
def show_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A data set or variant of one.")],
    declared: Annotated[
        bool, typer.Option("--declared", help="What the registry says alone; nothing is fetched.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what is declared of a data set and what is counted in it."""
    if declared:
        entry = next(_entries([name]))
        content, lines = entry.model_dump(mode="json", exclude_defaults=True), declared_card(entry)
    else:
        looked = _audited(name)
        content, lines = looked.to_json(), card(looked)
    if as_json:
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
        return
    table = Table(title=name, title_justify="left", title_style="bold", box=None)
    table.padding, table.show_header = (0, 2, 0, 0), False
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for key, value in lines:
        table.add_row(Text(key, style="dim"), Text(value))
    printer().print(table)


@data_app.command("audit")
def audit_command(names: Names = None, as_json: AsJson = False) -> None:
    """Look for leaks and oddities in the numbers of every data set that is at hand."""
    progress = Console(stderr=True)
    found = []
    for name in names or _at_hand():
        progress.print(f"auditing {name}", markup=False, highlight=False, style="dim")
        found.append(_audited(name))
    if as_json:
        typer.echo(json.dumps([one.to_json() for one in found], indent=2, ensure_ascii=False))
        return
    printer(140).print(_audit_table(found))


@data_app.command("table")
def table_command(names: Names = None) -> None:
    """Print name, rows, features, task and fingerprint of data sets as a Markdown table."""
    entries = list(_entries(names))
    typer.echo("| name | rows | features | task | fingerprint |")
    typer.echo("|---|---:|---:|---|---|")
    for entry in entries:
        typer.echo(
            f"| `{entry.name}` | {entry.rows} | {len(entry.features)} | {entry.task} | {_mark(entry)} |"
        )


@data_app.command("pin")
def pin_command(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Registry files, such as registry.toml.")
    ],
    write: Annotated[bool, typer.Option("--write", help="Write what was computed.")] = False,
) -> None:
    """Compute the fingerprints that registry files hold, of the data at hand."""
    from svgpbench_datasets.pinning import pins
    from svgpbench_datasets.pinning import write as write_pin

    seen = wrong = 0
    try:
        for pin in pins(registry_of, files):
            typer.echo(f"{'same   ' if pin.agrees else 'DIFFERS'} {pin.name} {pin.computed}")
            seen, wrong = seen + 1, wrong + (not pin.agrees)
            if write and not pin.agrees:
                write_pin(pin)
    except (DataError, OSError) as error:
        raise UserError(str(error)) from error
    if not seen:
        listed = ", ".join(str(file) for file in files)
        raise UserError(f"no fingerprint of a data set at hand in {listed}; name a registry file")
    if wrong and not write:
        raise typer.Exit(1)


def _audited(name: str) -> Audit:
    try:
        registry = registry_of(name)
        if not isinstance(registry, Registry):
            raise UserError(
                f"data set {name!r} is of a registry that is no svgpbench_datasets.Registry: "
                "its files are not known, so that it cannot be audited"
            )
        return audit(registry, name)
    except DataError as error:
        raise UserError(str(error)) from error


def _at_hand() -> list[str]:
    """Every data set that can be loaded without a network."""
    try:
        return [
            name for registry in registries() for name in registry.names() if registry.at_hand(name)
        ]
    except DataError as error:
        raise UserError(str(error)) from error


def _entries(names: list[str] | None) -> Iterator[DatasetEntry]:
    if names:
        for name in names:
            try:
                yield registry_of(name).describe(name)
            except DataError as error:
                raise UserError(str(error)) from error
        return
    for registry in registries():
        for name in registry.names():
            yield registry.describe(name)


def _mark(entry: DatasetEntry) -> str:
    if entry.fingerprint:
        return entry.fingerprint.removeprefix("sha256:")[:16]
    return "made on your machine" if entry.made else "no copy seen"


def _audit_table(found: list[Audit]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("name", no_wrap=True)
    for column in ("rows", "D", "distinct", "row~target", "seen"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("flags", overflow="fold")
    for one in found:
        facts = one.facts
        flags = Text()
        for flag in one.flags:
            style = "bold red" if flag.leak else ""
            flags.append(f"{'LEAK ' if flag.leak else ''}{flag.text}\n", style=style)
        flags.rstrip()
        table.add_row(
            one.entry.name,
            str(facts.rows),
            str(facts.features),
            str(facts.distinct_inputs),
            f"{facts.row_correlation:.2f}",
            f"{facts.test_seen / facts.test_rows:.1%}",
            flags,
        )
    return table
