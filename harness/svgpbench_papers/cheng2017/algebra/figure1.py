"""Cheng and Boots 2017, Figure 1: a decoupled posterior beside two coupled ones on noisy sinc.

The paper prints 500 points and no basis sizes. Here |β| = 10 and |α| = 100 points are evenly spaced, and the
coupled models have 10 and 100 points. Each model is at its optimum, at the θ that is best for the large
model or for itself.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd

from svgpbench_datasets.generators import DEVIATION, HALF_WIDTH
from svgpbench_datasets.generators import sinc as noisy_sinc
from svgpbench_papers.algebra.random_problems import SEEDS, Floats
from svgpbench_papers.cheng2017.algebra.variances import DecoupledModel, Sinc, learned

N, SMALL, LARGE = 500, 10, 100
SIZES = {
    "small coupled": (SMALL, SMALL),
    "decoupled": (LARGE, SMALL),
    "large coupled": (LARGE, LARGE),
}
"""Numbers of points of α and of β."""
LIKE = "large coupled"
START = np.log([0.3, 0.7, 0.01])
GRID = np.linspace(-HALF_WIDTH, HALF_WIDTH, 201)[:, None]


def problem(seed: int, model: str) -> Sinc:
    """Draw the data, with the bases of a model; seed 0 is the data set `sinc`."""
    X, y = noisy_sinc(N, seed)
    gamma, Z = (np.linspace(-HALF_WIDTH, HALF_WIDTH, M)[:, None] for M in SIZES[model])
    return Sinc.build(X, y, Z, gamma, START)


@cache
def best_theta(seed: int, model: str) -> Sinc:
    """Return the problem at the θ that is best for a model at its optimum."""
    return learned(problem(seed, model), exact=False)


@cache
def posterior(seed: int, model: str, theta: str) -> tuple[Floats, Floats]:
    """Return mean and variance [201] of a model at its optimum, at the large model's θ or at its own."""
    logs = best_theta(seed, LIKE if theta == "same theta" else model).logs
    decoupled = DecoupledModel(replace(problem(seed, model), logs=logs))
    return decoupled.marginals(decoupled.best, GRID)


def beside_large() -> pd.DataFrame:
    """Compare means and variances with those of the large model, for five draws of the data."""
    rows = []
    for seed in SEEDS:
        for theta in ("same theta", "own theta"):
            posteriors = [posterior(seed, model, theta) for model in SIZES]
            (mean_small, _), (mean, variance), (mean_large, variance_large) = posteriors
            distance_small, distance = (
                float(np.sqrt(np.mean((x - mean_large) ** 2))) for x in (mean_small, mean)
            )
            correlation = np.corrcoef(variance, variance_large)[0, 1]
            residuals = {
                "decoupled mean, as a share of small's distance": distance / distance_small,
                "small mean, in deviations of the noise": distance_small / DEVIATION,
                "decoupled variance, 1 - correlation": float(1.0 - correlation),
            }
            rows += [
                {"seed": seed, "check": f"{check}, {theta}", "residual": residual}
                for check, residual in residuals.items()
            ]
    return pd.DataFrame(rows)


def curves() -> pd.DataFrame:
    """Return mean and standard deviation of the three models on the data set, each at its own θ."""
    rows = []
    for model in SIZES:
        mean, variance = posterior(0, model, "own theta")
        for panel, values in (("mean", mean), ("standard deviation", np.sqrt(variance))):
            rows += [
                {"x": float(x), "y": float(y), "curve": model, "panel": panel}
                for x, y in zip(GRID[:, 0], values, strict=True)
            ]
    return pd.DataFrame(rows)
