"""Noisy sincs by seed: that of Cheng and Boots 2017, Figure 1, and that of Adam et al. 2021, thresholded.

The first figure's data are 500 observations. Their inputs, noise and scale are not printed; here x is uniform
on [−5, 5], y = sin(πx)/(πx) plus noise of standard deviation 0.1.

The second paper (Figures 1 and 2, n = 100) prints no formula. Its authors' notebook classification_1D has
one, with the seed 123 of NumPy's legacy generator, whose numbers NumPy keeps as they are for good.
"""

from __future__ import annotations

import numpy as np

from svgpbench_datasets.dataset import Floats

HALF_WIDTH, DEVIATION = 5.0, 0.1
THRESHOLDED_DEVIATION = 0.2


def sinc(rows: int, seed: int) -> tuple[Floats, Floats]:
    """Draw y = sin(πx)/(πx) + noise: x [N, 1] and y [N], not yet rounded."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-HALF_WIDTH, HALF_WIDTH, rows)
    return x[:, None], np.sinc(x) + DEVIATION * rng.standard_normal(rows)


def thresholded_sinc(rows: int, seed: int) -> tuple[Floats, Floats]:
    """Draw whether sin(12x)/x + noise is above 0: x [N, 1] and the class [N].

    100 rows of the seed 123 are the authors' own draw.
    """
    x, noisy = noisy_sinc(rows, seed)
    return x, (noisy[:, 0] > 0.0).astype(np.float64)


def noisy_sinc(rows: int, seed: int) -> tuple[Floats, Floats]:
    """The inputs of `thresholded_sinc` and what is compared with 0, both [N, 1]."""
    rng = np.random.RandomState(seed)
    x = 2.0 * rng.rand(rows, 1) - 1.0
    return x, np.sin(12.0 * x) / x + THRESHOLDED_DEVIATION * rng.randn(rows, 1)
