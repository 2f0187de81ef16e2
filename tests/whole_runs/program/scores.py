"""What a trace point says of predictions and of θ."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr

from program.draws import Batch, Data
from program.gaussians import Family
from program.parameters import LIKELIHOOD, Table


def test_scores(family: Family, theta: Table, x: Any, data: Data, rows: Batch) -> Table:
    """Return the scores at the test rows; of regression also in the units of y."""
    likelihood, y = family.likelihood, rows.y
    mu, v = family.marginals(theta, family.q(theta, x), rows.X)
    nlpd = -float(np.mean(likelihood.log_density(theta, y, mu, v, rows.noise)))
    guess = likelihood.guess(theta, mu, v, rows.noise)
    if likelihood.classifies:
        classes = range(max(likelihood.latents, 2))
        chances = [
            np.exp(likelihood.log_density(theta, np.full(len(y), float(c)), mu, v, rows.noise))
            for c in classes
        ]
        return {
            "nlpd": nlpd,
            "error_rate": float(np.mean(guess != y)),
            "brier": squared_distance(chances, y),
            "ece": miscalibration(np.max(chances, axis=0), guess == y),
        }
    rmse = float(np.sqrt(np.mean((guess - y) ** 2)))
    mae = sum(abs(guess - y)) / len(y)
    scores = {
        "nlpd": nlpd,
        "nlpd_original": nlpd + float(np.log(data.y_scale)),
        "rmse": rmse,
        "rmse_original": rmse * data.y_scale,
        "nmse": sum((guess - y) ** 2) / sum((y - y.mean()) ** 2),
        "mae": mae,
        "nmae": sum(abs(guess - y)) / sum(abs(y - y.mean())),
    }
    if likelihood.gaussian:
        scores |= of_gaussians(mu[0], np.sqrt(v[0] + theta["noise_variance"]), y)
    return scores


def squared_distance(chances: Any, y: Any) -> float:
    """Return the mean of (p − y)² for two classes, of its sum over classes for more."""
    squares = [(p - (y == c)) ** 2 for c, p in enumerate(chances)]
    return float(np.mean(squares[1] if len(squares) == 2 else sum(squares[1:], squares[0])))


def miscalibration(chance: Any, right: Any) -> float:
    """Return the sum over fifteen bins of the guess's chance of their weight times their error."""
    total = 0.0
    for low in np.arange(15) / 15:
        inside = (chance > low) & (chance <= low + 1 / 15)
        if inside.any():
            total += inside.mean() * abs(right[inside].mean() - chance[inside].mean())
    return total


def of_gaussians(mean: Any, deviation: Any, y: Any) -> Table:
    """Return E|Y − y| − E|Y − Y'|/2, and the shares of targets below quantiles."""
    gap = mean - y
    tail = np.exp(-0.5 * (gap / deviation) ** 2) * deviation * np.sqrt(2 / np.pi)
    distance = tail + gap * (1 - 2 * ndtr(-gap / deviation))
    below = ndtr((y - mean) / deviation)
    shares = {f"pit_0.{i}": np.mean(below <= i / 10) for i in range(1, 10)}
    crps = float(np.mean(distance - deviation / np.sqrt(np.pi)))
    return {"crps": crps, "coverage": np.mean((below >= 0.025) & (below <= 0.975))} | shares


def in_few_numbers(theta: Table) -> Table:
    """Return kernel and likelihood parameters."""
    lengthscales = np.ravel(theta["lengthscales"])
    numbers = {
        "variance": float(theta["variance"]),
        "lengthscale_min": float(np.min(lengthscales)),
        "lengthscale_mean": float(np.prod(lengthscales) ** (1.0 / len(lengthscales))),
        "lengthscale_max": float(np.max(lengthscales)),
    }
    return numbers | {name: float(theta[name]) for name in LIKELIHOOD if name in theta}


def negative_betas(family: Family, theta: Table, x: Any, rows: Batch) -> int:
    """Count training rows with β < 0 in some latent, before any clipping."""
    mu, v = family.marginals(theta, family.q(theta, x), rows.X)
    _, beta = family.likelihood.raw_gradients(theta, rows.y, mu, v, rows.noise)
    return int(np.sum(np.any(beta < 0.0, axis=0)))
