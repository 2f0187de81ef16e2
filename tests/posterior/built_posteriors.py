"""Posteriors at a given θ after some E-steps, made in this process without a training."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from svgpbench.api import Posterior
from svgpbench.backends import load_backend
from svgpbench.config import KernelConfig, LikelihoodConfig, MethodConfig
from svgpbench.kernels import Theta
from svgpbench.kernels.bases import Decoupled, Features
from svgpbench.kernels.kernels import KernelParameters
from svgpbench.methods.data_term import DataTerm
from svgpbench.posterior.posterior import TrainingFacts
from svgpbench.training.blocks import factor_at, prior_at
from svgpbench.tree import tree_map

Floats = npt.NDArray[np.float64]
X_MEAN, X_SCALE = np.array([3.0, -40.0]), np.array([2.0, 10.0])
Y_MEAN, Y_SCALE = 40.0, 5.0
M = 9


class Table(NamedTuple):
    """Rows in their own units."""

    X: Floats
    y: Floats


def table(likelihood: str = "gaussian", n: int = 40) -> Table:
    rng = np.random.default_rng(8)
    x = rng.uniform(-1.6, 1.6, (n, 2))
    f = np.sin(2.0 * x[:, 0]) + 0.3 * x[:, 1]
    y = {
        "poisson": rng.poisson(np.exp(f)).astype(float),
        "bernoulli-probit": (f + 0.5 * rng.standard_normal(n) > 0.0).astype(float),
        "bernoulli-logit": (f + 0.5 * rng.standard_normal(n) > 0.0).astype(float),
        "softmax": np.digitize(f, [-0.4, 0.4]).astype(float),
        "robust-max": np.digitize(f, [-0.4, 0.4]).astype(float),
    }.get(likelihood, Y_MEAN + Y_SCALE * (f + 0.3 * rng.standard_normal(n)))
    return Table(X_MEAN + X_SCALE * x, y)


def built(
    method: str = "t-svgp",
    likelihood: str = "gaussian",
    *,
    rows: Table | None = None,
    options: dict[str, Any] | None = None,
    kernel: Any = "matern52",
    of_likelihood: dict[str, Any] | None = None,
    latent_mean: float = 0.3,
    functions: Literal["points", "features"] = "points",
    Z: Floats | None = None,
    jitter: float = 1e-6,
    steps: int = 2,
    rate: float = 1.0,
) -> Posterior:
    """Return the posterior after E-steps on all rows; Z is a grid if it is None."""
    rows = table(likelihood) if rows is None else rows
    ops = load_backend("numpy")
    several = {"classes": 3} if likelihood in ("softmax", "robust-max") else {}
    noise = {"noise_variance": 0.1} if likelihood == "gaussian" else {}
    config = {"name": likelihood, **several, **noise, **(of_likelihood or {})}
    labels = {"bernoulli-probit": 2, "bernoulli-logit": 2, "softmax": 3, "robust-max": 3}
    names = tuple(map(str, range(labels.get(likelihood, 0)))) or None
    real = likelihood in ("gaussian", "student-t")
    facts = TrainingFacts(
        kernel=KernelConfig.model_validate({"name": kernel} if isinstance(kernel, str) else kernel),
        likelihood=LikelihoodConfig.model_validate(config),
        method=MethodConfig(name=method, options=options or {}),
        functions=functions,
        jitter=jitter,
        seed=0,
        n=len(rows.y),
        features=("left", "right"),
        class_labels=names,
        y_mean=Y_MEAN if real else 0.0,
        y_scale=Y_SCALE if real else 1.0,
    )
    blank = Posterior(facts, Theta((), (), ()), (), X_MEAN, X_SCALE)
    model, of = blank.model, blank.method
    x = np.concatenate(blank.standardised_inputs(rows.X))
    # spread out, so that K(Z, Z) is well conditioned
    grid = np.stack(np.meshgrid(*[np.linspace(-1.5, 1.5, 3)] * 2), axis=-1).reshape(-1, 2)
    points: Any = grid if Z is None else Z
    if functions == "features":
        points = Features(points, 0.1 + 0.0 * points)
    basis: Any = {"data": x, "inducing": points}.get(of.basis)
    if of.basis == "decoupled":
        basis = Decoupled(grid[:5] + 0.4, points)
    theta = Theta(
        _parameters(facts.kernel),
        tree_map(np.asarray, model.likelihood.initial_parameters()),
        basis,
        np.full(model.latents, latent_mean),
    )
    theta = theta._replace(mean=theta.mean + 0.1 * np.arange(model.latents))
    prior = prior_at(ops, model, of, theta)
    state = of.initial_state(ops, prior, model.latents, len(x))
    sampled = np.arange(of.sampled_points) if of.sampled_points else ()
    f = factor_at(ops, model, of, theta, prior, x, sampled)
    posterior = Posterior(facts, theta, state, X_MEAN, X_SCALE)
    data = DataTerm(
        model.conditional(theta, posterior.noise()),
        posterior.standardised_targets(rows.y, len(x)),
        np.arange(len(x)),
        np.asarray(1.0),
    )
    for _ in range(steps):
        state = of.e_step(ops, f, data, state, np.asarray(rate))
    return Posterior(facts, theta, state, X_MEAN, X_SCALE)


def _parameters(kernel: KernelConfig) -> Any:
    if kernel.parts:
        return tuple(map(_parameters, kernel.parts))
    scales = [[0.9, 1.3]] if kernel.ard else [[1.1]]
    return KernelParameters(np.array([1.4]), np.array(scales))
