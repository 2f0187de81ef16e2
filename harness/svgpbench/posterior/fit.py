"""A fit of one model to one table: a cell without a test set, in a separate worker process.

The process stays for the next fit of the same kind.
"""

from __future__ import annotations

import atexit
import os
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import ValidationError

from svgpbench.backends import forget_changed
from svgpbench.config import (
    NEW_MODEL_DEFAULTS,
    CellConfig,
    InducingConfig,
    LikelihoodConfig,
    MethodConfig,
    TrainingConfig,
    without_numpy,
)
from svgpbench.errors import DataWarning, UnsettledWarning, UserError, on_one_line
from svgpbench.experiments.cell import forget_data
from svgpbench.experiments.error_messages import one_line
from svgpbench.experiments.identity import OtherCode, cell_code
from svgpbench.experiments.likelihood_of_data import misfit
from svgpbench.experiments.validation import check_cells
from svgpbench.likelihoods import GaussianLikelihood, build_likelihood
from svgpbench.likelihoods.likelihood import Likelihood
from svgpbench.methods import build_method
from svgpbench.posterior.cell import posterior_path
from svgpbench.posterior.defaults import AUTO, auto_method, is_large, training_of
from svgpbench.posterior.inputs import distinct_rows, finite, table_of, vector
from svgpbench.posterior.labels import Classes, classes_of, listed
from svgpbench.posterior.posterior import Posterior
from svgpbench.posterior.progress import iterations_shown
from svgpbench.posterior.saved import load_posterior
from svgpbench.results.unsettled import advice
from svgpbench.runs.process import CellLimits, WorkerKind, WorkerProcess
from svgpbench.runs.protocol import Request
from svgpbench_datasets import Dataset
from svgpbench_datasets.audit.column_notes import few_digits
from svgpbench_datasets.audit.notes import hard_target
from svgpbench_datasets.audit.row_numbers import row_numbers

TARGET = "svgpbench.posterior.cell"
TASKS = {"binary": "classification", "classes": "multiclass"}
"""Support of a likelihood → task of its table; regression for other supports."""

Named: TypeAlias = str | Mapping[str, Any]
"""A name, or the corresponding table of an experiment file."""


