"""Which inducing inputs each way of choosing gives, and how they are dealt to two bases."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.cluster.vq import kmeans2
from scipy.spatial.distance import cdist

from svgpbench.backends import load_backend
from svgpbench.config import InducingConfig
from svgpbench.initialization.inducing_inputs import (
    greedy_variance,
    initial_bases,
    initial_inducing_inputs,
    plus_plus,
)
from svgpbench.kernels.bases import Decoupled
from svgpbench.kernels.covariance import Covariance
from svgpbench.kernels.kernels import KernelParameters, kernel

X = np.random.default_rng(0).uniform(-2.0, 2.0, (200, 2))
LINE = np.arange(1000.0)[:, None]


def covariance(lengthscale: float = 0.7) -> Covariance:
    parameters = KernelParameters(np.array([1.7]), np.array([[lengthscale]]))
    return Covariance(load_backend("numpy"), kernel("se"), parameters, 1e-6)


def test_centres_of_k_means_are_the_means_of_what_is_nearest_to_them() -> None:
    centres = initial_inducing_inputs(X, 8, "k-means", 0)
    nearest = cdist(X, centres).argmin(axis=1)
    means = np.stack([X[nearest == at].mean(axis=0) for at in range(8)])
    np.testing.assert_allclose(centres, means, atol=1e-12)


def test_centres_of_k_means_find_clusters_that_are_apart() -> None:
    middles = np.array([[-50.0, 0.0], [0.0, 50.0], [50.0, 0.0], [0.0, -50.0]])
    rows = (middles[:, None] + 0.1 * np.random.default_rng(1).standard_normal((4, 30, 2))).reshape(
        -1, 2
    )
    for seed in range(5):
        found = initial_inducing_inputs(rows, 4, "k-means", seed)
        assert np.max(cdist(middles, found).min(axis=1)) < 0.1


@pytest.mark.parametrize("count", [1, 2, 30])
def test_starts_of_k_means_are_those_of_scipy_bit_by_bit(count: int) -> None:
    rows = np.concatenate([X, X[:40] + 10.0, X[:3]])  # far clusters, and rows twice
    own = plus_plus(rows, count, np.random.default_rng(7))
    ours, _ = kmeans2(rows, own, iter=3, minit="matrix")
    scipys, _ = kmeans2(rows, count, iter=3, minit="++", rng=np.random.default_rng(7))
    np.testing.assert_array_equal(ours, scipys)


def test_a_random_subset_is_of_distinct_rows_of_the_whole() -> None:
    chosen = initial_inducing_inputs(LINE, 400, "random", 0)[:, 0]
    assert len(set(chosen)) == 400
    assert set(chosen) <= set(LINE[:, 0])
    assert 400 < np.mean(chosen) < 600


@pytest.mark.parametrize("init", ["k-means", "greedy-variance"])
def test_of_many_rows_random_ones_are_looked_at(monkeypatch: pytest.MonkeyPatch, init: str) -> None:
    monkeypatch.setattr("svgpbench.initialization.inducing_inputs.MOST_ROWS", 60)
    Z = initial_inducing_inputs(LINE, 20, init, 0, covariance(30.0))[:, 0]
    # as a sample of all: in each quarter some
    assert set(np.digitize(Z, [250.0, 500.0, 750.0])) == {0, 1, 2, 3}
    if init == "greedy-variance":
        others = initial_inducing_inputs(LINE, 20, init, 1, covariance(30.0))[:, 0]
        assert set(others) != set(Z)


def test_up_to_that_many_rows_are_all_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("svgpbench.initialization.inducing_inputs.MOST_ROWS", 200)
    Z = [initial_inducing_inputs(X, 12, "greedy-variance", seed, covariance()) for seed in (0, 1)]
    assert np.array_equal(Z[0], X[greedy_variance(covariance(), X, 12)])
    assert np.array_equal(Z[0], Z[1])  # nothing is drawn


def test_of_greedy_points_the_first_are_those_of_the_covariance() -> None:
    inducing = InducingConfig(count=4, gamma=9, init="greedy-variance")
    bases = initial_bases(X, inducing, 0, covariance())
    order = X[greedy_variance(covariance(), X, 13)]
    assert isinstance(bases, Decoupled)
    assert np.array_equal(bases.beta, order[:4])
    assert np.array_equal(bases.gamma, order[4:])


@pytest.mark.parametrize("init", ["k-means", "random"])
def test_other_points_are_dealt_to_two_bases_at_random(init: str) -> None:
    """The first centres of k-means++ are not like the last: dealt in order, the bases would differ."""
    inducing = InducingConfig(count=6, gamma=9, init=init)
    points = initial_inducing_inputs(X, 15, init, 3)
    bases = initial_bases(X, inducing, 3)
    assert isinstance(bases, Decoupled)
    every = np.concatenate([bases.beta, bases.gamma])
    assert np.array_equal(np.sort(every, axis=0), np.sort(points, axis=0))
    places = [int(np.argmin(cdist([row], points))) for row in bases.beta]
    assert max(places) > 6 and places != sorted(places)


def test_every_seed_deals_its_points_anew() -> None:
    inducing, dealt = InducingConfig(count=6, gamma=9, init="random"), []
    for seed in (3, 4):
        points, bases = (
            initial_inducing_inputs(X, 15, "random", seed),
            initial_bases(X, inducing, seed),
        )
        assert isinstance(bases, Decoupled)
        dealt.append([int(np.argmin(cdist([row], points))) for row in bases.beta])
    assert dealt[0] != dealt[1]


def test_one_basis_is_the_points_themselves() -> None:
    inducing = InducingConfig(count=6, init="random")
    assert np.array_equal(initial_bases(X, inducing, 3), initial_inducing_inputs(X, 6, "random", 3))
