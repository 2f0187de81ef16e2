"""Generated data sets, by seed: the synthetic problems of Kobe 2021, Sec. 4.1.3, sinc.py's, roads.py's.

The thesis's inputs are uniform on [−1, 1], its noise has variance 0.01. Targets are rounded: the last bits
of a sine or a Cholesky factor differ among machines, and the fingerprint of a data set may not.

A generator takes the number of rows N and a seed, a whole number from 0; it gives inputs [N, D] and targets
[N], not yet rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from svgpbench_datasets.dataset import Floats
from svgpbench_datasets.generated.roads import roads
from svgpbench_datasets.generated.sinc import sinc, thresholded_sinc

NOISE_VARIANCE = 0.01


def sinusoid(rows: int, seed: int) -> tuple[Floats, Floats]:
    """Draw y = sin(3πx) + 0.3 cos(9πx) + 0.5 sin(7πx) + noise."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, rows)
    waves = [np.sin(3.0 * np.pi * x), 0.3 * np.cos(9.0 * np.pi * x), 0.5 * np.sin(7.0 * np.pi * x)]
    noise = np.sqrt(NOISE_VARIANCE) * rng.standard_normal(rows)
    return x[:, None], np.sum(waves, axis=0) + noise


def gp_sample(rows: int, seed: int) -> tuple[Floats, Floats]:
    """Draw y from a GP with a squared-exponential kernel of lengthscale 0.1, variance 0.5, and noise."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (rows, 1))
    covariance = 0.5 * np.exp(-0.5 * ((x - x.T) / 0.1) ** 2) + NOISE_VARIANCE * np.eye(rows)
    return x, np.linalg.cholesky(covariance) @ rng.standard_normal(rows)


@dataclass(frozen=True)
class Generator:
    """How a data set is drawn."""

    draw: Callable[[int, int], tuple[Floats, Floats]]
    decimals: int = 6  # of the targets


def generate(name: str, rows: int, seed: int) -> tuple[Floats, Floats]:
    """Inputs [N, D] and rounded targets [N] of a generator of `GENERATORS`."""
    generator = GENERATORS[name]
    X, y = generator.draw(rows, seed)
    return X, np.round(y, generator.decimals)


GENERATORS: dict[str, Generator] = {
    "sinusoid": Generator(sinusoid),
    "gp-sample": Generator(gp_sample),
    "sinc": Generator(sinc),
    "thresholded-sinc": Generator(thresholded_sinc),
    "roads": Generator(roads, decimals=3),
}
