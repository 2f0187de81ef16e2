"""`svgpbench data croissant`: write a data set as a folder that other programs can read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from svgpbench.experiments.data_errors import data_errors_are_the_users
from svgpbench.plugins import registry_of


def croissant_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a data set.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder to write; NAME by default.")
    ] = None,
) -> None:
    """Write a data set as Parquet with its description in Croissant."""
    from svgpbench_datasets.croissant import write_croissant

    with data_errors_are_the_users():
        registry = registry_of(name)
        entry, dataset = registry.describe(name), registry.load(name)
        folder = out or Path(entry.name.replace(":", "-").replace("@", "-"))
        typer.echo(str(write_croissant(entry, dataset, folder)))
