"""Where lengthscales, variances and inducing inputs start, against formulas written out."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

from svgpbench.backends import load_backend
from svgpbench.checks.dense import kernel_matrix
from svgpbench.errors import UserError
from svgpbench.initialization.hyperparameters import mean_gaps, median_lengthscale
from svgpbench.initialization.inducing_inputs import greedy_variance, initial_inducing_inputs
from svgpbench.kernels import Theta
from svgpbench.kernels.covariance import Covariance
from svgpbench.kernels.kernels import KernelParameters, kernel

Floats = npt.NDArray[np.float64]
X = np.random.default_rng(0).uniform(-2.0, 2.0, (60, 2))
PARAMETERS = KernelParameters(np.array([1.7]), np.array([[0.7, 1.1]]))


def covariance(jitter: float = 1e-6, name: str = "se") -> Covariance:
    return Covariance(load_backend("numpy"), kernel(name), PARAMETERS, jitter)


def variance_left(rows: list[int], inputs: Floats, jitter: float, name: str = "se") -> Floats:
    """Diagonal of K − K_fu K_uu⁻¹ K_uf of K = K_ff + jitter·I, dense."""
    theta = Theta(PARAMETERS, (), inputs)
    K = kernel_matrix(name, theta, inputs, inputs) + jitter * np.eye(len(inputs))
    if not rows:
        return np.diagonal(K)
    return np.diagonal(K - K[:, rows] @ np.linalg.solve(K[np.ix_(rows, rows)], K[rows]))


@pytest.mark.parametrize("name", ["se", "matern52"])
def test_greedy_choice_is_that_of_dense_conditioning(name: str) -> None:
    naive: list[int] = []
    for _ in range(15):
        naive.append(int(np.argmax(variance_left(naive, X, 1e-6, name))))
    assert list(greedy_variance(covariance(name=name), X, 15)) == naive


def test_greedy_choice_leaves_less_variance_than_random_ones() -> None:
    greedy = variance_left(list(greedy_variance(covariance(), X, 15)), X, 1e-6).sum()
    rng = np.random.default_rng(1)
    at_random = [
        variance_left(list(rng.choice(60, 15, replace=False)), X, 1e-6).sum() for _ in range(50)
    ]
    assert greedy < min(at_random)


def test_greedy_choice_is_distinct_beyond_the_rank_and_among_equal_rows() -> None:
    line = np.linspace(-1.0, 1.0, 40)[:, None] * np.ones((1, 2))
    twice = np.concatenate([X, X])
    for inputs, count in ((line, 40), (twice, 80)):
        chosen = greedy_variance(covariance(), inputs, count)
        assert len(set(chosen)) == count
    assert {tuple(x) for x in twice[chosen]} == {tuple(x) for x in X}


def test_without_a_jitter_equal_rows_are_refused() -> None:
    with pytest.raises(UserError, match="no more than 1 training rows apart") as caught:
        greedy_variance(covariance(0.0), np.repeat(X[:1], 5, axis=0), 3)
    assert "\n" not in str(caught.value)


def test_greedy_inducing_inputs_are_rows_of_the_data() -> None:
    Z = initial_inducing_inputs(X, 12, "greedy-variance", 0, covariance())
    assert np.array_equal(Z, X[greedy_variance(covariance(), X, 12)])


def test_median_lengthscale_is_the_median_of_all_distances() -> None:
    distances = [float(np.linalg.norm(X[i] - X[j])) for i, j in combinations(range(60), 2)]
    assert median_lengthscale(X) == pytest.approx(np.median(distances), rel=1e-14)


@pytest.mark.parametrize("inputs", [X[:1], np.concatenate([X[:1]] * 9 + [X[1:2]])])
def test_inputs_that_coincide_have_no_median_lengthscale(inputs: Floats) -> None:
    with pytest.raises(UserError, match="needs inputs that differ"):
        median_lengthscale(inputs)


def test_mean_gaps_of_a_small_table_by_hand() -> None:
    inputs = np.array([[3.0, 0.0, 5.0], [0.0, 4.0, 5.0], [1.0, 1.0, 5.0], [1.0, 2.0, 5.0]])
    y = np.array([7.0, 1.0, 2.0, 2.0])
    # column 1 sorted: 0 1 1 3, gaps 1 0 2, two of them; y in that order 1 2 2 7: 1 0 5, two of them
    # column 2 sorted: 0 1 2 4, gaps 1 1 2, three; y 7 2 2 1: 5 0 1, two; column 3 does not vary
    lengthscale, sigma = mean_gaps(inputs, y)
    assert lengthscale == pytest.approx((3 / 2 + 4 / 3) / 2)
    assert sigma == pytest.approx((6 / 2 + 6 / 2) / 2)


@pytest.mark.parametrize(("inputs", "y"), [(X, np.ones(60)), (np.ones((60, 2)), X[:, 0])])
def test_mean_gaps_need_variation(inputs: Floats, y: Floats) -> None:
    with pytest.raises(UserError, match="inputs and targets that vary"):
        mean_gaps(inputs, y)
