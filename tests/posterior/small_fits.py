"""Small tables to fit, a short training, and the training loop without the fit around it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from svgpbench.backends import load_backend
from svgpbench.config import InducingConfig, TrainingConfig
from svgpbench.initialization.inducing_inputs import initial_bases
from svgpbench.kernels import Model, Theta
from svgpbench.kernels.kernels import KernelParameters, kernel
from svgpbench.likelihoods import Likelihood
from svgpbench.methods import build_method
from svgpbench.training.batches import TrainingData
from svgpbench.training.em import Trainer
from svgpbench.tree import tree_map

QUICK = {"em_iterations": 4, "e_steps": 1, "m_steps": 3, "m_rate": 0.05, "until": "limit"}


def regression(n: int = 80) -> tuple[pd.DataFrame, pd.Series[float]]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"left": rng.normal(3.0, 2.0, n), "right": rng.uniform(0.0, 9.0, n)})
    y = pd.Series(40.0 + 5.0 * np.sin(X["left"]) + 0.1 * rng.normal(size=n), name="height")
    return X, y


def classes(n: int = 90) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.str_]]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 2))
    y = np.array(["ash", "elm", "oak"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    return X, y


def trained_loop(
    X: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
    likelihood: Likelihood,
    *,
    inducing: int,
    method: str = "t-svgp",
    of_kernel: str = "matern52",
    training: dict[str, Any] = QUICK,
    seed: int = 0,
    jitter: float = 1e-6,
) -> Trainer:
    """Return the training loop after its run in this process, on inputs in standard units."""
    ops, model = load_backend("numpy"), Model(kernel(of_kernel), likelihood, jitter)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    parameters = tree_map(np.float64, likelihood.initial_parameters())
    theta = Theta(KernelParameters(np.ones(1), np.ones((1, 2))), parameters, ())
    Z = initial_bases(X, InducingConfig(count=inducing), seed, model.covariance(ops, theta))
    theta, data = theta._replace(inducing=Z), TrainingData(X, y, X, y)
    settings = TrainingConfig.model_validate(training)
    trainer = Trainer(ops, model, build_method(method, {}), data, theta, settings, seed)
    trainer.run()
    return trainer
