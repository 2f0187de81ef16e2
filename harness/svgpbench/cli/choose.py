"""`svgpbench choose`: check that a preset names the methods that the records choose."""

from __future__ import annotations

import typer

from svgpbench.cli.exit_codes import FAILED
from svgpbench.cli.options import ExperimentName, RecordsFolder, records_folder
from svgpbench.cli.printing import say, show
from svgpbench.experiments import load_experiment
from svgpbench.output.table import Column, Table, number


def choose_command(experiment: ExperimentName, *, results: RecordsFolder = None) -> None:
    """Show which rates the records choose, and whether the preset names them; 1 where it does not."""
    from svgpbench.results.tuned_methods import choices, choosing_preset

    declared = load_experiment(experiment)
    row_choices = choices(records_folder(results), declared)
    columns = (Column("row"), Column("method"), number("ELBO", ".1f"), Column(""))
    rows = [
        [choice.row, label, elbo, "chosen" if label == choice.best else ""]
        for choice in row_choices
        for label, elbo in choice.elbo.items()
    ]
    show(Table(columns, rows))
    wrong = {choice.named: choice.best for choice in row_choices if choice.named != choice.best}
    preset = choosing_preset(declared)
    if not wrong:
        say(f"preset {preset} names these")
        return
    for named, best in wrong.items():
        say(f"preset {preset} names {named!r} where the records choose {best!r}")
    raise typer.Exit(FAILED)
