"""`svgpbench compare`: paired differences of two methods, backends or folders of records."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from svgpbench.cli.options import (
    AsJson,
    Backends,
    PresetName,
    RecordsFolder,
    chosen_plan,
    records_folder,
)
from svgpbench.cli.printing import FAILED, print_json, say, show
from svgpbench.errors import UserError
from svgpbench.experiments import Experiment, load_experiment, shipped_experiments
from svgpbench.output.table import Column, Table, number
from svgpbench.output.table_formats import markdown

if TYPE_CHECKING:
    from svgpbench.comparison.comparison import ComparedMeasure, Comparison
    from svgpbench.comparison.inputs import Sides


def compare_command(
    first: Annotated[
        str, typer.Argument(metavar="A", help="Method, backend or folder of records.")
    ],
    second: Annotated[
        str,
        typer.Argument(metavar="B", help="Method, backend or folder that A is compared with."),
    ],
    *,
    experiment: Annotated[
        str | None,
        typer.Option(
            "--experiment", metavar="NAME", help="Shipped experiment, or a .toml file of your own."
        ),
    ] = None,
    preset: PresetName = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric", help="Metric to compare; repeat for several. The usual ones by default."
        ),
    ] = None,
    results: RecordsFolder = None,
    backend: Backends = None,
    fail_if_worse: Annotated[
        bool,
        typer.Option("--fail-if-worse", help="Exit with 1 if A is worse than B in any metric."),
    ] = False,
    over_training: Annotated[
        bool,
        typer.Option(
            "--over-training",
            help="Show iterations that A saves, and its gain by quarter of the budget.",
        ),
    ] = False,
    optima: Annotated[
        str | None,
        typer.Option(
            "--optima",
            metavar="NAME",
            help="Experiment whose runs end at the optimum of each family; shown beside A and B.",
        ),
    ] = None,
    optimum: Annotated[
        str | None,
        typer.Option(
            "--optimum", metavar="A/B", help="Methods of --optima that stand for A and for B."
        ),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            "--figure",
            metavar="FILE",
            help="File for a figure of the gain over training: .png, .pdf or .svg.",
        ),
    ] = None,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the tables over training as Markdown.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare two methods, backends or folders of records by paired differences."""
    from svgpbench.comparison.comparison import compared
    from svgpbench.stats.effects import Outcome
    from svgpbench.stats.measures import known_measure

    for name in metric or ():
        known_measure(name)
    beside_optima = optima is not None or optimum is not None
    of_ends = not over_training and not beside_optima
    for mistaken, line in (
        (fail_if_worse and not of_ends, "--fail-if-worse has no --over-training and no --optima"),
        (figure is not None and not over_training, "--figure is of --over-training: give it too"),
        (
            as_markdown and of_ends,
            "--markdown is of --over-training and --optima: give one of them",
        ),
        (
            over_training and beside_optima,
            "--over-training and --optima are tables of their own: give one of them",
        ),
        (as_json and beside_optima, "--optima has no --json: leave it out"),
    ):
        if mistaken:
            raise UserError(line)
    declared = None if experiment is None else load_experiment(experiment)
    if preset and declared is None:
        raise UserError(f"--preset {preset} is of an experiment: give --experiment too")
    # a path that is not there is told to be no folder, and not to be an unknown method
    if any(Path(name).is_dir() or os.sep in name for name in (first, second)):
        sides = _sides_of_folders(Path(first), Path(second), declared, preset, backend)
    else:
        results = records_folder(results)
        declared = declared or _only_experiment(results)
        sides = _sides_of_experiment(first, second, declared, preset, results, backend)
    if over_training:
        _show_over_training(sides, metric, figure, as_markdown, as_json)
        return
    if beside_optima:
        first, slash, second = (optimum or "").partition("/")
        if optima is None or not (first and slash and second):
            raise UserError("give --optima NAME and --optimum A/B, two of its methods")
        at_optima, folder = load_experiment(optima), records_folder(results)
        beside = _sides_of_experiment(first, second, at_optima, None, folder, backend)
        _show_beside_optima(sides, beside, metric, as_markdown)
        return
    comparison = compared(sides, metric or ())
    if as_json:
        print_json(comparison.to_json())
    else:
        _print(comparison)
    if fail_if_worse and any(row.effect.outcome is Outcome.worse for row in comparison.rows):
        raise typer.Exit(FAILED)


