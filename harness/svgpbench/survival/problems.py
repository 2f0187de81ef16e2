"""The arrays of a problem, the same for every library: data, minibatches, inducing inputs, θ, noise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from svgpbench.cells.cell import (
    build_model,
    initial_inducing,
    initial_theta,
    load_data,
    prepare_data,
)
from svgpbench.config import (
    BackendConfig,
    CellConfig,
    InducingConfig,
    MethodConfig,
    TrainingConfig,
)
from svgpbench.errors import UserError
from svgpbench.methods import build_method
from svgpbench.survival.plan import Plan

Arrays = dict[str, Any]
"""By name: `X` [n, D], `y` [n], `Z` [M, D], `rows` [steps, b], `checked` [t] and `noise` [steps + 1, S, P],
whose last is the check's; `likelihood`, `options` (of it, in JSON), `classes`, `lengthscale`,
`variance`; and `noise_variance` where the noise is Gaussian."""


def make_arrays(plan: Plan, name: str, seed: int) -> Arrays:
    """The arrays of a problem of the plan with a seed; raises `UserError` for what the data do not fit."""
    problem = plan.problems[name]
    config = CellConfig(
        experiment="survival",
        data=problem.data,
        split=problem.split,
        kernel=problem.kernel,
        likelihood=problem.likelihood,
        inducing=InducingConfig(count=plan.most_inducing, init="random"),
        training=TrainingConfig(batch_size=problem.batch_size),
        method=MethodConfig(name="t-svgp"),
        backend=BackendConfig(name="numpy"),
        seed=seed,
    )
    if problem.kernel.ard:
        raise UserError(
            f"problem {name!r}: a survival map has one lengthscale; set kernel.ard = false"
        )
    dataset = load_data(config.data)
    ready, model = prepare_data(config, dataset), build_model(config, dataset)
    X, y = ready.X_train, ready.y_train
    n, b, likelihood = len(y), problem.batch_size, model.likelihood
    if max(b, plan.most_inducing, plan.checked_rows) > n:
        raise UserError(
            f"problem {name!r} has {n} rows: fewer than a batch, M or checked_rows needs"
        )
    theta = initial_theta(config, model, X, y)
    draws = np.random.default_rng([seed, 7])
    return {
        "likelihood": likelihood.name,
        "options": problem.likelihood.model_dump_json(exclude={"name"}),
        "classes": getattr(likelihood, "classes", 0),
        "X": np.asarray(X),
        "y": y,
        "Z": initial_inducing(config, model, build_method("t-svgp", {}), theta, X),
        "rows": np.stack([draws.choice(n, b, replace=False) for _ in range(plan.steps)]),
        "checked": draws.choice(n, plan.checked_rows, replace=False),
        "noise": draws.standard_normal((plan.steps + 1, likelihood.samples, model.latents)),
        "lengthscale": theta.kernel.lengthscales[0, 0],
        "variance": theta.kernel.variance[0],
        "noise_variance": getattr(theta.likelihood, "noise_variance", 0.0),
    }


def save_arrays(arrays: Arrays, path: Path) -> None:
    """Write them for `np.load(path, allow_pickle=False)`."""
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
