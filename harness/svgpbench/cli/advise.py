"""`svgpbench advise`: recommend a method for the user's data from the records of similar data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from svgpbench.cli.data.audit import OwnTask, Task
from svgpbench.cli.options import RESULTS, AsJson, ResultsFolder
from svgpbench.cli.printing import print_json
from svgpbench.config import DataConfig
from svgpbench.errors import UserError
from svgpbench.experiments.cell import load_data
from svgpbench.experiments.data_errors import data_errors_are_the_users
from svgpbench.metrics import METRICS
from svgpbench.plugins import LIKELIHOODS, find, load, registry_of
from svgpbench_datasets.user_table import is_table_file

OF_A_TASK = {
    Task.regression: ("gaussian",),
    Task.classification: ("bernoulli-probit", "bernoulli-logit"),
    Task.multiclass: ("softmax", "robust-max"),
}
"""Usual likelihoods of each task."""
SUPPORTS = {
    Task.regression: ("real", "counts"),
    Task.classification: ("binary", "classes"),
    Task.multiclass: ("classes",),
}
"""Kinds of target (`support` of a likelihood) that fit each task."""


def advise_command(
    data: Annotated[
        str | None,
        typer.Argument(metavar="[NAME|FILE]", help="A data set, or a table of your own."),
    ] = None,
    *,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target", metavar="COLUMN", help="Column to predict, in a file of your own."
        ),
    ] = None,
    task: OwnTask = None,
    n: Annotated[
        int | None, typer.Option("--n", min=1, help="Rows to train on, without a data set.")
    ] = None,
    D: Annotated[int | None, typer.Option("--D", min=1, help="Inputs, without a data set.")] = None,
    M: Annotated[
        int | None, typer.Option("--M", min=1, help="Inducing points; any by default.")
    ] = None,
    likelihood: Annotated[
        str | None,
        typer.Option("--likelihood", help="Likelihood; the usual one of the task by default."),
    ] = None,
    metric: Annotated[
        str, typer.Option("--metric", help="Metric by which methods are compared.")
    ] = "nlpd",
    within: Annotated[
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
    results: ResultsFolder = RESULTS,
    evidence: Annotated[
        bool, typer.Option("--evidence", help="Print the comparison of each experiment as well.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Recommend a method for data such as yours, where records of data sets near yours support one."""
    from svgpbench.comparison.advice import advise
    from svgpbench.comparison.advice_text import advice_as_markdown
    from svgpbench.comparison.cases import Question
    from svgpbench.results.pareto import known_score

    known_score(metric)
    if not 1 <= within < float("inf"):
        raise UserError(f"--within {within:g}: give a factor of at least 1")
    if likelihood:
        find(LIKELIHOODS, likelihood)
    if data is not None and (n or D):
        raise UserError(f"{data}: its sizes are those of the data; leave --n and --D out")
    if data is None and target:
        raise UserError("--target is a column of a file: name the file first")
    kind = task
    if data is not None:
        kind, n, D = _sizes(data, target or [], task)
    wanted: tuple[str, ...] = (likelihood,) if likelihood else ()
    if kind is not None:
        _refuse_misfits(kind, likelihood, metric)
        wanted = wanted or OF_A_TASK[kind]
    question = Question(wanted, n, D, M, within)
    advice = advise(results, question, metric, experiment or ())
    if as_json:
        print_json(advice.to_json())
    else:
        typer.echo(advice_as_markdown(advice, evidence))


def _sizes(name: str, targets: list[str], task: Task | None) -> tuple[Task, int, int]:
    """Return task, N and D of a registered data set or of a table file.

    A registered data set need not be downloaded. Raises `UserError` for options that do not fit.
    """
    if is_table_file(name):
        if len(targets) != 1:
            raise UserError(f"{name}: give one --target, the column to predict")
        kind = task or Task.regression
        config = DataConfig(name=Path(name).stem, path=name, target=targets[0], task=kind.value)
        n, dimensions = load_data(config).X.shape
        return kind, int(n), int(dimensions)
    if targets or task:
        raise UserError(f"{name} is a data set of a registry, which says its target and its task")
    with data_errors_are_the_users():
        entry = registry_of(name).describe(name)
    return Task(entry.task), entry.rows, len(entry.features)


def _refuse_misfits(kind: Task, likelihood: str | None, metric: str) -> None:
    """Raise `UserError` if the likelihood or the metric does not fit the task."""
    if likelihood and load(LIKELIHOODS, likelihood).support not in SUPPORTS[kind]:
        known = " or ".join(OF_A_TASK[kind])
        raise UserError(f"--likelihood {likelihood}: not of {kind.value}, which takes {known}")
    of = METRICS[metric].task
    if of != "any" and (of == "regression") != (kind is Task.regression):
        raise UserError(f"--metric {metric}: a metric of {of}, and the task is {kind.value}")
