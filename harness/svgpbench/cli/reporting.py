"""`svgpbench table` and `svgpbench plot`: records to numbers and a figure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from svgpbench.cli.options import (
    RESULTS,
    AsJson,
    Backends,
    ExperimentName,
    PresetName,
    ResultsFolder,
)
from svgpbench.cli.printing import printer
from svgpbench.errors import UserError
from svgpbench.experiments import load_experiment, resolve

if TYPE_CHECKING:
    from svgpbench.report import Collected


def table_command(
    experiment: ExperimentName,
    *,
    preset: PresetName = None,
    results: ResultsFolder = RESULTS,
    backend: Backends = None,
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Print the final numbers of an experiment."""
    if as_json + as_csv + as_markdown > 1:
        raise UserError("--json, --csv and --markdown exclude each other; give one")
    collected = _collected(experiment, preset, results, backend)
    from svgpbench.report import build_table
    from svgpbench.report.layout import TerminalTable, to_markdown

    titles = tuple(dict.fromkeys(record.config.backend.title for record in collected.records))
    table = build_table(collected, backends=titles if backend else ())
    if as_json:
        typer.echo(json.dumps(table.to_json(), indent=2, ensure_ascii=False, allow_nan=False))
    elif as_csv:
        typer.echo(table.to_csv(), nl=False)
    elif as_markdown:
        typer.echo(to_markdown(table))
    else:
        printer().print(TerminalTable(table))


def plot_command(
    experiment: ExperimentName,
    *,
    preset: PresetName = None,
    results: ResultsFolder = RESULTS,
    backend: Backends = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="A .png, .pdf or .svg file.")
    ] = None,
) -> None:
    """Draw an experiment's traces; print the caption."""
    from svgpbench.report.figure import check_figure_path, draw_figure

    collected_name = load_experiment(experiment).name
    path = out or Path(f"{collected_name}.png")
    check_figure_path(path)
    caption = draw_figure(_collected(experiment, preset, results, backend), path)
    typer.echo(f"{path}\n{caption}")


def _collected(
    experiment: str, preset: str | None, results: Path, backends: list[str] | None
) -> Collected:
    from svgpbench.report import collect

    declared = load_experiment(experiment)
    cells = resolve(declared, preset) if preset else None
    return collect(results, declared, cells, backends)
