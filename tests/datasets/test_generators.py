"""Generated data are those of their formulas, and the same numbers on every machine."""

from __future__ import annotations

import numpy as np
import pytest

from svgpbench_datasets import REGISTRY
from svgpbench_datasets.generators import (
    DEVIATION,
    GENERATORS,
    HALF_WIDTH,
    THRESHOLDED_DEVIATION,
    gp_sample,
    noisy_sinc,
    sinc,
    sinusoid,
    sum_of_sinusoids,
    thresholded_sinc,
)

GENERATED = [name for name in REGISTRY.names() if REGISTRY.describe(name).generated]


@pytest.mark.parametrize(
    ("name", "fingerprint"),
    [
        ("thesis-sinusoid", "a5d5aee489281ddaaa57ed4d718ca8495b9b1f712aebf1d38b4a95742aceac66"),
        ("thesis-sinusoid:300", "578a980fd93f604fdfe8c7ea49b4981fe539b7f1274564c65d9b7771012e1e59"),
        ("thesis-gp-sample", "f16f05702f998e666e1a90c398cef5d609533c256629e7847fd1a16eb48b87e5"),
        ("3droad-stand-in", "defdd24fb5c04996cc07edd407d82967f46923ecc238b0bca4af495eeb139b03"),
        (
            "3droad-stand-in:no-road",
            "a9b1216939a1acd5ade730759e0117b11be7dbe03653c7f88c9ac8557f396fde",
        ),
        (
            "3droad-stand-in:few",
            "9bb8a5967bfec3641a0b3cf47084f61a8c0e9ddf428ba54e658d28b3c6e9cd02",
        ),
    ],
)
def test_the_numbers_are_those_of_the_seed(name: str, fingerprint: str) -> None:
    assert REGISTRY.load(name).fingerprint == f"sha256:{fingerprint}"


@pytest.mark.parametrize("name", GENERATED)
def test_no_target_lies_where_rounding_could_go_either_way(name: str) -> None:
    entry = REGISTRY.describe(name)
    assert entry.generated
    generator = GENERATORS[entry.generated.name]
    _, y = generator.draw(entry.rows, entry.generated.seed)
    units = y * 10.0**generator.decimals
    from_a_tie = np.min(np.abs(units - np.floor(units) - 0.5)) / 10.0**generator.decimals
    # a sine is good to 1e-16, the Cholesky factor and the terrain here to 1e-12
    assert from_a_tie > 1e-10


def test_sinusoid_is_the_formula_with_noise_of_variance_001() -> None:
    X, y = sinusoid(20_000, 3)
    x = X[:, 0]
    f = np.sin(3 * np.pi * x) + 0.3 * np.cos(9 * np.pi * x) + 0.5 * np.sin(7 * np.pi * x)
    assert np.mean(y - f) == pytest.approx(0.0, abs=0.003)
    assert np.var(y - f) == pytest.approx(0.01, rel=0.04)
    assert -1.0 <= x.min() < -0.999
    assert 0.999 < x.max() <= 1.0
    assert np.mean(x) == pytest.approx(0.0, abs=0.02)


def test_gp_sample_has_the_variance_and_the_lengthscale_of_its_kernel() -> None:
    """Products of pairs, by distance, against k(r) = 0.5 exp(−r²/0.02): 40 draws of 300 points."""
    pairs: dict[float, list[float]] = {0.03: [], 0.1: [], 0.2: []}
    squares = []
    for seed in range(40):
        X, y = gp_sample(300, seed)
        r, product = np.abs(X - X.T), np.outer(y, y)
        squares.append(np.mean(y**2))
        for distance, found in pairs.items():
            found.append(float(np.mean(product[np.abs(r - distance) < 0.005])))
    assert np.mean(squares) == pytest.approx(0.51, abs=0.06)
    for distance, found in pairs.items():
        assert np.mean(found) == pytest.approx(0.5 * np.exp(-(distance**2) / 0.02), abs=0.06)


def test_another_seed_gives_other_numbers() -> None:
    for generator in GENERATORS.values():
        assert not np.allclose(generator.draw(20, 0)[1], generator.draw(20, 1)[1])


@pytest.mark.parametrize(("name", "noise"), [("1e-1", 0.1), ("1e-2", 0.01), ("1e-3", 0.001)])
def test_the_grid_has_the_sinusoid_with_other_noise(name: str, noise: float) -> None:
    X, y = GENERATORS[f"sinusoid-noise-{name}"].draw(20_000, 3)
    assert np.var(y - sum_of_sinusoids(X[:, 0])) == pytest.approx(noise, rel=0.04)


def test_sinc_is_its_formula_and_noise() -> None:
    x, y = sinc(20_000, 1)
    assert x.shape == (20_000, 1) and np.abs(x).max() <= HALF_WIDTH
    noise = y - np.sin(np.pi * x[:, 0]) / (np.pi * x[:, 0])
    assert abs(noise.mean()) < 4 * DEVIATION / np.sqrt(20_000)
    assert abs(noise.std() / DEVIATION - 1.0) < 4 / np.sqrt(2 * 20_000)
    assert abs(np.corrcoef(noise, y - noise)[0, 1]) < 0.03


def test_the_thresholded_sinc_is_its_formula_and_noise() -> None:
    x, noisy = noisy_sinc(20_000, 1)
    assert (
        x.shape == noisy.shape == (20_000, 1) and -1.0 <= x.min() < -0.999 < 0.999 < x.max() < 1.0
    )
    noise = noisy - np.sin(12 * x) / x
    assert abs(noise.mean()) < 4 * THRESHOLDED_DEVIATION / np.sqrt(20_000)
    assert abs(noise.std() / THRESHOLDED_DEVIATION - 1.0) < 4 / np.sqrt(2 * 20_000)
    again, label = thresholded_sinc(20_000, 1)
    assert np.array_equal(again, x)
    assert np.array_equal(label, np.where(noisy[:, 0] > 0, 1.0, 0.0))


def test_the_authors_draw_is_pinned_balanced_and_far_from_the_threshold() -> None:
    dataset = REGISTRY.load("thresholded-sinc")
    x, noisy = noisy_sinc(100, 123)
    assert np.array_equal(dataset.X, x)
    assert np.array_equal(dataset.y == 1.0, noisy[:, 0] > 0)
    assert (dataset.y.sum(), dataset.class_labels) == (53.0, ("0", "1"))
    assert np.abs(noisy).min() > 0.04  # a sine is good to 1e-16
    # the first number of NumPy's legacy generator at seed 123, printed in many places
    assert x[0, 0] == 2 * 0.6964691855978616 - 1
    assert (
        dataset.fingerprint
        == "sha256:e6df20882f653359c8d0c4274c6b4e53cefed41b5fc0ebdd0b332f96a1101a0d"
    )
