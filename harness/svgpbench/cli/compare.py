"""`svgpbench compare`: paired differences of two methods, backends or folders of records."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from svgpbench.cli.options import RESULTS, AsJson, Backends, PresetName, ResultsFolder
from svgpbench.cli.printing import print_json, show
from svgpbench.errors import UserError
from svgpbench.experiments import Experiment, load_experiment, resolve, shipped_experiments
from svgpbench.output.table import Column, Table, number

if TYPE_CHECKING:
    from svgpbench.comparison.comparison import Comparison, Row
    from svgpbench.comparison.inputs import Sides


def compare_command(
    first: Annotated[str, typer.Argument(metavar="A", help="A method, a backend or a folder.")],
    second: Annotated[
        str,
        typer.Argument(metavar="B", help="The method, backend or folder that A is compared with."),
    ],
    *,
    experiment: Annotated[
        str | None,
        typer.Option("--experiment", metavar="NAME", help="A shipped one, or a .toml file."),
    ] = None,
    preset: PresetName = None,
    metric: Annotated[
        list[str] | None, typer.Option("--metric", help="Repeat for several; the usual by default.")
    ] = None,
    results: ResultsFolder = RESULTS,
    backend: Backends = None,
    as_json: AsJson = False,
) -> None:
    """Compare two methods, backends or folders of records by paired differences."""
    from svgpbench.comparison.comparison import compared
    from svgpbench.stats.measures import known_measure

    for name in metric or ():
        known_measure(name)
    declared = None if experiment is None else load_experiment(experiment)
    if preset and declared is None:
        raise UserError(f"--preset {preset} is of an experiment: give --experiment too")
    if any(Path(name).is_dir() or os.sep in name for name in (first, second)):
        sides = _folders(Path(first), Path(second), declared, preset, backend)
    else:
        sides = _within(first, second, declared or _only(results), preset, results, backend)
    found = compared(sides, metric or ())
    if as_json:
        print_json(found.to_json())
    else:
        _print(found)


def _folders(
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
    cells = resolve(declared, preset) if declared and preset else None
    name = None if declared is None else declared.name
    return folders(first, second, name, cells, backends)


def _within(
    first: str,
    second: str,
    declared: Experiment,
    preset: str | None,
    results: Path,
    backends: list[str] | None,
) -> Sides:
    from svgpbench.comparison.inputs import within
    from svgpbench.results.collect import collect

    cells = resolve(declared, preset) if preset else None
    found = collect(results, declared, cells, backends)
    return within(found, first, second, each_backend=bool(backends))


def _only(results: Path) -> Experiment:
    """Return the experiment of the records. Raises `UserError` unless it is a single shipped one."""
    from svgpbench.results.store import experiments

    names = experiments(results)
    if len(names) == 1 and names[0] in shipped_experiments():
        return load_experiment(names[0])
    here = (
        f"records in {results} are of {', '.join(names)}" if names else f"no records in {results}"
    )
    raise UserError(f"{here}; name one experiment with --experiment, or its folder with --results")


def _print(found: Comparison) -> None:
    from svgpbench.comparison.comparison import title

    parts = []
    for metric, rows in groupby(found.rows, key=lambda row: row.metric):
        several = list(rows)
        counts = Counter(str(row.effect.outcome) for row in several)
        listed = ", ".join(f"{outcome} in {count}" for outcome, count in counts.most_common())
        line = f"{found.first} is {listed} of {len(several)}"
        parts.append(replace(_table(several, found, title(metric)), notes=[line]))
    show(found.what, *parts, notes=_notes(found))


def _notes(found: Comparison) -> Iterator[str]:
    yield (
        f"difference: paired by split and seed, positive in favour of {found.first}, with its 95 % "
        "interval"
    )
    yield "±: what a difference must exceed to matter"
    yield from found.notes


def _table(rows: list[Row], found: Comparison, title: str) -> Table:
    """Return the comparison as a table: one row per `Row`, with the columns in which rows differ."""
    from svgpbench.stats.effects import with_interval

    telling = list(_telling(rows))
    columns = (
        *(Column("data set" if name == "data" else name, wrap=False) for name in telling),
        *(number("n"), number(found.first, ".4g"), number(found.second, ".4g")),
        *(number("difference", with_interval), number("±", ".2g")),
        *(Column(f"{found.first} is"), Column("", style="dim")),
    )
    values = [
        [
            *(row.shared[name] for name in telling),
            *(row.pairs, *row.means, row.effect, row.region),
            *(str(row.effect.outcome), row.effect.note),
        ]
        for row in rows
    ]
    return Table(columns, values, title)


def _telling(rows: list[Row]) -> Iterator[str]:
    """Yield `data` and the names of the other settings that differ between the rows."""
    for name in rows[0].shared:
        if name == "data" or len({row.shared[name] for row in rows}) > 1:
            yield name
