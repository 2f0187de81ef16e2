"""`svgpbench data show` and `data audit`: what is counted and flagged, also in a user's table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from svgpbench.cells.data_errors import data_errors_are_the_users
from svgpbench.cli.data_card import Lines, card, declared_card
from svgpbench.cli.options import AsJson
from svgpbench.cli.printing import printer
from svgpbench.errors import UserError
from svgpbench.plugins import registries, registry_of
from svgpbench_datasets import Dataset, DatasetEntry, Registry, load_user_table
from svgpbench_datasets.audit import Audit, audit, audit_dataset

FILES = (".csv", ".parquet", ".pq")


class Task(StrEnum):
    """What may be predicted."""

    regression = "regression"
    classification = "classification"
    multiclass = "multiclass"


Target: TypeAlias = Annotated[
    str | None, typer.Option("--target", metavar="COLUMN", help="Of a file of your own.")
]
OwnTask: TypeAlias = Annotated[
    Task | None, typer.Option("--task", help="Of a file of your own; regression by default.")
]


def show_command(
    name: Annotated[
        str, typer.Argument(metavar="NAME|FILE", help="A data set, or a table of your own.")
    ],
    *,
    declared: Annotated[
        bool, typer.Option("--declared", help="What the registry says alone; nothing is fetched.")
    ] = False,
    target: Target = None,
    task: OwnTask = None,
    as_json: AsJson = False,
) -> None:
    """Show what is declared of a data set and what is counted in it."""
    content: dict[str, Any]
    if declared:
        entry = _declared(name, target, task)
        content, lines = entry.model_dump(mode="json", exclude_defaults=True), declared_card(entry)
    else:
        looked = _audited(name, target, task)
        content, lines = looked.to_json(), card(looked)
    if as_json:
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
    else:
        printer().print(_card_table(name, lines))


def audit_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME|FILE]...", help="Data sets at hand, all by default; tables of your own."
        ),
    ] = None,
    *,
    target: Target = None,
    task: OwnTask = None,
    as_json: AsJson = False,
) -> None:
    """Look for leaks and oddities in the numbers of data sets."""
    progress = Console(stderr=True)
    found = []
    for name in names or _at_hand():
        progress.print(f"auditing {name}", markup=False, highlight=False, style="dim")
        found.append(_audited(name, target, task))
    if as_json:
        typer.echo(json.dumps([one.to_json() for one in found], indent=2, ensure_ascii=False))
    else:
        printer(140).print(_audit_table(found))


def _declared(name: str, target: str | None, task: Task | None) -> DatasetEntry:
    _check_registered(name, target, task)
    with data_errors_are_the_users():
        entry = registry_of(name).describe(name)
    if not isinstance(entry, DatasetEntry):
        raise UserError(f"the registry of {name!r} declares no more of it than `svgpbench list`")
    return entry


def _check_registered(name: str, target: str | None, task: Task | None) -> None:
    """Refuse what a registry says itself."""
    for option, value in (("--target", target), ("--task", task)):
        if value is not None:
            raise UserError(
                f"{option} goes with numbers of a file ({', '.join(FILES)}), not with {name!r}; "
                "another output of a registered table is named NAME@OUTPUT"
            )


def _audited(name: str, target: str | None, task: Task | None) -> Audit:
    with data_errors_are_the_users():
        if name.lower().endswith(FILES):
            return audit_dataset(_own_table(name, target, task or Task.regression))
        _check_registered(name, target, task)
        registry = registry_of(name)
        if isinstance(registry, Registry):
            return audit(registry, name)
        return audit_dataset(registry.load(name))


def _own_table(file: str, target: str | None, task: Task) -> Dataset:
    if target is None:
        raise UserError(f"which column of {file} is to be predicted? name it with --target")
    return load_user_table(file, target=target, task=task.value, name=Path(file).name)


def _at_hand() -> list[str]:
    """Every data set that can be loaded without a network."""
    with data_errors_are_the_users():
        return [
            name
            for registry in registries()
            for name in registry.names()
            if not isinstance(registry, Registry) or registry.at_hand(name)
        ]


def _card_table(title: str, lines: Lines) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None)
    table.padding, table.show_header = (0, 2, 0, 0), False
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for key, value in lines:
        table.add_row(Text(key, style="dim"), Text(value))
    return table


def _audit_table(found: Sequence[Audit]) -> Table:
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
            one.name,
            str(facts.rows),
            str(facts.features),
            str(facts.distinct_inputs),
            f"{facts.row_correlation:.2f}",
            f"{facts.test_seen / facts.test_rows:.1%}",
            flags,
        )
    return table
