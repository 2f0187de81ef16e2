"""Cheng and Boots 2017, Figure 1: a decoupled posterior beside two coupled ones on noisy sinc.

The paper prints 500 points and no basis sizes. Here |β| = 10 and |α| = 100 points are evenly spaced, and the
coupled models have 10 and 100 points. Each model is at its optimum, at the θ that is best for the large
model or for itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd

from svgpbench.checks.cases import small_problem
from svgpbench.papers.algebra.random_problems import SEEDS, Floats
from svgpbench.papers.cheng2017.algebra.variances import At, Sinc, learned
from svgpbench_datasets.generated.generators import DEVIATION, HALF_WIDTH
from svgpbench_datasets.generated.generators import sinc as noisy_sinc

N, SMALL, LARGE = 500, 10, 100
SIZES = {
    "small coupled": (SMALL, SMALL),
    "decoupled": (LARGE, SMALL),
    "large coupled": (LARGE, LARGE),
}
"""Numbers of points of α and of β."""
LIKE = "large coupled"
THETAS = ("same theta", "own theta")
START = np.log([0.3, 0.7, 0.01])
GRID = np.linspace(-HALF_WIDTH, HALF_WIDTH, 201)[:, None]


class PosteriorOnGrid(NamedTuple):
    """Mean and variance of q(f) on the grid."""

    mean: Floats  # [201]
    variance: Floats  # [201]


def problem(seed: int, model: str) -> Sinc:
    """Draw the data, with the bases of a model; seed 0 is the data set `sinc`."""
    X, y = noisy_sinc(N, seed)
    gamma, Z = (np.linspace(-HALF_WIDTH, HALF_WIDTH, M)[:, None] for M in SIZES[model])
    return Sinc(**{**vars(small_problem()), "X": X, "y": y, "Z": Z, "gamma": gamma}, logs=START)


@cache
def best_theta(seed: int, model: str) -> Sinc:
    """Return the problem at the θ that is best for a model at its optimum."""
    return learned(problem(seed, model), exact=False)


@cache
def posterior(seed: int, model: str, theta: str) -> PosteriorOnGrid:
    """Return the posterior of a model at its optimum, at the large model's θ or at its own."""
    logs = best_theta(seed, LIKE if theta == "same theta" else model).logs
    at = At(replace(problem(seed, model), logs=logs))
    return PosteriorOnGrid(at.mean(at.best, GRID), at.variance(at.best, GRID))


def beside_large() -> pd.DataFrame:
    """Compare means and variances with those of the large model, for five draws of the data."""
    rows = [
        {"seed": seed, "check": f"{check}, {theta}", "residual": residual}
        for seed, theta in itertools.product(SEEDS, THETAS)
        for check, residual in _checks(seed, theta)
    ]
    return pd.DataFrame(rows)


def _checks(seed: int, theta: str) -> Iterator[tuple[str, float]]:
    small, decoupled, large = (posterior(seed, model, theta) for model in SIZES)
    off = {
        name: float(np.sqrt(np.mean((q.mean - large.mean) ** 2)))
        for name, q in (("small", small), ("decoupled", decoupled))
    }
    yield "decoupled mean, as a share of small's distance", off["decoupled"] / off["small"]
    yield "small mean, in deviations of the noise", off["small"] / DEVIATION
    correlation = np.corrcoef(decoupled.variance, large.variance)[0, 1]
    yield "decoupled variance, 1 - correlation", float(1.0 - correlation)


def curves() -> pd.DataFrame:
    """Return mean and standard deviation of the three models on the data set, each at its own θ."""
    rows = [
        {"x": float(x), "y": float(y), "curve": model, "panel": panel}
        for model in SIZES
        for panel, values in _panels(posterior(0, model, "own theta")).items()
        for x, y in zip(GRID[:, 0], values, strict=True)
    ]
    return pd.DataFrame(rows)


def _panels(q: PosteriorOnGrid) -> dict[str, Floats]:
    return {"mean": q.mean, "standard deviation": np.sqrt(q.variance)}
