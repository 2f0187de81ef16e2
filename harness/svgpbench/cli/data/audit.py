"""`svgpbench data show` and `data audit`: facts and flags of a data set or of a user's table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

import typer

from svgpbench.cli.data.card import card, declared_card, layout_in_words
from svgpbench.cli.options import AsJson
from svgpbench.cli.printing import print_json, show, tell
from svgpbench.errors import UserError
from svgpbench.experiments.data_errors import data_errors_are_the_users
from svgpbench.output.table import Column, Styled, Table, number
from svgpbench.plugins import registries, registry_of
from svgpbench_datasets import Dataset, DatasetEntry, Registry, load_user_table
from svgpbench_datasets.audit.report import Audit, audit, audit_dataset
from svgpbench_datasets.user_table import is_table_file, layout_of


class Task(StrEnum):
    """Kinds of targets."""

    regression = "regression"
    classification = "classification"
    multiclass = "multiclass"


Targets: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        metavar="COLUMN",
        help="Column to predict, in a file of your own; repeat for several.",
    ),
]
Arrays: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--array", metavar="NAME", help="Array of a .mat or .npz file; repeat for several."
    ),
]
OwnTask: TypeAlias = Annotated[
    Task | None, typer.Option("--task", help="Task of a file of your own; regression by default.")
]


def show_command(
    name: Annotated[
        str, typer.Argument(metavar="NAME|FILE", help="A data set, or a table of your own.")
    ],
    *,
    declared: Annotated[
        bool,
        typer.Option(
            "--declared", help="Show only what the registry declares; nothing is fetched."
        ),
    ] = False,
    target: Targets = None,
    task: OwnTask = None,
    array: Arrays = None,
    as_json: AsJson = False,
) -> None:
    """Show what is declared of a data set and what is counted in it."""
    own = Own(target or (), task, array or ())
    content: list[dict[str, Any]]
    if declared:
        entry = _declared(name, own)
        content = [entry.model_dump(mode="json", exclude_defaults=True)]
        cards = [declared_card(entry)]
    else:
        audits = list(_audits(name, own))
        content, cards = [one.to_json() for one in audits], [card(one) for one in audits]
    if is_table_file(name):
        read_as = layout_in_words(layout_of(Path(name), own.arrays))
        content = [{**one, "read_as": read_as} for one in content]
        cards = [chain([("read as", read_as)], lines) for lines in cards]
    if as_json:
        print_json(content[0] if len(content) == 1 else content)
    else:
        columns = (Column("", wrap=False, style="dim"), Column(""))
        show(*(Table(columns, list(lines), name) for lines in cards))


def audit_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME|FILE]...", help="Data sets at hand, all by default; tables of your own."
        ),
    ] = None,
    *,
    target: Targets = None,
    task: OwnTask = None,
    array: Arrays = None,
    as_json: AsJson = False,
) -> None:
    """Look for leaks and oddities in the numbers of data sets."""
    found: list[Audit] = []
    for name in names or _at_hand():
        tell(f"auditing {name}")
        found += _audits(name, Own(target or (), task, array or ()))
    if as_json:
        print_json([one.to_json() for one in found])
    else:
        show(_audit_table(found))


class Own(NamedTuple):
    """Options of the command line for a table of the user's own."""

    targets: Sequence[str]
    task: Task | None
    arrays: Sequence[str]


def _declared(name: str, own: Own) -> DatasetEntry:
    _check_registered(name, own)
    with data_errors_are_the_users():
        entry = registry_of(name).describe(name)
    if not isinstance(entry, DatasetEntry):
        raise UserError(f"the registry of {name!r} declares no more of it than `svgpbench list`")
    return entry


def _check_registered(name: str, own: Own) -> None:
    """Raise `UserError` if an option of table files is given for a registered name or a folder."""
    for option, value in zip(("--target", "--task", "--array"), own, strict=True):
        if value and Path(name).is_dir():
            raise UserError(f"{name} is a folder; name a file in it, such as a .csv")
        if value:
            raise UserError(
                f"{option} goes with numbers of a file (.csv, .parquet, ...), not with {name!r}; "
                "another output of a registered table is named NAME@OUTPUT"
            )


def _audits(name: str, own: Own) -> Iterator[Audit]:
    """Yield the audit of a registered data set, or one audit per target of a user's table."""
    with data_errors_are_the_users():
        if is_table_file(name):
            yield from (audit_dataset(dataset) for dataset in _own_tables(name, own))
            return
        _check_registered(name, own)
        registry = registry_of(name)
        if isinstance(registry, Registry):
            yield audit(registry, name)
        else:
            yield audit_dataset(registry.load(name))


def _own_tables(file: str, own: Own) -> Iterator[Dataset]:
    if twice := next((x for x, times in Counter(own.targets).items() if times > 1), ""):
        raise UserError(f"--target {twice} is given twice")
    if not own.targets:
        raise UserError(f"which column of {file} is to be predicted? name it with --target")
    for target in own.targets:
        yield load_user_table(
            file,
            target=target,
            task=(own.task or Task.regression).value,
            name=Path(file).name + f"@{target}" * (len(own.targets) > 1),
            outputs=own.targets,
            arrays=own.arrays,
        )


def _at_hand() -> list[str]:
    """Return the names of the data sets that can be loaded without a network."""
    with data_errors_are_the_users():
        return [
            name
            for registry in registries()
            for name in registry.names()
            if not isinstance(registry, Registry) or registry.at_hand(name)
        ]


def _audit_table(found: Sequence[Audit]) -> Table:
    columns = (
        Column("name", wrap=False),
        *(number(name) for name in ("rows", "D", "distinct")),
        *(number("row~target", ".2f"), number("seen", ".1%")),
        Column("flags"),
    )
    rows = []
    for one in found:
        facts = one.facts
        flags = "\n".join(f"{'LEAK ' * flag.leak}{flag.text}" for flag in one.flags)
        rows.append(
            [
                *(one.name, facts.rows, facts.features, facts.distinct_inputs),
                *(facts.row_correlation, facts.test_seen / facts.test_rows),
                Styled(flags, "bold red" if one.leaks else ""),
            ]
        )
    return Table(columns, rows)
