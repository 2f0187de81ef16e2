"""`svgpbench choose`: the methods that a preset should use for the rows of a printed table."""

from __future__ import annotations

import typer

from svgpbench.cli.options import RESULTS, ExperimentName, ResultsFolder
from svgpbench.cli.printing import show
from svgpbench.cli.run import FAILED
from svgpbench.experiments import load_experiment
from svgpbench.output.table import Column, Table, number


def choose_command(experiment: ExperimentName, *, results: ResultsFolder = RESULTS) -> None:
    """Show which rates the records choose, and whether the preset names them; 1 where it does not."""
    from svgpbench.results.tuned_methods import choices, choosing_preset

    declared = load_experiment(experiment)
    found = choices(results, declared)
    columns = (Column("row"), Column("method"), number("ELBO", ".1f"), Column(""))
    rows = [
        [choice.row, label, elbo, "chosen" if label == choice.chosen else ""]
        for choice in found
        for label, elbo in choice.elbo.items()
    ]
    show(Table(columns, rows))
    wrong = {choice.named: choice.chosen for choice in found if choice.named != choice.chosen}
    preset = choosing_preset(declared)
    if not wrong:
        typer.echo(f"preset {preset} names these")
        return
    for named, chosen in wrong.items():
        typer.echo(f"preset {preset} names {named!r} where the records choose {chosen!r}")
    raise typer.Exit(FAILED)
