"""Arrays of a problem, the same for every library: data, minibatches, inducing inputs, θ and noise."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from svgpbench.benchmarks.stability.plan import ProblemPlan, StabilityPlan
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
from svgpbench.numerics.streams import Stream
from svgpbench_datasets import Prepared

Arrays = dict[str, Any]
"""Arrays by name: `X` [n, D], `y` [n], `Z` [M, D], `rows` [steps, b], `checked` [t], and `noise`
[steps + 1, S, P], whose last set is for the bound; `likelihood`, its `options` as JSON, `classes` (0 without
classes), `lengthscales` [], `variance`, and `noise_variance` (0 if the noise is not Gaussian)."""


class Start(NamedTuple):
    """Data, model and θ at the start of a run."""

    ready: Prepared
    model: Model
    theta: Theta  # with M random rows as inducing inputs


def start_of(name: str, problem: ProblemPlan, inducing: int, checked: int, seed: int) -> Start:
    """Return data, model and θ of a problem. Raises `UserError` if the data do not fit the problem.

    Args:
        name: name of the problem in messages.
        problem: the problem in the terms of an experiment file.
        inducing: number of inducing inputs, M.
        checked: number of training rows on which a bound is computed.
        seed: seed of the inducing inputs.
    """
    if problem.likelihood.latent_mean != "zero":
        raise UserError(
            f"problem {name!r}: every library has a latent mean of zero here; "
            "remove likelihood.latent_mean"
        )
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


def make_arrays(plan: StabilityPlan, name: str, seed: int) -> Arrays:
    """Make the arrays of a problem for a seed. Raises `UserError` if the problem does not fit the map."""
    problem = plan.problems[name]
    if problem.kernel.ard:
        raise UserError(
            f"problem {name!r}: a survival map has one kernel of one lengthscale; set kernel.ard = false"
        )
    # a run takes the first M of these inducing inputs, so that those of two sizes are nested
    ready, model, theta = start_of(name, problem, plan.most_inducing, plan.checked_rows, seed)
    y, likelihood = ready.y_train, model.likelihood
    n, b = len(y), problem.batch_size
    rng = Stream.STABILITY.generator(seed)
    return {
        "likelihood": likelihood.name,
        "options": problem.likelihood.model_dump_json(exclude={"name"}),
        "classes": getattr(likelihood, "classes", 0),
        "X": np.asarray(ready.X_train),
        "y": y,
        "Z": theta.inducing,
        "rows": np.stack([rng.choice(n, b, replace=False) for _ in range(plan.steps)]),
        "checked": rng.choice(n, plan.checked_rows, replace=False),
        "noise": rng.standard_normal((plan.steps + 1, likelihood.samples, model.latents)),
        "lengthscales": theta.kernel.lengthscales[0, 0],
        "variance": theta.kernel.variance[0],
        "noise_variance": getattr(theta.likelihood, "noise_variance", 0.0),
    }
