"""The noisy sinc of Cheng and Boots 2017, Figure 1, by seed.

The figure's data are 500 observations. Its inputs, noise and scale are not printed; here x is uniform on
[−5, 5], y = sin(πx)/(πx) plus noise of standard deviation 0.1.
"""

from __future__ import annotations

import numpy as np

from svgpbench_datasets.dataset import Floats

HALF_WIDTH, DEVIATION = 5.0, 0.1


def sinc(rows: int, seed: int) -> tuple[Floats, Floats]:
    """Draw y = sin(πx)/(πx) + noise.

    Args:
        rows: N.
        seed: a whole number from 0.

    Returns:
        x [N, 1] and y [N], not yet rounded.
    """
    rng = np.random.default_rng(seed)
    x = rng.uniform(-HALF_WIDTH, HALF_WIDTH, rows)
    return x[:, None], np.sinc(x) + DEVIATION * rng.standard_normal(rows)
