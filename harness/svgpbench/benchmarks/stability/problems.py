"""Arrays of a problem, the same for every library: data, minibatches, inducing inputs, θ and noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from svgpbench.benchmarks.problem_plan import start_of
from svgpbench.benchmarks.stability.plan import StabilityPlan
from svgpbench.errors import UserError
from svgpbench.numerics.streams import Stream

Arrays = dict[str, Any]
"""Arrays by name: `X` [n, D], `y` [n], `Z` [M, D], `rows` [steps, b], `checked` [t], and `noise`
[steps + 1, S, P], whose last set is for the bound; `likelihood`, its `options` as JSON, `classes` (0 without
classes), `lengthscales` [], `variance`, and `noise_variance` (0 if the noise is not Gaussian)."""


def make_arrays(plan: StabilityPlan, name: str, seed: int) -> Arrays:
    """Make the arrays of a problem for a seed. Raises `UserError` if the problem does not fit the map."""
    problem = plan.problems[name]
    if problem.kernel.name != "matern52" or problem.kernel.ard:
        raise UserError(
            f"problem {name!r}: every library has matern52 with one lengthscale here; "
            "leave kernel.name out and set kernel.ard = false"
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
