"""`svgpbench choose`: the methods that a preset should use for the rows of a printed table."""

from __future__ import annotations

import typer
from rich.table import Table
from rich.text import Text

from svgpbench.cli.options import RESULTS, ExperimentName, ResultsFolder
from svgpbench.cli.printing import printer
from svgpbench.cli.running import FAILED
from svgpbench.experiments import load_experiment


def choose_command(experiment: ExperimentName, *, results: ResultsFolder = RESULTS) -> None:
    """Show which rates the records choose, and whether the preset names them; 1 where it does not."""
    from svgpbench.results.tuned_methods import choices, choosing_preset

    declared = load_experiment(experiment)
    found = choices(results, declared)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("row", "method", "ELBO", ""):
        table.add_column(column, justify="right" if column == "ELBO" else "left")
    for choice in found:
        for label, elbo in choice.elbo.items():
            mark = "chosen" if label == choice.chosen else ""
            table.add_row(*map(Text, (choice.row, label, f"{elbo:.1f}", mark)))
    printer().print(table)
    wrong = {choice.named: choice.chosen for choice in found if choice.named != choice.chosen}
    preset = choosing_preset(declared)
    if not wrong:
        typer.echo(f"preset {preset} names these")
        return
    for named, chosen in wrong.items():
        typer.echo(f"preset {preset} names {named!r} where the records choose {chosen!r}")
    raise typer.Exit(FAILED)
