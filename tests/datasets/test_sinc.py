"""The generated sinc is the stated function with the stated noise, the same for a seed."""

from __future__ import annotations

import numpy as np

from svgpbench_datasets.sinc import DEVIATION, HALF_WIDTH, sinc


def test_sinc_is_its_formula_and_noise() -> None:
    x, y = sinc(20_000, 1)
    assert x.shape == (20_000, 1) and np.abs(x).max() <= HALF_WIDTH
    noise = y - np.sin(np.pi * x[:, 0]) / (np.pi * x[:, 0])
    assert abs(noise.mean()) < 4 * DEVIATION / np.sqrt(20_000)
    assert abs(noise.std() / DEVIATION - 1.0) < 4 / np.sqrt(2 * 20_000)
    assert abs(np.corrcoef(noise, y - noise)[0, 1]) < 0.03


def test_sinc_is_the_same_for_a_seed() -> None:
    first, again, other = sinc(500, 0), sinc(500, 0), sinc(500, 1)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[1], other[1])
