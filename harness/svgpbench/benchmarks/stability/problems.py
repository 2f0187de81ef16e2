"""The arrays of a problem, the same for every library: data, minibatches, inducing inputs, θ, noise."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from svgpbench.benchmarks.stability.plan import Plan, ProblemPlan
from svgpbench.config import (
    BackendConfig,
    CellConfig,
    InducingConfig,
    MethodConfig,
    TrainingConfig,
)
from svgpbench.errors import UserError
from svgpbench.experiments.cell import (
    build_model,
    initial_inducing,
    initial_theta,
    load_data,
    prepare_data,
)
from svgpbench.kernels import Model, Theta
from svgpbench.methods import build_method
from svgpbench_datasets import Prepared

Arrays = dict[str, Any]
"""By name: `X` [n, D], `y` [n], `Z` [M, D], `rows` [steps, b], `checked` [t] and `noise` [steps + 1, S, P],
whose last is the check's; `likelihood`, `options` (of it, in JSON), `classes`, `lengthscale`,
`variance`; and `noise_variance` where the noise is Gaussian."""


class Start(NamedTuple):
    """What a run on a problem starts from."""

    ready: Prepared
    model: Model
    theta: Theta  # with M random rows as inducing inputs


def start_of(name: str, problem: ProblemPlan, inducing: int, checked: int, seed: int) -> Start:
    """Data, model and θ of a problem; raises `UserError` for what the data do not fit.

    Args:
        name: what messages call it.
        problem: in the words of an experiment file.
        inducing: M.
        checked: training rows that a bound is looked at on.
        seed: of the inducing inputs.
    """
    config = CellConfig(
        experiment=name,
        data=problem.data,
        split=problem.split,
        kernel=problem.kernel,
        likelihood=problem.likelihood,
        inducing=InducingConfig(count=inducing, init="random"),
        training=TrainingConfig(batch_size=problem.batch_size),
        method=MethodConfig(name="t-svgp"),
        backend=BackendConfig(name="numpy"),
        seed=seed,
    )
    dataset = load_data(config.data)
    ready, model = prepare_data(config, dataset), build_model(config, dataset)
    X, y = ready.X_train, ready.y_train
    if max(problem.batch_size, inducing, checked) > len(y):
        raise UserError(
            f"problem {name!r} has {len(y)} rows: fewer than a batch, M or checked_rows needs"
        )
    theta = initial_theta(config, model, X, y)
    Z = initial_inducing(config, model, build_method("t-svgp", {}), theta, X)
    return Start(ready, model, theta._replace(inducing=Z))


def make_arrays(plan: Plan, name: str, seed: int) -> Arrays:
    """The arrays of a problem of the plan with a seed; raises `UserError` for what the data do not fit."""
    problem = plan.problems[name]
    if problem.kernel.ard:
        raise UserError(
            f"problem {name!r}: a survival map has one kernel of one lengthscale; set kernel.ard = false"
        )
    ready, model, theta = start_of(name, problem, plan.most_inducing, plan.checked_rows, seed)
    y, likelihood = ready.y_train, model.likelihood
    n, b = len(y), problem.batch_size
    draws = np.random.default_rng([seed, 7])
    return {
        "likelihood": likelihood.name,
        "options": problem.likelihood.model_dump_json(exclude={"name"}),
        "classes": getattr(likelihood, "classes", 0),
        "X": np.asarray(ready.X_train),
        "y": y,
        "Z": theta.inducing,
        "rows": np.stack([draws.choice(n, b, replace=False) for _ in range(plan.steps)]),
        "checked": draws.choice(n, plan.checked_rows, replace=False),
        "noise": draws.standard_normal((plan.steps + 1, likelihood.samples, model.latents)),
        "lengthscale": theta.kernel.lengthscales[0, 0],
        "variance": theta.kernel.variance[0],
        "noise_variance": getattr(theta.likelihood, "noise_variance", 0.0),
    }
