"""`svgpbench advise`: recommend methods and rates for the user's data, from the board."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from svgpbench.cli.data.audit import Features, Groups, NoHeader, TableTask, TargetKind
from svgpbench.cli.one_data_set import USUAL_LIKELIHOODS, one_data_set
from svgpbench.cli.options import AsJson
from svgpbench.cli.printing import print_json, show
from svgpbench.config import DataConfig
from svgpbench.errors import UserError
from svgpbench.experiments.cell import load_data
from svgpbench.experiments.error_messages import as_user_errors
from svgpbench.experiments.leaks import audit_table, leak_notes, target_notes
from svgpbench.output.table import Column, Table, number
from svgpbench.plugins import LIKELIHOODS, find, load, registry_of

SUPPORTS = {
    TargetKind.regression: ("real", "positive", "counts"),
    TargetKind.classification: ("binary", "classes"),
    TargetKind.multiclass: ("classes",),
}
"""Kinds of target (`support` of a likelihood) that fit each task."""


def advise_command(
    data: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE", help="Name of a data set, or a table file of your own."
        ),
    ],
    *,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target", metavar="COLUMN", help="Column to predict, in a file of your own."
        ),
    ] = None,
    task: TableTask = None,
    no_header: NoHeader = False,
    features: Features = None,
    groups: Groups = None,
    likelihood: Annotated[
        str | None,
        typer.Option("--likelihood", help="Likelihood; the usual one of the task by default."),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(
            "--write", metavar="FILE.toml", help="Experiment file to write, which runs the advice."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Recommend methods, rates and seconds for data such as yours, from the problems of the suite."""
    from svgpbench.atomic import write_whole
    from svgpbench.suite.advice import advise, experiment_file
    from svgpbench.suite.outcomes import Outcomes
    from svgpbench.suite.schema import load_suite

    # `run` would take a name without it for that of a shipped experiment
    if write is not None and write.suffix != ".toml":
        raise UserError(f"--write {write}: an experiment file ends in .toml")
    config = one_data_set(
        data, target or (), task, no_header=no_header, features=features, groups=groups
    )
    kind, rows, inputs = _sizes(config)
    if likelihood:
        find(LIKELIHOODS, likelihood)
        if load(LIKELIHOODS, likelihood).support not in SUPPORTS[kind]:
            usual = " or ".join(USUAL_LIKELIHOODS[kind])
            raise UserError(f"--likelihood {likelihood}: not of {kind.value}, which takes {usual}")
    suite = load_suite()
    chosen = likelihood or USUAL_LIKELIHOODS[kind][0]
    advice = advise(suite, Outcomes.read(), chosen, rows, inputs)
    if write is not None:
        write_whole(write, experiment_file(suite, advice, _seen_from(write, config)).encode())
    if as_json:
        print_json(advice.to_json())
        return
    table = Table(
        (
            Column("method"),
            Column("rates of q, θ", numeric=True),
            number("won", lambda x: f"{100 * x:.0f} %"),
            number("gain", lambda x: f"{100 * x:.0f} %"),
            number("to 90 %", lambda x: f"{x:.1f} s" if x < float("inf") else "not reached"),
            number("whole run", ".0f", "s"),
        ),
        [
            (x.entrant, x.rates.title, x.won, x.share, x.seconds, x.whole_run)
            for x in advice.recommended
        ],
    )
    audits = [audit_table(config)] if config.path is not None else []
    count, costs = len(advice.group.problems), advice.costs["cost"]
    worst = advice.costs.sort_values("cost")["problem"].iloc[-1]
    show(
        f"{rows} rows, {inputs} inputs, likelihood {chosen}: take M = {advice.inducing} inducing points",
        table,
        notes=[
            f"from {count} problems of suite {suite.version} ({advice.group.name}): "
            + "; ".join(problem.title for problem in advice.group.problems),
            "won: problems on which no method ranks better; gain: mean share of the possible gain in NLPD; "
            "seconds are those of the reference machine (docs/board.md)",
            f"with each of {len(advice.costs)} problems left out in turn, and the others of its table, "
            "the first method of the advice "
            f"would have given away {100 * costs.median():.1f} % of the possible gain at the median, and "
            f"{100 * costs.max():.0f} % at worst ({worst})",
            *leak_notes(audits),
            *target_notes(audits),
        ],
    )
    if write is None:
        typer.echo("next: the same with --write my.toml, then `svgpbench run my.toml`")
    else:
        typer.echo(f"next: svgpbench run {write}")


def _seen_from(file: Path, config: DataConfig) -> DataConfig:
    """Return a data set with its path relative to the folder of an experiment file, as `run` reads it."""
    if config.path is None or Path(config.path).is_absolute():
        return config
    # `..` in a path leaves the real folder, not the link to it
    path = os.path.relpath(os.path.abspath(config.path), os.path.realpath(file.parent))
    return config.model_copy(update={"path": path})


def _sizes(config: DataConfig) -> tuple[TargetKind, int, int]:
    """Return task, rows and inputs of a data set; a registered one need not be downloaded."""
    if config.path is not None:
        n, dimensions = load_data(config).X.shape
        return TargetKind(str(config.task)), int(n), int(dimensions)
    with as_user_errors():
        entry = registry_of(config.name).describe(config.name)
    return TargetKind(entry.task), entry.rows, len(entry.features)
