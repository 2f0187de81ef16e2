"""Kobe 2021, Figures 2.1 and 4.8: predictions before and after training, each family at its optimum over θ.

Claims 15 and 17 attribute the rougher mean and the smaller variance to the family of 2M numbers. Here Z is
fixed and the same for both families. θ and q are at the optimum, so that step sizes have no effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from svgpbench.config import (
    LEARN,
    BackendConfig,
    CellConfig,
    DataConfig,
    InducingConfig,
    KernelConfig,
    LikelihoodConfig,
    MethodConfig,
    SplitConfig,
    TrainingConfig,
)
from svgpbench.experiments.cell import (
    build_model,
    initial_inducing,
    initial_theta,
    load_data,
    prepare_data,
)
from svgpbench.kernels import Theta
from svgpbench.methods import build_method
from svgpbench.methods.diagonal_precision import DiagonalState
from svgpbench.papers.kobe2021.algebra.cases import Rows
from svgpbench.plugins import load_backend
from svgpbench.training.batches import TrainingData
from svgpbench.training.chunked import trainer_class
from svgpbench.training.em import Trainer
from svgpbench.tree import tree_map
from svgpbench_datasets.generated.generators import sum_of_sinusoids

Floats = npt.NDArray[np.float64]
FULL, DIAGONAL, FREE = "all Gaussians", "O(M)", "all Gaussians, Z learned"
METHODS = {
    FULL: MethodConfig(name="sgpr"),
    FREE: MethodConfig(name="sgpr"),
    DIAGONAL: MethodConfig(
        name="diagonal-precision", options={"optimiser": "exact", "tying": "tied-projected"}
    ),
}
SINUSOID, POINTS = "thesis-sinusoid", {"thesis-sinusoid": 15}
SAMPLES = ("thesis-gp-sample", "thesis-gp-sample:draw-1", "thesis-gp-sample:draw-2")
X = np.linspace(-1.0, 1.0, 401)[:, None]
TRAINING = TrainingConfig(
    em_iterations=12,
    e_steps=20,
    e_rate=0.5,
    m_steps=10,
    optimiser="l-bfgs",
    learn=("kernel", "likelihood"),
)
TWO_DEVIATIONS = 1.96
REGION = 0.05
"""Region of practical equivalence of the logarithm of a hyperparameter."""


class Fit(NamedTuple):
    """Predictions of f on a grid by a family on one data set, before training and at the optimum."""

    before: tuple[Floats, Floats]  # mean and deviation of f
    after: tuple[Floats, Floats]
    theta: Theta
    data_precision: float  # median of g·κ; NaN for all Gaussians

    @property
    def roughness(self) -> float:
        """Mean square second difference of the mean after training."""
        return float(np.mean(np.diff(self.after[0], 2) ** 2))

    @property
    def logs(self) -> dict[str, float]:
        """Logarithms of σ², ℓ and the noise variance."""
        kernel, noise = self.theta.kernel, self.theta.likelihood.noise_variance
        named = {"σ²": kernel.variance, "ℓ": kernel.lengthscales, "noise": noise}
        return {name: float(np.log(np.ravel(value)[0])) for name, value in named.items()}


@cache
def fitted(data: str, family: str) -> Fit:
    """Fit a family to nine tenths of a data set, with q and θ at the optimum."""
    run = trainer(data, family)
    before = of_f(run)
    trained = run.run()
    state, precision = trained.q, float("nan")
    if isinstance(state, DiagonalState):
        precision = float(np.median(state.g) * trained.theta.kernel.variance[0])
    return Fit(before, of_f(run), trained.theta, precision)


def trainer(data: str, family: str) -> Trainer:
    """Build the trainer of a family on a data set, with the grid as test inputs."""
    config = CellConfig(
        experiment="figure 4.8",
        data=DataConfig(name=data, standardise_x=False, standardise_y=False),
        split=SplitConfig(kind="random", test_fraction=0.1),
        kernel=KernelConfig(name="se", ard=False, lengthscale=0.1),
        likelihood=LikelihoodConfig.model_validate({"name": "gaussian", "noise_variance": 0.1}),
        inducing=InducingConfig(count=POINTS.get(data, 50)),
        training=TRAINING.model_copy(update={"learn": LEARN}) if family == FREE else TRAINING,
        method=METHODS[family],
        backend=BackendConfig(name="numpy"),
    )
    dataset = load_data(config.data)
    rows = prepare_data(config, dataset)
    model = build_model(config, dataset)
    method = build_method(config.method.name, config.method.options)
    theta = initial_theta(config, model, rows.X_train, rows.y_train)
    theta = theta._replace(inducing=initial_inducing(config, model, method, theta, rows.X_train))
    seen = TrainingData(rows.X_train, rows.y_train, X, np.zeros(len(X)))
    return trainer_class(method)(load_backend("numpy"), model, method, seen, theta, config.training)


def of_f(run: Trainer) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of f on the grid at the current state of a run."""
    (batch,) = run.batches.test_chunks(run.state.raw.inducing)
    predicted = run.steps.predict(run.state.raw, run.state.prior, run.state.q, batch)
    _, mean, variance = tree_map(run.ops.to_numpy, predicted)
    noise = float(np.asarray(run.theta(run.state).likelihood.noise_variance))
    return mean, np.sqrt(variance - noise)


