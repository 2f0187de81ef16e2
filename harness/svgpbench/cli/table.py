"""`svgpbench table`: tables of an experiment's records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from svgpbench.cli.options import (
    AsJson,
    Backends,
    ExperimentName,
    PresetName,
    RecordsFolder,
    chosen_plan,
    records_folder,
)
from svgpbench.cli.printing import print_json, say, show
from svgpbench.errors import UserError
from svgpbench.experiments import Experiment, TableEntry, load_experiment
from svgpbench.metrics import metric as find_metric
from svgpbench.plugins import TABLES

if TYPE_CHECKING:
    from svgpbench.output.built_table import BuiltTable
    from svgpbench.results.collect import Collected


KindName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--kind", metavar="KIND", help="Kind of table or figure that the file does not declare."
    ),
]


def table_command(
    experiment: ExperimentName,
    *,
    preset: PresetName = None,
    results: RecordsFolder = None,
    backend: Backends = None,
    table: Annotated[
        str | None,
        typer.Option("--table", metavar="NAME", help="Name of a declared table; all by default."),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric", help="Metric to show instead of the declared ones; repeat for several."
        ),
    ] = None,
    kind: KindName = None,
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Print the final numbers of an experiment, in the tables that it declares."""
    if as_json + as_csv + as_markdown > 1:
        raise UserError("--json, --csv and --markdown exclude each other; give one")
    from svgpbench.experiments.leaks import audits_of, leak_notes, target_notes
    from svgpbench.output.figure_and_table_types import TableKind, entries_of, kind_of
    from svgpbench.results.tuned_methods import why_not_chosen

    declared = load_experiment(experiment)
    default = TableEntry(name="finals")
    check_one_name("table", table, kind)
    entries = entries_of(declared.tables, default, f"table of {declared.name}", table)
    if kind:
        entries = [TableEntry(name=kind, kind=kind)]
    if len(entries) > 1 and (as_json or as_csv):
        names = ", ".join(entry.name for entry in entries)
        raise UserError(
            f"{declared.name} declares several tables; choose one with --table: {names}"
        )
    if metric:
        for name in metric:
            find_metric(name)
        entries = [entry.model_copy(update={"metrics": metric}) for entry in entries]
    kinds: list[TableKind] = [kind_of(TABLES, entry, declared) for entry in entries]
    folder = records_folder(results)
    collected = collected_records(declared, preset, folder, backend)
    titles = tuple(dict.fromkeys(record.config.backend.title for record in collected.records))
    form = "json" if as_json else "csv" if as_csv else "markdown" * as_markdown
    for index, table_kind in enumerate(kinds):
        if index:
            typer.echo()
        built = table_kind.build(collected, backends=titles if backend else ())
        _print_table(built, form)
    if not form:
        audits = list(audits_of(record.config for record in collected.records))
        chosen = why_not_chosen(folder, declared, preset)
        say(*leak_notes(audits), *target_notes(audits), *filter(None, [chosen]))


def _print_table(table: BuiltTable, form: str) -> None:
    if form == "json":
        print_json(table.to_json())
    elif form == "csv":
        typer.echo(table.to_csv(), nl=False)
    elif form == "markdown":
        typer.echo(table.to_markdown())
    else:
        show(table)


def check_one_name(what: str, name: str | None, kind: str | None) -> None:
    """Raise `UserError` if both a declared name and a kind are given."""
    if name and kind:
        raise UserError(f"--{what} names one that is declared, --kind one that is not: give one")


def collected_records(
    declared: Experiment, preset: str | None, results: Path, backends: list[str] | None
) -> Collected:
    """Return the records of an experiment, of a preset or all."""
    from svgpbench.results.collect import collect

    return collect(results, chosen_plan(declared, preset, backends), backends)
