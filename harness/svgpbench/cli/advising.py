"""`svgpbench advise`: which method the records speak for on data such as the user's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from svgpbench.cells.cell import load_data
from svgpbench.cells.data_errors import data_errors_are_the_users
from svgpbench.cli.auditing import OwnTask, Targets, Task
from svgpbench.cli.options import RESULTS, AsJson, ResultsFolder
from svgpbench.config import DataConfig
from svgpbench.errors import UserError
from svgpbench.plugins import LIKELIHOODS, find, registry_of
from svgpbench_datasets.user_table import is_table_file

if TYPE_CHECKING:
    from svgpbench.report.cases import Question

OF_A_TASK = {
    Task.regression: ("gaussian",),
    Task.classification: ("bernoulli-probit", "bernoulli-logit"),
    Task.multiclass: ("softmax", "robust-max"),
}
"""What a task is usually modelled with."""


def advise_command(
    data: Annotated[
        str | None,
        typer.Argument(metavar="[NAME|FILE]", help="A data set, or a table of your own."),
    ] = None,
    *,
    target: Targets = None,
    task: OwnTask = None,
    n: Annotated[
        int | None, typer.Option("--n", min=1, help="Rows to train on, without a data set.")
    ] = None,
    D: Annotated[int | None, typer.Option("--D", min=1, help="Inputs, without a data set.")] = None,
    M: Annotated[
        int | None, typer.Option("--M", min=1, help="Inducing points; any by default.")
    ] = None,
    likelihood: Annotated[
        str | None, typer.Option("--likelihood", help="That of the task by default.")
    ] = None,
    metric: Annotated[str, typer.Option("--metric", help="What to rank by.")] = "nlpd",
    within: Annotated[
        float, typer.Option("--within", metavar="FACTOR", help="How far N, D and M may be.")
    ] = 3.0,
    results: ResultsFolder = RESULTS,
    as_json: AsJson = False,
) -> None:
    """Rank methods on data sets near yours, from records; without any, on all that there are."""
    from svgpbench.report.advice import advise
    from svgpbench.report.advice_text import advice_as_markdown
    from svgpbench.report.cases import Question
    from svgpbench.report.pareto import known_score

    known_score(metric)
    if not 1 <= within < float("inf"):
        raise UserError(f"--within {within:g}: give a factor of at least 1")
    if likelihood:
        find(LIKELIHOODS, likelihood)
    if data is not None and (n or D):
        raise UserError(f"{data}: its sizes are those of the data; leave --n and --D out")
    if data is None and target:
        raise UserError("--target is a column of a file: name the file first")
    sizes = Question(n=n, dimensions=D) if data is None else _sizes(data, target or [], task)
    wanted = (likelihood,) if likelihood else sizes.likelihoods
    if data is None and task and not likelihood:
        wanted = OF_A_TASK[task]
    question = Question(wanted, sizes.n, sizes.dimensions, M, within)
    advice = advise(results, question, metric)
    if as_json:
        typer.echo(json.dumps(advice.to_json(), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        typer.echo(advice_as_markdown(advice))


def _sizes(name: str, targets: list[str], task: Task | None) -> Question:
    """Likelihoods, N and D of a data set of a registry, which need not be at hand, or of a file."""
    from svgpbench.report.cases import Question

    if is_table_file(name):
        if len(targets) != 1:
            raise UserError(f"{name}: give one --target, the column to predict")
        kind = task or Task.regression
        config = DataConfig(name=Path(name).stem, path=name, target=targets[0], task=kind.value)
        dataset = load_data(config)
        n, dimensions = dataset.X.shape
        return Question(OF_A_TASK[kind], int(n), int(dimensions))
    if targets or task:
        raise UserError(f"{name} is a data set of a registry, which says its target and its task")
    with data_errors_are_the_users():
        entry = registry_of(name).describe(name)
    return Question(OF_A_TASK[Task(entry.task)], entry.rows, len(entry.features))
