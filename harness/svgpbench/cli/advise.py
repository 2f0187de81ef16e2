"""`svgpbench advise`: recommend a method for the user's data from the records of similar data sets."""

from __future__ import annotations

from typing import Annotated

import typer

from svgpbench import __version__
from svgpbench.cli.data.audit import Features, Groups, NoHeader, TableTask, Task
from svgpbench.cli.one_data_set import USUAL_LIKELIHOODS, one_data_set
from svgpbench.cli.options import (
    AsJson,
    RecordsFolder,
    given_arguments,
    has_records,
    records_folder,
    shipped_count_too,
)
from svgpbench.cli.printing import counting, print_json, show, tell
from svgpbench.config import DataConfig
from svgpbench.errors import UserError
from svgpbench.experiments import load_experiment
from svgpbench.experiments.cell import load_data
from svgpbench.experiments.data_errors import data_errors_are_the_users
from svgpbench.experiments.leaks import audit_table, leak_notes, target_notes
from svgpbench.metrics import METRICS
from svgpbench.output.table import Table, columns
from svgpbench.plugins import LIKELIHOODS, find, load, registry_of

SUPPORTS = {
    Task.regression: ("real", "positive", "counts"),
    Task.classification: ("binary", "classes"),
    Task.multiclass: ("classes",),
}
"""Kinds of target (`support` of a likelihood) that fit each task."""


def advise_command(
    context: typer.Context,
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME|FILE]", help="Name of a data set, or a table file of your own."
        ),
    ] = None,
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
    n: Annotated[
        int | None, typer.Option("--n", min=1, help="Number of training rows, without a data set.")
    ] = None,
    D: Annotated[
        int | None, typer.Option("--D", min=1, help="Number of inputs, without a data set.")
    ] = None,
    M: Annotated[
        int | None, typer.Option("--M", min=1, help="Number of inducing points; any by default.")
    ] = None,
    likelihood: Annotated[
        str | None,
        typer.Option("--likelihood", help="Likelihood; the usual one of the task by default."),
    ] = None,
    metric: Annotated[
        str, typer.Option("--metric", help="Metric by which methods are compared.")
    ] = "nlpd",
    factor: Annotated[
        float,
        typer.Option(
            "--within",
            metavar="FACTOR",
            help="Largest factor between your N, D and M and those of a record.",
        ),
    ] = 3.0,
    experiment: Annotated[
        list[str] | None,
        typer.Option(
            "--experiment",
            metavar="FILE",
            help="Experiment file of your own that says whether rates were searched.",
        ),
    ] = None,
    results: RecordsFolder = None,
    evidence: Annotated[
        bool, typer.Option("--evidence", help="Print the comparison of each experiment as well.")
    ] = False,
    as_json: AsJson = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Recommend a method for data such as yours, where records of data sets near yours support one."""
    from svgpbench.comparison.advice import advise
    from svgpbench.comparison.advice_text import (
        advice_as_markdown,
        advice_parts,
        answer_lines,
        as_plain,
        next_command,
    )
    from svgpbench.comparison.cases import Question
    from svgpbench.comparison.released import RELEASED
    from svgpbench.results.pareto import known_score

    known_score(metric)
    if not 1 <= factor < float("inf"):
        raise UserError(f"--within {factor:g}: give a factor of at least 1")
    if likelihood:
        find(LIKELIHOODS, likelihood)
    if data is not None and (n or D):
        raise UserError(f"{data}: its sizes are those of the data; leave --n and --D out")
    if data is None and (target or features or groups):
        option = "--target" if target else "--features" if features else "--groups"
        raise UserError(f"{option} is a column of a file: name the file first")
    kind = task
    tables: list[DataConfig] = []
    if data is not None:
        config = one_data_set(
            data, target or (), task, no_header=no_header, features=features, groups=groups
        )
        kind, n, D = _sizes(config)
        tables += [config] if config.path is not None else []
    likelihoods: tuple[str, ...] = (likelihood,) if likelihood else ()
    if kind is not None:
        _refuse_misfits(kind, likelihood, metric)
        likelihoods = likelihoods or USUAL_LIKELIHOODS[kind]
    experiments = [load_experiment(name) for name in experiment or ()]
    question = Question(likelihoods, n, D, M, factor)
    folder = records_folder(results) if has_records(results) else RELEASED
    shipped = RELEASED if shipped_count_too(results) else None
    if folder == RELEASED:
        tell(
            f"no records here: answered from those of version {__version__}; --results names others"
        )
    if shipped:
        tell(
            f"answered from the records in {folder} and those of version {__version__}; "
            f"--results {folder} takes the former alone"
        )
    with counting("comparing the records of data sets near yours"):
        advice = advise(folder, question, metric, experiments, shipped)
    if as_json:
        print_json(advice.to_json())
    elif as_markdown:
        typer.echo(advice_as_markdown(advice, evidence))
    else:
        answer = Table(columns(("", "")), answer_lines(advice))
        audits = [audit_table(table) for table in tables]
        notes = [*leak_notes(audits), *target_notes(audits)]
        show(answer, *map(as_plain, advice_parts(advice, evidence)), *notes)
        words = next_command(
            advice,
            evidence,
            given_arguments(context),
            given_arguments(context, ("data", "target", "task", "features", "groups")),
        )
        typer.echo(f"next: {words}")


def _sizes(config: DataConfig) -> tuple[Task, int, int]:
    """Return task, N and D of a data set; a registered one need not be downloaded."""
    if config.path is not None:
        n, dimensions = load_data(config).X.shape
        return Task(str(config.task)), int(n), int(dimensions)
    with data_errors_are_the_users():
        entry = registry_of(config.name).describe(config.name)
    return Task(entry.task), entry.rows, len(entry.features)


def _refuse_misfits(kind: Task, likelihood: str | None, metric: str) -> None:
    """Raise `UserError` if the likelihood or the metric does not fit the task."""
    if likelihood and load(LIKELIHOODS, likelihood).support not in SUPPORTS[kind]:
        usual = " or ".join(USUAL_LIKELIHOODS[kind])
        raise UserError(f"--likelihood {likelihood}: not of {kind.value}, which takes {usual}")
    metric_task = METRICS[metric].task
    if metric_task != "any" and (metric_task == "regression") != (kind is Task.regression):
        raise UserError(
            f"--metric {metric}: a metric of {metric_task}, and the task is {kind.value}"
        )
