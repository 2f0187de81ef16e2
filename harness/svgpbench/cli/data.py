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

from svgpbench.cli.making import make_command
from svgpbench.cli.options import AsJson
from svgpbench.cli.printing import printer
from svgpbench.errors import UserError
from svgpbench.plugins import registries, registry_of
from svgpbench_datasets import DataError, DatasetEntry
from svgpbench_datasets.audit import Audit, audit

data_app = typer.Typer(
    name="data",
    help="What is known of the data sets, and what their numbers give away.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
data_app.command("make")(make_command)

Names: TypeAlias = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help="Data sets; all by default.")
]


@data_app.command("show")
def show_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A data set or variant of one.")],
    as_json: AsJson = False,
) -> None:
    """Show what is declared of a data set and what is counted in it."""
    looked = _audited(name)
    if as_json:
        typer.echo(json.dumps(looked.to_json(), indent=2, ensure_ascii=False))
        return
    table = Table(title=name, title_justify="left", title_style="bold", box=None)
    table.padding, table.show_header = (0, 2, 0, 0), False
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for key, value in _card(looked):
        table.add_row(Text(key, style="dim"), Text(value))
    Console().print(table)


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
    typer.echo("| name | rows | features | task | fingerprint |")
    typer.echo("|---|---:|---:|---|---|")
    for entry in _entries(names):
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
    """Compute the fingerprints that the package's registry files hold, of the data at hand."""
    from svgpbench_datasets import REGISTRY
    from svgpbench_datasets.pinning import pins
    from svgpbench_datasets.pinning import write as write_pin

    wrong = 0
    try:
        for pin in pins(REGISTRY, files):
            typer.echo(f"{'same   ' if pin.agrees else 'DIFFERS'} {pin.name} {pin.computed}")
            wrong += not pin.agrees
            if write and not pin.agrees:
                write_pin(pin)
    except (DataError, OSError) as error:
        raise UserError(str(error)) from error
    if wrong and not write:
        raise typer.Exit(1)


def _audited(name: str) -> Audit:
    try:
        return audit(registry_of(name), name)
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
            yield registry_of(name).describe(name)
        return
    for registry in registries():
        for name in registry.names():
            yield registry.describe(name)


def _mark(entry: DatasetEntry) -> str:
    if entry.fingerprint:
        return entry.fingerprint.removeprefix("sha256:")[:16]
    return "made on your machine" if entry.made else "no copy seen"


def _card(looked: Audit) -> Iterator[tuple[str, str]]:
    entry, facts = looked.entry, looked.facts
    yield "about", entry.title
    yield "task", f"{entry.task}, target {entry.target}"
    if others := tuple(output for output in entry.outputs if output != entry.target):
        yield "other targets", f"{_few(others)}: {entry.name.partition('@')[0]}@{others[0]}, ..."
    yield "rows", f"{facts.rows}, {facts.distinct_inputs} with distinct inputs"
    yield "repeated rows", f"{facts.repeated_rows} (inputs and target of an earlier row)"
    yield "features", str(facts.features)
    yield "constant columns", _few(facts.constant_columns) or "none"
    yield "missing values", _missing(looked)
    low, high = facts.target_range
    if facts.classes:
        yield "classes", ", ".join(f"{label}: {count}" for label, count in facts.classes.items())
    else:
        yield "target", f"{low:g} to {high:g}, {facts.target_values} different values"
    over_classes = f", over classes {facts.row_correlation_ratio:.2f}" if facts.classes else ""
    yield "row number and target", f"|correlation| {facts.row_correlation:.2f}{over_classes}"
    yield "row before", f"target {facts.previous_ratio:.2f} times as unlike as of any two rows"
    yield "nearest row", f"target {facts.nearest_ratio:.2f} times as unlike as of any two rows"
    yield "linear fit", f"R² {facts.linear_r2:.2g} over all rows"
    yield "test inputs in training", f"{_seen(looked)} ({facts.split})"
    yield "fixed splits", str(entry.splits.count) if entry.splits else "none"
    for flag in looked.flags:
        yield "LEAK" if flag.leak else "note", flag.text
    for defect in entry.defects:
        yield "known defect", defect
    yield "upstream", entry.upstream
    yield "licence", entry.licence
    yield "citation", entry.citation
    verified = "" if entry.fingerprint else " (unverified: nobody has declared what it should be)"
    yield "fingerprint", looked.fingerprint + verified


def _seen(looked: Audit) -> str:
    facts = looked.facts
    return f"{facts.test_seen} of {facts.test_rows}, {facts.test_told} with their target"


def _missing(looked: Audit) -> str:
    facts = looked.facts
    if facts.missing_rows == 0:
        return "none"
    columns = [f"{name}: {count}" for name, count in facts.missing_cells.items()]
    done = _MISSING[looked.entry.missing]
    return f"in {facts.missing_rows} rows of the files ({', '.join(columns)}); {done}"


_MISSING = {
    "refuse": "refused",
    "drop-row": "rows that have one are left out",
    "middle-code": "a missing category is the middle of the codes",
}


def _few(names: tuple[str, ...]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


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