def _show_over_training(
    sides: Sides,
    metrics: list[str] | None,
    figure: Path | None,
    as_markdown: bool,
    as_json: bool,
) -> None:
    """Print iterations saved and gains by quarter of the budget, and draw the gains if asked."""
    from svgpbench.comparison import over_training as over
    from svgpbench.comparison.comparison import paired
    from svgpbench.metrics import USUAL
    from svgpbench.stats.measures import MEASURES

    first, second = sides.first.name, sides.second.name
    pairs, alone = paired(sides)
    chosen = metrics or list(dict.fromkeys(name for names in USUAL.values() for name in names))
    gains = list(over.gains_of(pairs, [name for name in chosen if name in MEASURES]))
    if metrics and {rows[0].metric for rows in gains} != set(metrics):
        raise UserError(f"no trace has one of {', '.join(metrics)}")
    of_the_bound = metrics is None or "elbo" in metrics
    saved = over.iterations_saved(pairs) if of_the_bound else []
    if as_json:
        print_json(over.to_json(saved, [row for rows in gains for row in rows]))
        return
    tables = [over.saved_table(saved, first, second)] * of_the_bound
    tables += [over.gain_table(rows, first, second) for rows in gains]
    if as_markdown:
        typer.echo("\n\n".join(f"{table.title}\n\n{markdown(table)}" for table in tables))
    else:
        show(sides.what, *tables, notes=[over.MEANING, *sides.notes, *alone])
    if figure is not None:
        caption = over.draw_gains(pairs, [rows[0].metric for rows in gains], first, second, figure)
        if not as_markdown:
            say(f"\n{figure}\n{caption}")


def _show_beside_optima(
    sides: Sides, optima: Sides, metrics: list[str] | None, as_markdown: bool
) -> None:
    """Print the differences where runs end beside those at the families' optima."""
    from svgpbench.comparison import path_and_optimum as beside
    from svgpbench.comparison.comparison import compared

    chosen = metrics or beside.METRICS
    ends, at_optima = compared(sides, chosen), compared(optima, chosen)
    rows = beside.side_by_side(ends, at_optima)
    table = beside.table(rows, ends, at_optima)
    if as_markdown:
        typer.echo(markdown(table))
    else:
        show(sides.what, table, notes=[beside.MEANING, *ends.notes])


def _sides_of_folders(
    first: Path,
    second: Path,
    declared: Experiment | None,
    preset: str | None,
    backends: list[str] | None,
) -> Sides:
    from svgpbench.comparison.inputs import folders

    for folder in (first, second):
        if not folder.is_dir():
            raise UserError(f"{folder}: there is no such folder; compare two folders of records, or "
                            "two methods or backends of --experiment")  # fmt: skip
    cells = chosen_plan(declared, preset, backends) if declared else None
    return folders(first, second, cells, backends)


def _sides_of_experiment(
    first: str,
    second: str,
    declared: Experiment,
    preset: str | None,
    results: Path,
    backends: list[str] | None,
) -> Sides:
    from svgpbench.comparison.inputs import methods_or_backends
    from svgpbench.results.collect import collect

    collected = collect(results, chosen_plan(declared, preset, backends), backends)
    return methods_or_backends(collected, first, second, each_backend=bool(backends))


def _only_experiment(results: Path) -> Experiment:
    """Return the experiment of the records. Raises `UserError` unless it is a single shipped one."""
    from svgpbench.results.store import experiments

    names = experiments(results)
    if len(names) == 1 and names[0] in shipped_experiments():
        return load_experiment(names[0])
    problem = f"no records in {results}"
    if names:
        problem = f"records in {results} are of {', '.join(names)}"
    raise UserError(
        f"{problem}; name one experiment with --experiment, or its folder with --results"
    )


def _print(comparison: Comparison) -> None:
    """Print one table per metric, with the number of rows per outcome below it, and the notes."""
    from svgpbench.comparison.comparison import title

    first = comparison.first
    tables = []
    for metric, group in groupby(comparison.rows, key=lambda row: row.metric):
        rows = list(group)
        counts = Counter(str(row.effect.outcome) for row in rows)
        listed = ", ".join(f"{outcome} in {count}" for outcome, count in counts.most_common())
        line = f"{first} is {listed} of {len(rows)}"
        tables.append(replace(_table(rows, comparison, title(metric)), notes=[line]))
    notes = [
        f"difference: paired by split and seed, positive in favour of {first}, with its 95 % interval",
        "±: what a difference must exceed to matter",
    ]
    show(comparison.what, *tables, notes=[*notes, *comparison.notes])


def _table(rows: list[ComparedMeasure], comparison: Comparison, title: str) -> Table:
    """Return one metric as a table; columns: data set, other settings in which rows differ, numbers."""
    from svgpbench.stats.effects import with_interval

    names = [
        name
        for name in rows[0].shared
        if name == "data" or len({row.shared[name] for row in rows}) > 1
    ]
    columns = (
        *(Column("data set" if name == "data" else name, wrap=False) for name in names),
        *(number("n"), number(comparison.first, ".4g"), number(comparison.second, ".4g")),
        *(number("difference", with_interval), number("±", ".2g")),
        *(Column(f"{comparison.first} is"), Column("", style="dim")),
    )
    values = [
        [
            *(row.shared[name] for name in names),
            *(row.pairs, *row.means, row.effect, row.region),
            *(str(row.effect.outcome), row.effect.note),
        ]
        for row in rows
    ]
    return Table(columns, values, title)
