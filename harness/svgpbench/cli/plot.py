"""`svgpbench plot`: figures of an experiment's records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from svgpbench.cli.options import (
    Backends,
    ExperimentName,
    PresetName,
    RecordsFolder,
    records_folder,
)
from svgpbench.cli.printing import say
from svgpbench.cli.table import KindName, check_one_name, collected_records
from svgpbench.errors import UserError
from svgpbench.experiments import FigureEntry, load_experiment
from svgpbench.plugins import FIGURES


def plot_command(
    experiment: ExperimentName,
    *,
    preset: PresetName = None,
    results: RecordsFolder = None,
    backend: Backends = None,
    figure: Annotated[
        str | None,
        typer.Option("--figure", metavar="NAME", help="Name of a declared figure; all by default."),
    ] = None,
    kind: KindName = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="File of the figure: .png, .pdf or .svg."),
    ] = None,
) -> None:
    """Draw the figures that an experiment declares; print their captions."""
    from svgpbench.output.figure import check_figure_path, draw_figure
    from svgpbench.output.figure_and_table_types import FigureKind, entries_of, kind_of
    from svgpbench.results.unsettled import unsettled_note

    declared = load_experiment(experiment)
    default = FigureEntry(name="convergence")
    check_one_name("figure", figure, kind)
    entries = entries_of(declared.figures, default, f"figure of {declared.name}", figure)
    if kind:
        entries = [FigureEntry(name=kind, kind=kind)]
    if out is not None and len(entries) > 1:
        names = ", ".join(entry.name for entry in entries)
        raise UserError(f"--out {out}: {declared.name} declares several figures; "
                        f"choose one with --figure: {names}")  # fmt: skip
    several = kind is not None or max(len(declared.figures), 1) > 1
    paths = [out or Path(f"{declared.name}{f'-{entry.name}' * several}.png") for entry in entries]
    for path in paths:
        check_figure_path(path)
    kinds: list[FigureKind] = [kind_of(FIGURES, entry, declared) for entry in entries]
    collected = collected_records(declared, preset, records_folder(results), backend)
    for path, figure_kind in zip(paths, kinds, strict=True):
        say(f"{path}\n{draw_figure(collected, path, figure_kind)}")
    if note := unsettled_note(collected.records):
        say(note)
