"""Where θ starts in a cell: given values as given, others from the rows that the settings name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_cell import config

from svgpbench.backends import load_backend
from svgpbench.config import (
    BackendConfig,
    InducingConfig,
    KernelConfig,
    LikelihoodConfig,
    TrainingConfig,
)
from svgpbench.experiments import cell as cell_module
from svgpbench.experiments.cell import build_trainer
from svgpbench.initialization.hyperparameters import mean_gaps, median_lengthscale
from svgpbench.initialization.inducing_inputs import greedy_variance
from svgpbench.kernels import Theta
from svgpbench.kernels.covariance import Covariance
from svgpbench.kernels.kernels import kernel
from svgpbench.training.em import Trainer

D = 13


def built(**changes: Any) -> Trainer:
    return build_trainer(config(**changes))[0]


def start(**changes: Any) -> Theta:
    run = built(**changes)
    return run.theta(run.state)


def lengthscales(**kernel_settings: Any) -> np.ndarray[Any, Any]:
    return np.asarray(start(kernel=KernelConfig(**kernel_settings)).kernel.lengthscales)


def test_given_values_are_taken_as_they_are() -> None:
    theta = start(
        kernel=KernelConfig(variance=2.5, lengthscale=0.7),
        likelihood=LikelihoodConfig(noise_variance=0.3),
    )
    assert theta.kernel.variance == pytest.approx(np.array([2.5]), rel=1e-13)
    assert theta.kernel.lengthscales == pytest.approx(np.full((1, D), 0.7), rel=1e-13)
    assert float(theta.likelihood.noise_variance) == pytest.approx(0.3, rel=1e-13)


def test_a_lengthscale_a_column_keeps_its_order_and_one_for_all_is_one() -> None:
    each = tuple(float(x) for x in range(1, D + 1))
    assert lengthscales(lengthscale=each) == pytest.approx(np.array([each]), rel=1e-13)
    assert lengthscales(lengthscale=0.7, ard=False) == pytest.approx(np.array([[0.7]]), rel=1e-13)


def test_the_median_is_over_a_first_batch_and_at_most_a_stated_number_of_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[int] = []

    def median(X: Any) -> float:
        looked.append(len(X))
        return median_lengthscale(X)

    monkeypatch.setattr(cell_module, "median_lengthscale", median)
    of_data = KernelConfig(init="median", variance=2.5)
    whole = start(kernel=of_data)
    start(kernel=of_data, training=TrainingConfig(batch_size=50))
    monkeypatch.setattr(cell_module, "MEDIAN_ROWS", 30)
    start(kernel=of_data)
    start(kernel=of_data, training=TrainingConfig(batch_size=20))
    assert looked == [404, 50, 30, 20]
    X = np.asarray(built().data.X)
    assert whole.kernel.lengthscales == pytest.approx(
        np.full((1, D), median_lengthscale(X)), rel=1e-12
    )
    assert float(whole.kernel.variance[0]) == pytest.approx(2.5, rel=1e-13)  # the paper names none


def test_the_rows_of_the_median_are_drawn_by_the_seed() -> None:
    def value(seed: int) -> float:
        settings = {
            "kernel": KernelConfig(init="median"),
            "training": TrainingConfig(batch_size=50),
        }
        return float(start(seed=seed, **settings).kernel.lengthscales[0, 0])

    assert value(0) == value(0) != value(1)
    X = np.asarray(built(seed=1).data.X)
    rows = np.random.default_rng([1, 5]).choice(len(X), 50, replace=False)  # the stream of records
    assert value(1) == pytest.approx(median_lengthscale(X[rows]), rel=1e-13)


def test_mean_gaps_give_lengthscale_and_variance_of_the_training_rows() -> None:
    data = built().data
    lengthscale, sigma = mean_gaps(np.asarray(data.X), data.y)
    for init, variance in (("ulapane", sigma**2), ("mean-gaps", sigma)):
        found = start(kernel=KernelConfig(init=init, variance=9.0, lengthscale=9.0)).kernel
        assert found.lengthscales == pytest.approx(np.full((1, D), lengthscale), rel=1e-12)
        assert found.variance == pytest.approx(np.array([variance]), rel=1e-12)


def test_a_lengthscale_may_be_in_roots_of_the_dimension() -> None:
    given = KernelConfig(init="root-dimension", variance=2.0, lengthscale=0.1, ard=False)
    found = start(kernel=given).kernel
    assert found.lengthscales == pytest.approx(np.full((1, 1), 0.1 * D**0.5), rel=1e-13)
    assert found.variance == pytest.approx(np.array([2.0]), rel=1e-13)


@pytest.mark.parametrize("jitter", [1e-1, 1e-3, 1e-10])
def test_the_jitter_is_in_the_kernel_matrix_of_the_prior(jitter: float) -> None:
    """The least is that of Kobe 2021, Sec. 4.1.3."""
    run = built(jitter=jitter, kernel=KernelConfig(variance=2.0))
    theta, prior = run.theta(run.state), run.state.prior
    K = run.model.covariance(run.ops, theta).cross(theta.inducing, theta.inducing)[0]
    for whole in (prior.Kuu[0], prior.L[0] @ prior.L[0].T):
        added = (whole - K).diagonal()
        assert added == pytest.approx(np.full(len(K), jitter), rel=1e-6, abs=1e-14)


def test_greedy_choice_is_by_the_cell_s_own_kernel() -> None:
    settings = KernelConfig(name="se", lengthscale=0.8, variance=2.0)
    run = built(
        kernel=settings, inducing=InducingConfig(count=9, init="greedy-variance"), jitter=1e-3
    )
    theta = run.theta(run.state)
    covariance = Covariance(load_backend("numpy"), kernel("se"), theta.kernel, 1e-3)
    X = np.asarray(run.data.X)
    assert np.array_equal(theta.inducing, X[greedy_variance(covariance, X, 9)])


def test_windows_are_a_width_in_lengthscales_around_the_points() -> None:
    features = InducingConfig(count=9, functions="features", width=0.25, init="random")
    each = tuple(float(x) for x in range(1, D + 1))
    basis = start(kernel=KernelConfig(name="se", lengthscale=each), inducing=features).inducing
    assert basis.widths == pytest.approx(np.tile(0.25 * np.array(each), (9, 1)), rel=1e-12)
    points = start(kernel=KernelConfig(name="se"), inducing=InducingConfig(count=9, init="random"))
    assert np.array_equal(basis.centres, points.inducing)


def test_all_start_alike_whatever_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """A basis chosen by a kernel matrix of float32 would not be that of float64."""
    loaded: list[tuple[str, ...]] = []
    real = load_backend
    monkeypatch.setattr(
        cell_module, "load_backend", lambda *words: loaded.append(words) or real("numpy")
    )
    greedy = InducingConfig(count=9, init="greedy-variance")
    one = start(inducing=greedy, backend=BackendConfig(name="torch", dtype="float32"))
    assert np.array_equal(one.inducing, start(inducing=greedy).inducing)
    assert loaded.count(("numpy",)) == 2  # a basis each