def fit(
    X: npt.ArrayLike | pd.DataFrame,
    y: npt.ArrayLike,
    *,
    method: Named = AUTO,
    likelihood: Named = "gaussian",
    kernel: Named = "matern52",
    inducing: int | Mapping[str, Any] = 50,
    training: Mapping[str, Any] | None = None,
    backend: str = "numpy",
    dtype: str = "float64",
    device: str = "cpu",
    threads: int = 1,
    seed: int = 0,
    jitter: float = 1e-6,
    timeout: float | None = None,
    progress: bool = False,
) -> Posterior:
    """Train one method on all rows of X [n, D] and y [n], and return its posterior.

    Args:
        X: inputs; the columns of a frame keep their names.
        y: targets: numbers, counts or labels, as the likelihood requires.
        method: name, or `{"name": …, "options": {…}}`. "auto" is SGPR for Gaussian noise, or t-SVGP if the
            likelihood is another or if the rows are too many for steps on all of them.
        likelihood: name, or the table of an experiment file.
        kernel: name, or the table of an experiment file.
        inducing: number of inducing inputs, at most one per distinct row; or the table of an experiment file.
        training: table of an experiment file. By default the training ends once the bound has settled, after
            at most 100 EM iterations; its steps are guarded, so that the bound never falls. On minibatches it
            takes 5,000 iterations by the protocol of the board.
        backend: `jax`, `torch:compile`, …; its framework is loaded in a separate process.
        dtype: float64 or float32.
        device: cpu or cuda.
        threads: number of threads of the process.
        seed: seed of the initial values and the minibatches.
        jitter: added to the diagonal of K(Z, Z).
        timeout: largest number of seconds for the training; None for no limit.
        progress: show iterations, bound and seconds on a terminal's stderr.

    Raises:
        UserError: if the model cannot be trained, or if the training fails, with the reason.

    Warns:
        UnsettledWarning: if the bound moved in the last quarter by more than 0.1 nats per 100 rows or, with
            labels and counts, by more than 0.1 % of itself.
        DataWarning: if an input numbers the rows or the target is constant, heavy-tailed or has rare classes.

    Examples:
        >>> import numpy as np
        >>> from svgpbench.api import fit
        >>> X = np.linspace(0.0, 1.0, 40)[:, None]
        >>> posterior = fit(X, np.sin(6.0 * X[:, 0]), inducing=10)
        >>> [round(mean, 1) for mean in posterior.predict([[0.25]])["mean"]]
        [1.0]
    """
    forget_changed()
    likelihood_table = NEW_MODEL_DEFAULTS["likelihood"] | _named(likelihood, "likelihood")
    model_of_y = build_likelihood(_checked(LikelihoodConfig, likelihood_table))
    support = model_of_y.support
    table, target, classes = _table(X, y, model_of_y)
    name, _, mode = backend.partition(":")
    if isinstance(inducing, Mapping):
        basis = without_numpy(inducing)
    elif isinstance(inducing, bool) or not isinstance(inducing, int | np.integer):
        raise UserError(f"inducing is {inducing!r}; give how many, or a table with its count")
    else:
        basis = {"count": min(int(inducing), distinct_rows(table.drop(columns=target)))}
    if not isinstance(training, Mapping | None):
        raise UserError(f"training is {training!r}; give a table, such as {{'em_iterations': 50}}")
    given, method_table = dict(training or {}), _named(method, "method")
    rows = _checked(TrainingConfig, given, "training").rows or len(table)
    given = {key: x for key, x in given.items() if x is not None}  # None is as if left out
    is_automatic = method_table.get("name") == AUTO
    gaussian = isinstance(model_of_y, GaussianLikelihood)
    count = _checked(InducingConfig, basis, "inducing").count
    if is_automatic:
        chosen = auto_method(gaussian, given, rows, count)
        method_table = method_table | {"name": chosen}
    asked = _checked(MethodConfig, method_table)
    built = build_method(asked.name, asked.options)
    large = is_automatic and gaussian and is_large(given, rows, count)
    with tempfile.TemporaryDirectory(prefix="svgpbench-fit-") as folder:
        path = Path(folder) / "table.parquet"
        data = {
            "name": "table",
            "path": str(path),
            "target": target,
            # named: of all columns, the reader leaves out those that look like a saved row index
            "features": tuple(column for column in table if column != target),
            "task": TASKS.get(support, "regression"),
            "standardise_y": support == "real",
        }
        tables = {
            "experiment": "fit",
            "data": data,
            "split": {"kind": "none"},
            "kernel": _named(kernel, "kernel"),
            "likelihood": likelihood_table,
            "inducing": basis,
            "training": training_of(given, built, dtype, large=large),
            "method": method_table,
            "backend": {"name": name, "mode": mode} | {"dtype": dtype, "device": device},
            "jitter": jitter,
            "seed": seed,
            "threads": threads,
        }
        config = _checked(CellConfig, tables)
        table.to_parquet(path, index=False)
        try:
            with iterations_shown(path, config.training.iterations) if progress else nullcontext():
                posterior = _trained(config, timeout)
        except UserError as error:  # the caller does not know our temporary file
            raise UserError(str(error).replace(f"{path}: ", "")) from error
    facts: dict[str, Any] = {"method_is_automatic": is_automatic}
    if classes is not None:  # the worker had their numbers
        facts |= {"classes": classes, "class_labels": classes.names}
    posterior = replace(posterior, facts=posterior.facts.model_copy(update=facts))
    if posterior.unsettled:
        guarded = config.training.steps == "guarded"
        text = f"{posterior.unsettled}; {advice([posterior.move], guarded=guarded)}"
        warnings.warn(text, UnsettledWarning, stacklevel=2)
    for text in _findings(table, target, classes):
        warnings.warn(on_one_line(text), DataWarning, stacklevel=2)
    return posterior


