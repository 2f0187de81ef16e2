"""L-BFGS: that it reaches optima, comes back from where there is no bound, and beats Adam on data."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der

from svgpbench.backends import load_backend
from svgpbench.checks.cases import VARIANTS, build_model, small_problem
from svgpbench.checks.dense import gpr_bound
from svgpbench.config import TrainingConfig
from svgpbench.initialization.inducing_inputs import initial_inducing_inputs
from svgpbench.kernels import Theta
from svgpbench.kernels.kernels import KernelParameters
from svgpbench.likelihoods import GaussianParameters
from svgpbench.methods import build_method
from svgpbench.numerics.lbfgs import flatten, lbfgs_ascent, unflatten
from svgpbench.ops import Ops
from svgpbench.training.batches import TrainingData
from svgpbench.training.chunked import trainer_class
from svgpbench.training.em import Trainer
from svgpbench_datasets import REGISTRY, k_fold, prepare

PROBLEM = small_problem()
EMPTY = np.zeros((0, 3)), np.zeros(0)
CLIMB: dict[str, Any] = {"optimiser": "l-bfgs", "em_iterations": 4, "m_steps": 5}


def trainer(ops: Ops, method: str, likelihood: str = "gaussian", **settings: Any) -> Trainer:
    model = build_model(likelihood, "matern52")
    built = build_method(*VARIANTS[method])
    targets = PROBLEM.targets(model.likelihood.support)
    data = TrainingData(PROBLEM.X, targets, PROBLEM.X[:5] + 0.2, targets[:5])
    theta = PROBLEM.theta(model, built.basis)
    return trainer_class(built)(
        ops, model, built, data, theta, TrainingConfig(**{**CLIMB, **settings})
    )


def bounds(run: Trainer) -> list[float]:
    trained = run.run()
    assert trained.status == "ok", trained.message
    return [float(point["elbo"] or np.nan) for point in trained.trace]


def test_a_tree_is_flattened_and_made_again() -> None:
    tree = (np.arange(6.0).reshape(2, 3), (np.float64(7.0), np.zeros((0, 2))))
    again = unflatten(tree, flatten(tree))
    assert np.array_equal(again[0], tree[0])
    assert float(again[1][0]) == 7.0
    assert again[1][1].shape == (0, 2)


def test_it_reaches_the_top_and_tells_of_every_iteration() -> None:
    seen: list[float] = []

    def hill(x: Any) -> tuple[float, Any]:
        return -rosen(x[0]), (-rosen_der(x[0]),)

    top = lbfgs_ascent(hill, (np.array([-1.2, 1.0]),), 200, lambda x: seen.append(hill(x)[0]))
    assert top[0] == pytest.approx([1.0, 1.0], abs=1e-6)
    assert 10 < len(seen) < 200
    assert all(np.diff(seen) >= 0.0)
    assert len(seen[:7]) == 7
    few: list[float] = []
    lbfgs_ascent(hill, (np.array([-1.2, 1.0]),), 7, lambda x: few.append(hill(x)[0]))
    assert few == seen[:7]


def test_a_line_search_comes_back_from_where_the_function_is_not_finite() -> None:
    def cliff(x: Any) -> tuple[float, Any]:
        z = float(x[0])
        if z >= 1.0:
            return np.nan, (np.array(np.nan),)
        return z + 0.1 * np.log1p(-z), (np.array(1.0 - 0.1 / (1.0 - z)),)

    top = lbfgs_ascent(cliff, (np.array(-30.0),), 100)
    assert float(top[0]) == pytest.approx(0.9, abs=1e-6)


@pytest.mark.parametrize("first", [np.nan, -np.inf])
def test_it_stays_at_a_start_where_the_function_is_not_finite(first: float) -> None:
    start = (np.ones(2),)
    assert lbfgs_ascent(lambda tree: (first, tree), start, 5) is start


def test_gpr_reaches_a_stationary_point_of_its_marginal_likelihood() -> None:
    run = trainer(load_backend("numpy"), "gpr", em_iterations=3, m_steps=40)
    trained = run.run()
    _, gradient = run.collapsed_objective(run.state)(run.state.raw)
    assert max(float(np.max(np.abs(g))) for g in (*gradient[0], *gradient[1])) < 1e-4
    last = trained.trace[-1]["elbo"]
    assert last == pytest.approx(gpr_bound(trained.theta, "matern52", PROBLEM.X, PROBLEM.y))
    assert len(trained.trace) == 3  # it stopped early, and the points that are left stand still


@pytest.mark.parametrize("method", ["gpr", "sgpr"])
def test_a_collapsed_bound_is_climbed_in_one_run(method: str) -> None:
    ops = load_backend("numpy")
    by_fives = bounds(trainer(ops, method))
    by_fifteen = bounds(trainer(ops, method, em_iterations=2, m_steps=15))
    assert len(by_fives) == 4
    assert all(np.diff(by_fives) > 0.0)
    assert by_fives[-1] == pytest.approx(by_fifteen[-1], rel=1e-12)


@pytest.mark.parametrize(
    ("method", "likelihood"),
    [
        ("t-svgp untied", "gaussian"),
        ("t-svgp tied-projected", "bernoulli-logit"),
        ("q-svgp natgrad", "bernoulli-logit"),
        ("t-vgp", "bernoulli-logit"),
    ],
)
def test_the_m_step_of_the_em_loop_may_climb_too(method: str, likelihood: str) -> None:
    climbed = bounds(trainer(load_backend("numpy"), method, likelihood, e_steps=4))
    assert all(np.diff(climbed) > 0.0)


def test_every_backend_climbs_alike(ops: Ops) -> None:
    expected = bounds(trainer(load_backend("numpy"), "t-svgp untied", em_iterations=2))
    found = bounds(trainer(ops, "t-svgp untied", em_iterations=2))
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("method", ["sgpr", "t-svgp untied"])
def test_a_kernel_matrix_that_is_not_positive_definite_is_a_status(method: str) -> None:
    model = build_model("gaussian", "se", jitter=0.0)
    theta = PROBLEM.theta(model)
    theta = theta._replace(inducing=np.repeat(theta.inducing[:1], 8, axis=0) * (1 + 1e-9))
    built, data = build_method(*VARIANTS[method]), TrainingData(PROBLEM.X, PROBLEM.y, *EMPTY)
    settings = TrainingConfig(**CLIMB)
    trained = trainer_class(built)(load_backend("numpy"), model, built, data, theta, settings).run()
    assert (trained.status, trained.trace) == ("not_pd", [])


def test_nothing_learned_is_nothing_moved() -> None:
    for optimiser in ("adam", "l-bfgs"):
        still = bounds(
            trainer(load_backend("numpy"), "gpr", optimiser=optimiser, learn=("inducing",))
        )
        assert len(still) == 4
        assert len(set(still)) == 1


def airfoil(optimiser: str, m_steps: int, method: str) -> tuple[float, int]:
    """The last bound on some rows of airfoil and how often it was evaluated on the way."""
    dataset = REGISTRY.load("airfoil")
    ready = prepare(dataset, k_fold(len(dataset.y), 5, 0, 0))
    X, y = ready.X_train[:300], ready.y_train[:300]
    theta = Theta(
        KernelParameters(np.ones(1), np.ones((1, X.shape[1]))),
        GaussianParameters(np.float64(1.0)),
        initial_inducing_inputs(X, 15, "k-means", 0),
    )
    settings = TrainingConfig(em_iterations=11, m_steps=m_steps, m_rate=0.2, optimiser=optimiser)  # type: ignore[arg-type]
    data, model = TrainingData(X, y, X[:5], y[:5]), build_model("gaussian", "matern52")
    run = Trainer(load_backend("numpy"), model, build_method(method, {}), data, theta, settings)
    ascent, count = run.steps.objective_and_gradient, 0

    def counted(*arguments: Any) -> Any:
        nonlocal count
        count += 1
        return ascent(*arguments)

    run.steps = dataclasses.replace(run.steps, objective_and_gradient=counted)
    return bounds(run)[-1], count or 10 * m_steps  # Adam's are inside its compiled loop


def test_it_ends_above_adam_after_as_many_evaluations_on_airfoil() -> None:
    adam, evaluations = airfoil("adam", 15, "sgpr")
    climbed, taken = airfoil("l-bfgs", 12, "sgpr")
    assert taken <= evaluations
    assert climbed > adam + 1.0
