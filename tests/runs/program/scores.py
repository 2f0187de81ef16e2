"""What a trace point says of predictions and of θ."""

from __future__ import annotations

from typing import Any

import numpy as np

from program.draws import Batch, Data
from program.gaussians import Family
from program.parameters import LIKELIHOOD, Table


def test_scores(family: Family, theta: Table, x: Any, data: Data, rows: Batch) -> Table:
    """NLPD and error at the test rows; of regression also in the units of y."""
    likelihood = family.likelihood
    mu, v = family.marginals(theta, family.q(theta, x), rows.X)
    nlpd = -float(np.mean(likelihood.log_density(theta, rows.y, mu, v, rows.noise)))
    guess = likelihood.guess(theta, mu, v, rows.noise)
    if likelihood.classifies:
        return {"nlpd": nlpd, "error_rate": float(np.mean(guess != rows.y))}
    rmse = float(np.sqrt(np.mean((guess - rows.y) ** 2)))
    return {
        "nlpd": nlpd,
        "nlpd_original": nlpd + float(np.log(data.y_scale)),
        "rmse": rmse,
        "rmse_original": rmse * data.y_scale,
    }


def in_few_numbers(theta: Table) -> Table:
    """Kernel and likelihood parameters."""
    lengthscales = np.ravel(theta["lengthscales"])
    numbers = {
        "variance": float(theta["variance"]),
        "lengthscale_min": float(np.min(lengthscales)),
        "lengthscale_mean": float(np.prod(lengthscales) ** (1.0 / len(lengthscales))),
        "lengthscale_max": float(np.max(lengthscales)),
    }
    return numbers | {name: float(theta[name]) for name in LIKELIHOOD if name in theta}


def negative_betas(family: Family, theta: Table, x: Any, rows: Batch) -> int:
    """Training rows with β < 0 in some latent, before any clipping."""
    mu, v = family.marginals(theta, family.q(theta, x), rows.X)
    _, beta = family.likelihood.raw_gradients(theta, rows.y, mu, v, rows.noise)
    return int(np.sum(np.any(beta < 0.0, axis=0)))