def _findings(table: pd.DataFrame, target: str, classes: Classes | None) -> Iterator[str]:
    """Yield what an audit finds in the inputs and the target of a table that a model should not rest on."""
    inputs, y = table.drop(columns=target), table[target].to_numpy(np.float64)
    names = () if classes is None else classes.names
    dataset = Dataset(
        name="table",
        task="multiclass" if names else "regression",
        X=inputs.to_numpy(np.float64),
        y=y,
        feature_names=tuple(map(str, inputs)),
        target_name=target,
        source="",
        class_labels=names or None,
    )
    counts = dict(zip(names, np.bincount(y.astype(int)).tolist(), strict=True)) if names else {}
    yield from (f"{flag.text}: leave it out" for flag in row_numbers(dataset) if flag.leak)
    yield from (flag.text for flag in (*hard_target(dataset.y, counts), *few_digits(dataset)))


def _trained(config: CellConfig, timeout: float | None) -> Posterior:
    """Train in the idle worker if it is of the cell's kind and environment, else in a new one."""
    try:
        check_cells([config])
    finally:
        forget_data()  # no later fit reads this table, and it may be large
    kind, environment = WorkerKind.for_cell(config), dict(os.environ)
    worker = None
    while worker is None:
        try:
            idle, its_environment = _idle.pop()  # one step: another thread may take the last one
        except IndexError:
            break
        # it computes with the plugins that it has loaded
        stale = OtherCode.between(idle.code, cell_code(config)).plugins
        reusable = idle.alive and not idle.needs_replacement and not stale
        # frameworks read variables when they start, so a changed one needs a new process
        if idle.kind == kind and its_environment == environment and reusable:
            worker = idle
        else:
            _end(idle)
    worker = worker or WorkerProcess(kind, (), TARGET)
    try:
        answer = worker.run(Request(config=config), CellLimits(timeout), threading.Event())
    except BaseException:  # Ctrl-C too
        _end(worker)
        raise
    if answer.status != "ok":
        _end(worker)
        if answer.status == "skipped":  # the backend lacks what was asked for, such as the device
            raise UserError(answer.message)
        raise UserError(f"the fit ended as {answer.status}: {answer.message}")
    _idle.append((worker, environment))
    return load_posterior(posterior_path(config))


_idle: list[tuple[WorkerProcess, dict[str, str]]] = []
"""The process of the last fit, if it ended well, and its environment: starting one takes seconds."""


def _end(worker: WorkerProcess) -> None:
    worker.kill()
    worker.close()


@atexit.register
def _end_idle() -> None:
    while _idle:
        _end(_idle.pop()[0])


os.register_at_fork(after_in_child=_idle.clear)  # a forked child does not own the process


def _named(value: Named, argument: str) -> dict[str, Any]:
    """Return the table that a name, or a table, stands for; raises `UserError` for anything else."""
    if not isinstance(value, str | Mapping):
        raise UserError(f"{argument} is {value!r}; give a name, or a table with one")
    return {"name": value} if isinstance(value, str) else without_numpy(value)


def _table(
    X: npt.ArrayLike | pd.DataFrame, y: npt.ArrayLike, likelihood: Likelihood
) -> tuple[pd.DataFrame, str, Classes | None]:
    """Return one table of inputs and target, the name of the target column, and the classes of labels."""
    table, classes = table_of(X), None
    if likelihood.support in TASKS:
        classes, values = classes_of(y, len(table))
        if likelihood.support == "binary" and len(classes.labels) > 2:
            raise UserError(
                f"y holds {len(classes.labels)} classes ({listed(classes.names)}), and likelihood "
                f"{likelihood.name!r} takes two; choose other targets, or likelihood 'softmax'"
            )
    else:
        values = finite(vector(y, len(table)), "y")
        if wrong := misfit(likelihood, values, "y[{}]".format):
            raise UserError(f"likelihood {likelihood.name!r} {wrong}")
    target = str(getattr(y, "name", None) or "y")
    while target in table:
        target += "_"
    return table.assign(**{target: values}), target, classes


def _checked(model: Any, values: Mapping[str, Any], *table: str) -> Any:
    """Return a validated model; raises `UserError` with the key in its table, if that has a name."""
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        raise UserError(one_line(error, model, values, table)) from None