def mean_and_hyperparameters() -> pd.DataFrame:
    """Return by how much the statements of claim 15 fail at the optima; 0 where they hold."""
    return pd.DataFrame([*_of_samples(), *_of_the_sinusoid()])


def _of_samples() -> Iterator[dict[str, Any]]:
    for data in SAMPLES:
        full, diagonal = fitted(data, FULL), fitted(data, DIAGONAL)
        smoother = max(0.0, 1.0 - diagonal.roughness / full.roughness)
        yield {"check": "rougher mean", "data": data, "residual": smoother}
        for name in ("σ²", "ℓ"):
            above = max(0.0, diagonal.logs[name] - full.logs[name] + REGION)
            yield {"check": f"smaller {name}", "data": data, "residual": above}


def _of_the_sinusoid() -> Iterator[dict[str, Any]]:
    truth = sum_of_sinusoids(X[:, 0])
    for family, check in (
        (FULL, "band of all Gaussians"),
        (DIAGONAL, "band of O(M)"),
        (FREE, "band, Z learned"),
    ):
        mean, deviation = fitted(SINUSOID, family).after
        covered = float(np.mean(np.abs(truth - mean) <= TWO_DEVIATIONS * deviation))
        yield {"check": check, "data": SINUSOID, "residual": max(0.0, 0.9 - covered)}


def bias_and_mechanism() -> pd.DataFrame:
    """Return the median of g·κ for claim 17: the precision that data add to the prior's at a point of Z."""
    rows: Rows = []
    for data in (*SAMPLES, SINUSOID):
        fit = fitted(data, DIAGONAL)
        rows.append({"check": "median g·κ", "data": data, "residual": fit.data_precision})
    return pd.DataFrame(rows)


def predictions() -> pd.DataFrame:
    """Return Figures 4.8 and 2.1, mean of f and its band: one row per point, with its curve and panel."""
    return pd.concat(
        [
            _curves(f"{title}, {family}", fit)
            for data, title in ((SINUSOID, "sinusoid"), (SAMPLES[0], "GP sample"))
            for family in (FULL, DIAGONAL)
            for fit in (fitted(data, family),)
        ],
        ignore_index=True,
    )


def _curves(panel: str, fit: Fit) -> pd.DataFrame:
    found = []
    for when, (mean, deviation) in (("before", fit.before), ("after", fit.after)):
        for edge, shift in (("", 0.0), (", band", -TWO_DEVIATIONS), (", band", TWO_DEVIATIONS)):
            y = mean + shift * deviation
            gap = pd.DataFrame({"x": [np.nan], "y": [np.nan]})
            curve = pd.concat([pd.DataFrame({"x": X[:, 0], "y": y}), gap])
            found.append(curve.assign(panel=panel, curve=f"{when}{edge}"))
    return pd.concat(found)
