"""Data sets drawn from a seed: synthetic problems of Kobe 2021, noisy sincs, and the roads of `roads.py`.

Kobe 2021, Sec. 4.1.3: inputs are uniform on [−1, 1] and the noise variance is 0.01; the grid of Sec. 4.2.2
also has 0.1 and 0.001. Targets are rounded, because the last bits of a sine or a Cholesky factor differ
among machines, while the fingerprint of a data set must not.

Cheng and Boots 2017, Figure 1: the paper prints neither inputs nor noise nor scale of its 500 observations.
Here x is uniform on [−5, 5], and y = sin(πx)/(πx) plus noise of standard deviation 0.1.

Adam et al. 2021, Figures 1 and 2 (n = 100): the formula is that of their notebook classification_1D, with
seed 123 of NumPy's legacy generator, whose numbers NumPy guarantees not to change.

A generator takes the number of rows N and a seed, a non-negative integer. It returns inputs [N, D] and
targets [N], not yet rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from svgpbench_datasets.dataset import Floats
from svgpbench_datasets.roads import roads

NOISE_VARIANCE = 0.01
HALF_WIDTH, DEVIATION = 5.0, 0.1
THRESHOLDED_DEVIATION = 0.2


def sinusoid(rows: int, seed: int, noise_variance: float = NOISE_VARIANCE) -> tuple[Floats, Floats]:
    """Draw y = sin(3πx) + 0.3 cos(9πx) + 0.5 sin(7πx) + noise."""
    rng = np.random.default_rng(seed)
    # the order of the draws is a part of the data set: noise first would give another fingerprint
    x = rng.uniform(-1.0, 1.0, rows)
    noise = np.sqrt(noise_variance) * rng.standard_normal(rows)
    return x[:, None], sum_of_sinusoids(x) + noise


def sum_of_sinusoids(x: Floats) -> Floats:
    """Return sin(3πx) + 0.3 cos(9πx) + 0.5 sin(7πx), shaped as x (Kobe 2021, Sec. 4.1.3)."""
    waves = [np.sin(3.0 * np.pi * x), 0.3 * np.cos(9.0 * np.pi * x), 0.5 * np.sin(7.0 * np.pi * x)]
    return np.asarray(np.sum(waves, axis=0))


def gp_sample(rows: int, seed: int) -> tuple[Floats, Floats]:
    """Draw y from a GP with a squared-exponential kernel of lengthscale 0.1, variance 0.5, and noise."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (rows, 1))
    # every eigenvalue is at least the noise variance, so the factor exists without jitter
    covariance = 0.5 * np.exp(-0.5 * ((x - x.T) / 0.1) ** 2) + NOISE_VARIANCE * np.eye(rows)
    return x, np.linalg.cholesky(covariance) @ rng.standard_normal(rows)


def sinc(rows: int, seed: int) -> tuple[Floats, Floats]:
    """Draw y = sin(πx)/(πx) + noise: x [N, 1] and y [N], not yet rounded."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-HALF_WIDTH, HALF_WIDTH, rows)
    # np.sinc is 1 at x = 0, where the quotient sin(πx)/(πx) is NaN
    return x[:, None], np.sinc(x) + DEVIATION * rng.standard_normal(rows)


def thresholded_sinc(rows: int, seed: int) -> tuple[Floats, Floats]:
    """Draw x [N, 1] and the class [N]: 1 if sin(12x)/x + noise is above 0, else 0.

    With 100 rows and seed 123 it is the authors' own draw.
    """
    x, noisy = noisy_sinc(rows, seed)
    return x, (noisy[:, 0] > 0.0).astype(np.float64)


def noisy_sinc(rows: int, seed: int) -> tuple[Floats, Floats]:
    """Draw the inputs of `thresholded_sinc` and the noisy values compared with 0, both [N, 1]."""
    rng = np.random.RandomState(seed)
    x = 2.0 * rng.rand(rows, 1) - 1.0
    return x, np.sin(12.0 * x) / x + THRESHOLDED_DEVIATION * rng.randn(rows, 1)


class Generator(NamedTuple):
    """Function that draws a data set, and the number of decimals of its targets."""

    draw: Callable[[int, int], tuple[Floats, Floats]]
    decimals: int = 6  # to which targets are rounded


def generate(name: str, rows: int, seed: int) -> tuple[Floats, Floats]:
    """Draw inputs [N, D] and rounded targets [N] with a generator of `GENERATORS`."""
    generator = GENERATORS[name]
    X, y = generator.draw(rows, seed)
    return X, np.round(y, generator.decimals)


GENERATORS: dict[str, Generator] = {
    "sinusoid": Generator(sinusoid),
    "sinusoid-noise-1e-1": Generator(partial(sinusoid, noise_variance=0.1), decimals=4),
    "sinusoid-noise-1e-2": Generator(sinusoid, decimals=4),
    "sinusoid-noise-1e-3": Generator(partial(sinusoid, noise_variance=0.001), decimals=4),
    "gp-sample": Generator(gp_sample),
    "sinc": Generator(sinc),
    "thresholded-sinc": Generator(thresholded_sinc),
    "roads": Generator(roads, decimals=3),
}
