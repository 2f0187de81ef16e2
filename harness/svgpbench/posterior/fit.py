"""A fit of one model to one table: a cell without a test set, in a separate worker process."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import ValidationError

from svgpbench.config import CellConfig, LikelihoodConfig
from svgpbench.errors import UserError
from svgpbench.experiments.error_messages import one_line
from svgpbench.experiments.validation import check_cells
from svgpbench.likelihoods import build_likelihood
from svgpbench.posterior.cell import left_by
from svgpbench.posterior.given import finite, table_of, vector
from svgpbench.posterior.kept import load_posterior
from svgpbench.posterior.posterior import Posterior
from svgpbench.runs.process import Limits, WorkerKind, WorkerProcess
from svgpbench.runs.protocol import Request

TARGET = "svgpbench.posterior.cell"
TASKS = {"binary": "classification", "classes": "multiclass"}
"""Support of a likelihood → task of its table; regression for other supports."""

Named: TypeAlias = str | Mapping[str, Any]
"""A name, or the corresponding table of an experiment file."""


def fit(
    X: npt.ArrayLike | pd.DataFrame,
    y: npt.ArrayLike,
    *,
    method: Named = "t-svgp",
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
) -> Posterior:
    """Train one method on all rows of X [n, D] and y [n], and return its posterior.

    Args:
        X: inputs; the columns of a frame keep their names.
        y: targets: numbers, counts or labels, as the likelihood requires.
        method: name, or `{"name": …, "options": {…}}`.
        likelihood: name, or the table of an experiment file.
        kernel: name, or the table of an experiment file.
        inducing: number of inducing inputs, or the table of an experiment file.
        training: table of an experiment file; by default 20 EM iterations of one E-step and 15 M-steps.
        backend: `jax`, `torch:compile`, …; its framework is loaded in a separate process.
        dtype: float64 or float32.
        device: cpu or cuda.
        threads: number of threads of the process.
        seed: seed of the initial values and the minibatches.
        jitter: added to the diagonal of K(Z, Z).
        timeout: largest number of seconds for the training; None for no limit.

    Raises:
        UserError: if the model cannot be trained, or if the training fails, with the reason.
    """
    likelihood_table = _named(likelihood)
    support = build_likelihood(_checked(LikelihoodConfig, likelihood_table)).support
    table, target = _table(X, y, labelled=support in TASKS)
    with tempfile.TemporaryDirectory(prefix="svgpbench-fit-") as folder:
        path = Path(folder) / "table.parquet"
        config = _config(
            experiment="fit",
            data=_data(path, target, support),
            split={"kind": "none"},
            kernel=_named(kernel),
            likelihood=likelihood_table,
            inducing=_inducing(inducing),
            training=dict(training or {}),
            method=_named(method),
            backend=_backend(backend) | {"dtype": dtype, "device": device},
            jitter=jitter,
            seed=seed,
            threads=threads,
        )
        table.to_parquet(path, index=False)
        try:
            return _trained(config, timeout)
        except UserError as error:  # the caller does not know our temporary file
            raise UserError(str(error).replace(f"{path}: ", "")) from error


def _trained(config: CellConfig, timeout: float | None) -> Posterior:
    check_cells([config])
    worker = WorkerProcess(WorkerKind.for_cell(config), (), TARGET)
    try:
        answer = worker.run(Request(config=config), Limits(timeout), threading.Event())
    finally:
        worker.kill()
        worker.close()
    if answer.status != "ok":
        raise UserError(f"the fit ended as {answer.status}: {answer.message}")
    return load_posterior(left_by(config))


def _named(value: Named) -> dict[str, Any]:
    return {"name": value} if isinstance(value, str) else dict(value)


def _backend(text: str) -> dict[str, str]:
    name, _, mode = text.partition(":")
    return {"name": name, "mode": mode}


def _inducing(inducing: int | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(inducing, Mapping):
        return dict(inducing)
    if isinstance(inducing, bool) or not isinstance(inducing, int | np.integer):
        raise UserError(f"inducing is {inducing!r}; give how many, or a table with its count")
    return {"count": int(inducing)}


def _table(
    X: npt.ArrayLike | pd.DataFrame, y: npt.ArrayLike, *, labelled: bool
) -> tuple[pd.DataFrame, str]:
    """Return one table of inputs and target, and the name of the target column."""
    table = table_of(X)
    values = vector(y, len(table))
    if (missing := np.flatnonzero(pd.isna(values))).size:
        raise UserError(f"y[{missing[0]}] is missing; fill in or remove that row")
    target = str(getattr(y, "name", None) or "y")
    while target in table:
        target += "_"
    return table.assign(**{target: values if labelled else finite(values, "y")}), target


def _data(path: Path, target: str, support: str) -> dict[str, Any]:
    return {
        "name": "table",
        "path": str(path),
        "target": target,
        "task": TASKS.get(support, "regression"),
        "standardise_y": support == "real",
    }


def _config(**tables: Any) -> CellConfig:
    config: CellConfig = _checked(CellConfig, tables)
    return config


def _checked(model: Any, values: Mapping[str, Any]) -> Any:
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        raise UserError(one_line(error, model, values)) from None
