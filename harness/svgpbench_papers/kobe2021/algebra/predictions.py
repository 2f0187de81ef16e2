"""Kobe 2021, Figures 2.1 and 4.8: predictions before and after training, each family at its optimum over θ.

Claims 15 and 17 attribute the rougher mean and the smaller variance to the family of 2M numbers. Here Z is
fixed and the same for both families. θ and q are at the optimum, so that step sizes have no effect.
`after_training` instead has θ where the runs of Figure 4.7 end, which is no optimum with O(M) and with Adam.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
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
from svgpbench.experiments.cell import build_trainer
from svgpbench.kernels import Theta
from svgpbench.methods.diagonal_precision import DiagonalState
from svgpbench.training.blocks import Batch
from svgpbench.training.em import Trainer
from svgpbench.tree import tree_map
from svgpbench_datasets.generators import sum_of_sinusoids
from svgpbench_papers.algebra.random_problems import Floats, positive_part
from svgpbench_papers.kobe2021.algebra.cases import Rows

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
        """Logarithms of σ² and ℓ."""
        named = {"σ²": self.theta.kernel.variance, "ℓ": self.theta.kernel.lengthscales}
        return {name: float(np.log(np.ravel(value)[0])) for name, value in named.items()}


@cache
def fitted(data: str, family: str) -> Fit:
    """Fit a family to nine tenths of a data set, with q and θ at the optimum."""
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
    trainer, _ = build_trainer(config)
    before = predictions_of_f(trainer)
    trained = trainer.run()
    state, precision = trained.q, float("nan")
    if isinstance(state, DiagonalState):
        precision = float(np.median(state.g) * trained.theta.kernel.variance[0])
    return Fit(before, predictions_of_f(trainer), trained.theta, precision)


TRAINED = Path(__file__).parents[1] / "trained.csv"
"""θ and bound at the end of the runs of Figure 4.7, copied from the records by `docs/_build/listings.py`."""

HELD = TrainingConfig(em_iterations=1, e_steps=60, e_rate=0.5, m_steps=0, learn=())
PATHS = {"NGD": METHODS[FULL], "Adam": METHODS[FULL], "O(M)": METHODS[DIAGONAL]}
"""Family whose best q at the θ of a run is shown, by the label of the run's method in Figure 4.7."""


def median_run(method: str) -> pd.Series[Any]:
    """Return θ, start and bound of the run with the median bound of the first split."""
    runs = pd.read_csv(TRAINED)
    of_method = runs[(runs["method"] == method) & (runs["split_seed"] == 0)].sort_values("elbo")
    return of_method.iloc[(len(of_method) - 1) // 2]


@cache
def at_the_end(method: str) -> tuple[Floats, Floats, float]:
    """Return mean and deviation of f, and the bound, at the θ where the median run ended, with the best q.

    The projected step of O(M) settles at another q, whose bound is lower; its mean is about as rough.
    """
    run = median_run(method)
    variance, lengthscale = float(run["variance"]), float(run["lengthscale"])
    noise = {"name": "gaussian", "noise_variance": float(run["noise_variance"])}
    config = CellConfig(
        experiment="figure 4.8",
        data=DataConfig(name=SAMPLES[0], standardise_x=False, standardise_y=False),
        split=SplitConfig(kind="random", test_fraction=0.1),
        kernel=KernelConfig(name="se", ard=False, variance=variance, lengthscale=lengthscale),
        likelihood=LikelihoodConfig.model_validate(noise),
        inducing=InducingConfig(count=50),
        training=HELD,
        method=PATHS[method],
        backend=BackendConfig(name="numpy"),
        seed=int(run["seed"]),
        jitter=1e-10,
    )
    trainer, _ = build_trainer(config)
    bound = trainer.run().trace[-1]["elbo"]
    assert bound is not None  # a plausible θ has one
    return *predictions_of_f(trainer), float(bound)


def predictions_of_f(trainer: Trainer) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of f on the grid at the current state of a trainer."""
    state, grid = trainer.state, Batch(X, np.zeros(len(X)), np.arange(len(X)))
    predicted = trainer.steps.predict(state.raw, state.prior, state.q, grid)
    _, mean, variance = tree_map(trainer.ops.to_numpy, predicted)
    noise = float(np.asarray(trainer.theta(state).likelihood.noise_variance))
    # predictions are of y, whose variance has the noise
    return mean, np.sqrt(variance - noise)


def mean_and_hyperparameters() -> pd.DataFrame:
    """Return by how much the statements of claim 15 fail at the optima; 0 where they hold."""
    rows: Rows = []
    for data in SAMPLES:
        full, diagonal = fitted(data, FULL), fitted(data, DIAGONAL)
        smoother = positive_part(1.0 - diagonal.roughness / full.roughness)
        rows.append({"check": "rougher mean", "data": data, "residual": smoother})
        for name in full.logs:
            above = positive_part(diagonal.logs[name] - full.logs[name] + REGION)
            rows.append({"check": f"smaller {name}", "data": data, "residual": above})
    truth = sum_of_sinusoids(X[:, 0])
    for family, check in (
        (FULL, "band of all Gaussians"),
        (DIAGONAL, "band of O(M)"),
        (FREE, "band, Z learned"),
    ):
        mean, deviation = fitted(SINUSOID, family).after
        covered = float(np.mean(np.abs(truth - mean) <= TWO_DEVIATIONS * deviation))
        rows.append({"check": check, "data": SINUSOID, "residual": positive_part(0.9 - covered)})
    return pd.DataFrame(rows)


def bias_and_mechanism() -> pd.DataFrame:
    """Return the median of g·κ for claim 17: the precision that data add to the prior's at a point of Z."""
    return pd.DataFrame(
        {"check": "median g·κ", "data": data, "residual": fitted(data, DIAGONAL).data_precision}
        for data in (*SAMPLES, SINUSOID)
    )


def after_training() -> pd.DataFrame:
    """Return Figure 4.8 at the θ where the runs of Figure 4.7 end, in rows as those of `predictions`."""
    return pd.concat(
        [
            curve.assign(panel=f"GP sample, {method}")
            for method in PATHS
            for curve in _mean_and_band(*at_the_end(method)[:2], "after training")
        ],
        ignore_index=True,
    )


def _mean_and_band(mean: Floats, deviation: Floats, name: str) -> Iterator[pd.DataFrame]:
    """Yield the curves of a prediction; NaN ends each."""
    for factor in (0.0, -TWO_DEVIATIONS, TWO_DEVIATIONS):
        x, y = np.append(X[:, 0], np.nan), np.append(mean + factor * deviation, np.nan)
        title = f"{name}, band" if factor else name
        yield pd.DataFrame({"x": x, "y": y}).assign(curve=title)


def predictions() -> pd.DataFrame:
    """Return Figures 4.8 and 2.1: a row for each point, with its curve and panel; NaN ends a curve."""
    curves = []
    for data, title in ((SINUSOID, "sinusoid"), (SAMPLES[0], "GP sample")):
        for family in (FULL, DIAGONAL):
            fit = fitted(data, family)
            for when, (mean, deviation) in (("before", fit.before), ("after", fit.after)):
                for curve in _mean_and_band(mean, deviation, when):
                    curves.append(curve.assign(panel=f"{title}, {family}"))
    return pd.concat(curves, ignore_index=True)
