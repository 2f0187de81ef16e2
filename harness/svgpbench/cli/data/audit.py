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
from svgpbench.experiments.error_messages import as_user_errors
from svgpbench.output.table import Column, Styled, Table, number
from svgpbench.plugins import registries, registry_of
from svgpbench_datasets import Dataset, DatasetEntry, Registry, load_user_table
from svgpbench_datasets.audit.report import Audit, audit, audit_dataset
from svgpbench_datasets.user_table import is_table_file, layout_of


class TargetKind(StrEnum):
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
TableTask: TypeAlias = Annotated[
    TargetKind | None,
    typer.Option("--task", help="Task of a file of your own; regression by default."),
]
Features: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--features",
        metavar="COLUMN",
        help="Inputs, in a file of your own, separated by commas or repeated; all others by default.",
    ),
]
Groups: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--groups",
        metavar="COLUMN",
        help="Column of a file of your own by which rows belong together; it is no input.",
    ),
]
NoHeader: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--no-header",
        help="The first line of a file of your own is data: columns are x1, x2, …; detected by default.",
    ),
]


def show_command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE", help="Name of a data set, or a table file of your own."
        ),
    ],
    *,
    declared: Annotated[
        bool,
        typer.Option(
            "--declared", help="Show only what the registry declares; nothing is fetched."
        ),
    ] = False,
    target: Targets = None,
    task: TableTask = None,
    array: Arrays = None,
    no_header: NoHeader = False,
    features: Features = None,
    groups: Groups = None,
    as_json: AsJson = False,
) -> None:
    """Show what is declared of a data set and what is counted in it."""
    inputs = split_names(features)
    options = TableOptions(target or (), task, array or (), no_header, inputs, groups)
    content: list[dict[str, Any]]
    if declared:
        entry = _declared_entry(name, options)
        content = [entry.model_dump(mode="json", exclude_defaults=True)]
        cards = [declared_card(entry)]
    else:
        audits = list(_audits(name, options))
        content, cards = [x.to_json() for x in audits], [card(x) for x in audits]
    if is_table_file(name):
        read_as = layout_in_words(layout_of(Path(name), options.arrays, options.header))
        content = [{**facts, "read_as": read_as} for facts in content]
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
            metavar="[NAME|FILE]...",
            help="Data sets, or table files of your own; all data sets at hand by default.",
        ),
    ] = None,
    *,
    target: Targets = None,
    task: TableTask = None,
    array: Arrays = None,
    no_header: NoHeader = False,
    features: Features = None,
    groups: Groups = None,
    as_json: AsJson = False,
) -> None:
    """Look for leaks and oddities in the numbers of data sets."""
    inputs = split_names(features)
    options = TableOptions(target or (), task, array or (), no_header, inputs, groups)
    audits: list[Audit] = []
    for name in names or _names_at_hand():
        if len(names or ()) != 1:
            tell(f"auditing {name}")
        audits += _audits(name, options)
    if as_json:
        print_json([x.to_json() for x in audits])
    else:
        show(_audit_table(audits))


def split_names(features: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return the names of --features, which may be separated by commas; None without any."""
    names = (name.strip() for text in features or () for name in text.split(","))
    return tuple(name for name in names if name) or None


class TableOptions(NamedTuple):
    """Command-line options for a user's table."""

    targets: Sequence[str]
    task: TargetKind | None
    arrays: Sequence[str]
    no_header: bool
    features: tuple[str, ...] | None = None
    groups: str | None = None

    @property
    def header(self) -> bool | None:
        """False if no line names the columns; None to detect it."""
        return False if self.no_header else None


def _declared_entry(name: str, options: TableOptions) -> DatasetEntry:
    """Return the entry of a registered data set. Raises `UserError` for a third-party registry."""
    _check_registered(name, options)
    with as_user_errors():
        entry = registry_of(name).describe(name)
    if not isinstance(entry, DatasetEntry):
        raise UserError(f"the registry of {name!r} declares no more of it than `svgpbench list`")
    return entry


def _check_registered(name: str, options: TableOptions) -> None:
    """Raise `UserError` if an option of table files is given for a registered name or a folder."""
    names = ("--target", "--task", "--array", "--no-header", "--features", "--groups")
    # in the order of the fields of `TableOptions`
    for option, value in zip(names, options, strict=True):
        if value and Path(name).is_dir():
            raise UserError(f"{name} is a folder; name a file in it, such as a .csv")
        if value:
            raise UserError(
                f"{option} goes with numbers of a file (.csv, .parquet, ...), not with {name!r}; "
                "another output of a registered table is named NAME@OUTPUT"
            )


def _audits(name: str, options: TableOptions) -> Iterator[Audit]:
    """Yield the audit of a registered data set, or one audit per target of a user's table."""
    with as_user_errors():
        if is_table_file(name):
            yield from (audit_dataset(dataset) for dataset in _user_tables(name, options))
            return
        _check_registered(name, options)
        registry = registry_of(name)
        if isinstance(registry, Registry):
            yield audit(registry, name)
        else:
            yield audit_dataset(registry.load(name))


def _user_tables(file: str, options: TableOptions) -> Iterator[Dataset]:
    """Yield the data set of each target. Raises `UserError` if a target is missing or repeated."""
    targets = options.targets
    if repeated := next((x for x, times in Counter(targets).items() if times > 1), ""):
        raise UserError(f"--target {repeated} is given twice")
    layout_of(Path(file), options.arrays)  # a file that is not there has no columns
    if not targets:
        raise UserError(f"which column of {file} is to be predicted? name it with --target")
    for target in targets:
        yield load_user_table(
            file,
            target=target,
            task=(options.task or TargetKind.regression).value,
            name=Path(file).name + f"@{target}" * (len(targets) > 1),
            outputs=targets,
            arrays=options.arrays,
            header=options.header,
            features=options.features,
            groups=options.groups,
        )


def _names_at_hand() -> list[str]:
    """Return the names of the data sets that can be loaded without a network."""
    with as_user_errors():
        return [
            name
            for registry in registries()
            for name in registry.names()
            if not isinstance(registry, Registry) or registry.at_hand(name)
        ]


def _audit_table(audits: Sequence[Audit]) -> Table:
    columns = (
        Column("name", wrap=False),
        *(number(name) for name in ("rows", "D", "distinct")),
        *(number("row~target", ".2f"), number("seen", ".1%")),
        Column("flags"),
    )
    rows = []
    for result in audits:
        facts = result.facts
        flags = "\n".join(f"{'LEAK ' * flag.leak}{flag.text}" for flag in result.flags)
        rows.append(
            [
                *(result.name, facts.rows, facts.features, facts.distinct_inputs),
                *(facts.row_correlation, facts.test_seen / facts.test_rows),
                Styled(flags, "bold red" if result.leaks else ""),
            ]
        )
    return Table(columns, rows)
