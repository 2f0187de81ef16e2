"""How an experiment file says where hyperparameters and inducing inputs start."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from own_experiment import write_own

from svgpbench.config import CellConfig
from svgpbench.errors import UserError
from svgpbench.experiments import load_experiment, resolve
from svgpbench.experiments.cell import build_trainer, run_cell
from svgpbench.experiments.validation import check_cells
from svgpbench.initialization.hyperparameters import mean_gaps, median_lengthscale
from svgpbench.initialization.inducing_inputs import greedy_variance
from svgpbench.kernels.bases import Features
from svgpbench.training.em import Trainer


def first_cell(folder: Path, *changes: tuple[str, str]) -> CellConfig:
    return resolve(load_experiment(str(write_own(folder, *changes))))[0]


def start(folder: Path, *changes: tuple[str, str]) -> Trainer:
    return build_trainer(first_cell(folder, *changes))[0]


def test_median_and_mean_gaps_replace_what_is_given(tmp_path: Path) -> None:
    given, median, gaps, squares = (
        start(tmp_path, ("lengthscale = 1.0", f'lengthscale = 3.0\nvariance = 2.0\ninit = "{x}"'))
        for x in ("given", "median", "mean-gaps", "ulapane")
    )
    assert given.theta(given.state).kernel.lengthscales == pytest.approx(np.full((1, 2), 3.0))
    X, y = median.data.X[:], median.data.y
    assert median.theta(median.state).kernel.lengthscales == pytest.approx(
        np.full((1, 2), median_lengthscale(X))
    )
    assert float(median.theta(median.state).kernel.variance[0]) == pytest.approx(2.0)
    lengthscale, variance = mean_gaps(X, y)
    assert gaps.theta(gaps.state).kernel.lengthscales == pytest.approx(np.full((1, 2), lengthscale))
    assert float(gaps.theta(gaps.state).kernel.variance[0]) == pytest.approx(variance)
    assert float(squares.theta(squares.state).kernel.variance[0]) == pytest.approx(variance**2)


def test_median_is_of_a_first_batch_where_training_is_by_minibatch(tmp_path: Path) -> None:
    run = start(
        tmp_path,
        ("lengthscale = 1.0", 'init = "median"'),
        ("m_steps = 2", "m_steps = 2\nbatch_size = 10"),
    )
    rows = np.random.default_rng([0, 5]).choice(30, 10, replace=False)
    wanted = median_lengthscale(run.data.X[rows])
    assert run.theta(run.state).kernel.lengthscales == pytest.approx(np.full((1, 2), wanted))


def test_greedy_variance_is_by_the_kernel_at_its_start(tmp_path: Path) -> None:
    run = start(tmp_path, ("count = 5", 'count = 5\ninit = "greedy-variance"'))
    cov = run.model.covariance(run.ops, run.theta(run.state))
    X = run.data.X[:]
    assert np.array_equal(run.theta(run.state).inducing, X[greedy_variance(cov, X, 5)])


def test_features_start_at_the_inducing_inputs_with_widths_in_lengthscales(tmp_path: Path) -> None:
    changes = [
        ("lengthscale = 1.0", 'lengthscale = 2.0\nname = "se"'),
        ("count = 5", 'count = 5\nfunctions = "features"\nwidth = 0.25'),
    ]
    run = start(tmp_path, *changes)
    theta = run.theta(run.state)
    assert isinstance(theta.inducing, Features)
    assert theta.inducing.widths == pytest.approx(np.full((5, 2), 0.5))
    plain = start(tmp_path, changes[0])
    points = plain.theta(plain.state)
    assert np.array_equal(theta.inducing.centres, points.inducing)
    outcome = run_cell(first_cell(tmp_path, *changes))
    assert outcome.status == "ok"
    assert float(outcome.trace["elbo"][1] or 0) > float(outcome.trace["elbo"][0] or 0)


def test_features_of_another_kernel_are_refused_before_anything_runs(tmp_path: Path) -> None:
    cell = first_cell(tmp_path, ("count = 5", 'count = 5\nfunctions = "features"'))
    for refused in (lambda: check_cells([cell]), lambda: run_cell(cell)):
        with pytest.raises(UserError, match="kernel 'matern52' has no inducing functions"):
            refused()


def test_a_jitter_of_1e_10_reaches_the_kernel_matrix(tmp_path: Path) -> None:
    """The jitter of Kobe 2021, Sec. 4.1.3."""
    run = start(tmp_path, ("[kernel]", "jitter = 1e-10\n[kernel]"))
    assert run.model.jitter == 1e-10
    Z = run.state.raw.inducing
    cov = run.model.covariance(run.ops, run.theta(run.state))
    added = np.diagonal(run.state.prior.Kuu[0] - cov.cross(Z, Z)[0])
    assert added == pytest.approx(np.full(5, 1e-10), rel=1e-4)
    assert run.run().status == "ok"
