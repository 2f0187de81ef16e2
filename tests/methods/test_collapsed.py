"""Collapsed bounds: sums over chunks give the same numbers as all rows at once, in constant memory."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
import small_training
from small_training import PROBLEM, assert_traces_agree, column

from svgpbench.backends import load_backend
from svgpbench.checks.cases import build_model
from svgpbench.checks.dense import sgpr_bound
from svgpbench.checks.matrix import difference
from svgpbench.config import TrainingConfig
from svgpbench.methods import build_method
from svgpbench.methods.collapsed import SGPR
from svgpbench.methods.residual_variance import RESIDUAL_VARIANCES
from svgpbench.ops import Ops
from svgpbench.training.batches import TrainingData
from svgpbench.training.chunked import AccumulatingTrainer, trainer_class
from svgpbench.training.em import Trainer
from svgpbench.tree import leaves


def trainer(
    ops: Ops, made: type[Trainer] = AccumulatingTrainer, residual: str = "prior", **settings: Any
) -> Any:
    settings = {"optimiser": "l-bfgs", "em_iterations": 4, "m_steps": 3, **settings}
    model, method = build_model("gaussian", "matern32"), SGPR(residual_variance=residual)
    return small_training.trainer(ops, method, kind=made, model=model, **settings)


@pytest.mark.parametrize("residual", RESIDUAL_VARIANCES)
def test_value_and_gradient_in_chunks_are_those_of_all_rows(
    ops: Ops, monkeypatch: pytest.MonkeyPatch, residual: str
) -> None:
    at_once = trainer(ops, Trainer, residual)
    whole_value, whole = at_once.collapsed_objective(at_once.state)(at_once.state.raw)
    monkeypatch.setattr(
        "svgpbench.training.batches.EVALUATION_ROWS", 13
    )  # 48 rows: a short chunk at the end
    run = trainer(ops, residual=residual)
    value, gradient = run.collapsed_objective(run.state)(run.state.raw)
    assert difference(ops.to_numpy(value), ops.to_numpy(whole_value)) < 1e-12
    for part, other in zip(leaves(gradient), leaves(whole), strict=True):
        assert difference(ops.to_numpy(part), ops.to_numpy(other)) < 1e-12
    exact = sgpr_bound(PROBLEM.theta(run.model), "matern32", PROBLEM.X, PROBLEM.y, 1e-6, residual)
    assert float(ops.to_numpy(value)) == pytest.approx(exact, rel=1e-12)


def test_a_fit_in_chunks_is_a_fit_on_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    ops = load_backend("numpy")
    whole = trainer(ops, Trainer).run()
    monkeypatch.setattr("svgpbench.training.batches.EVALUATION_ROWS", 13)
    chunked = trainer(ops).run()
    assert_traces_agree(chunked, whole, rel=1e-8)


def test_one_climb_leaves_a_sparser_trace_of_the_same_points() -> None:
    whole = trainer(load_backend("numpy"), em_iterations=6).run()
    sparse = trainer(load_backend("numpy"), em_iterations=6, trace_every=4).run()
    assert [point["iteration"] for point in sparse.trace] == [1, 4, 6]
    for point in sparse.trace:
        assert point["elbo"] == whole.trace[int(point["iteration"]) - 1]["elbo"]


def peak_of_a_gradient(n: int) -> int:
    """Bytes that one value and gradient allocate at most, on n rows in chunks of 500."""
    rng = np.random.default_rng(0)
    X, model = rng.uniform(-2.0, 2.0, (n, 3)), build_model("gaussian", "se")
    data = TrainingData(X, np.sin(X[:, 0]), X[:5], np.sin(X[:5, 0]))
    config = TrainingConfig(optimiser="l-bfgs")
    run = AccumulatingTrainer(
        load_backend("numpy"), model, build_method("sgpr", {}), data, PROBLEM.theta(model), config
    )
    tracemalloc.start()
    run.value_and_gradient(run.state.raw)
    run.state, _ = run.e_phase(run.state)
    run.elbo(run.state)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def test_memory_of_a_gradient_does_not_grow_with_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("svgpbench.training.batches.EVALUATION_ROWS", 500)
    few, many = peak_of_a_gradient(1000), peak_of_a_gradient(16_000)
    assert (many - few) / 15_000 < 16.0  # bytes a row: its number, but not its three inputs
    monkeypatch.setattr("svgpbench.training.batches.EVALUATION_ROWS", 16_000)
    assert peak_of_a_gradient(16_000) > 10 * many  # what it is without chunks


def test_sgpr_is_trained_by_chunks_and_others_are_not() -> None:
    assert trainer_class(build_method("sgpr", {})) is AccumulatingTrainer
    assert trainer_class(build_method("gpr", {})) is Trainer


def test_trace_starts_at_the_collapsed_bound_and_adam_climbs_it() -> None:
    run = trainer(load_backend("numpy"), optimiser="adam", m_rate=0.02)
    bounds = column(run.run(), "elbo")
    first = sgpr_bound(PROBLEM.theta(run.model), "matern32", PROBLEM.X, PROBLEM.y, 1e-6)
    assert bounds[0] == pytest.approx(first, rel=1e-12)
    assert all(np.diff(bounds) > 0.0)
