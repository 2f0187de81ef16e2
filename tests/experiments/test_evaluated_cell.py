"""A cell with an evaluation plan, a cool-down or held-out rows: what it records."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from small_cell import config

from svgpbench.config import EvaluationPlan, LikelihoodConfig, SplitConfig, TrainingConfig
from svgpbench.experiments.cell import (
    TRACED,
    build_trainer,
    load_data,
    prepare_data,
    run_cell,
)
from svgpbench.training.batches import chosen_rows
from svgpbench_datasets import k_fold

TRAINING = {"em_iterations": 10, "m_steps": 1, "batch_size": 64, "e_rate": 0.5}


def training(**changes: object) -> TrainingConfig:
    return TrainingConfig.model_validate(TRAINING | changes)


def test_the_trace_keeps_four_columns_and_the_metrics_are_all_of_the_last_evaluation() -> None:
    every = run_cell(config(training=training()))
    planned = run_cell(config(training=training(evaluation=EvaluationPlan(count=4))))
    assert set(planned.trace) == set(TRACED) == {"iteration", "elbo", "nlpd", "seconds"}
    assert planned.trace["iteration"] == [1, 10]
    assert set(every.trace) > set(TRACED)
    for name in ("elbo", "nlpd"):
        assert planned.trace[name] == [every.trace[name][0], every.trace[name][-1]]
    assert planned.metrics == every.metrics
    assert {"rmse", "crps", "coverage", "nlpd_original"} <= set(planned.metrics)
    assert planned.metrics["nlpd"] == planned.trace["nlpd"][-1]
    assert "constant" in planned.data and "constant" not in every.data


def test_the_constant_prediction_is_on_the_rows_that_are_scored() -> None:
    plan = EvaluationPlan(count=2, train_rows=30, test_rows=20)
    cell = config(training=training(evaluation=plan))
    outcome, ready = run_cell(cell), prepare_data(cell, load_data(cell.data))
    rows = chosen_rows(len(ready.y_test), 20)
    density = norm(ready.y_train.mean(), ready.y_train.std())
    constant = outcome.data["constant"]
    assert constant["nlpd"] == pytest.approx(-density.logpdf(ready.y_test[rows]).mean(), rel=1e-12)
    assert constant["elbo"] == pytest.approx(density.logpdf(ready.y_train).sum(), rel=1e-12)
    assert outcome.data["n_test"] == len(ready.y_test)
    # the same rows, whatever the method and the seed
    for other in (cell, cell.model_copy(update={"seed": 7})):
        trainer, _ = build_trainer(other)
        assert np.array_equal(trainer.data.X_test, ready.X_test[rows])
        assert np.array_equal(trainer.data.y_test, ready.y_test[rows])


def test_trials_never_see_the_test_part() -> None:
    """Neither as rows nor in the statistics that inputs and targets are standardised with."""
    dataset = load_data(config().data)
    outer = k_fold(len(dataset.y), 5, 2, 0)
    cell = config(split=SplitConfig(fold=2, held_out=0.1))
    ready = prepare_data(cell, dataset)
    assert len(ready.y_train) + len(ready.y_test) == len(outer.train)
    assert abs(len(ready.y_test) - 0.1 * len(outer.train)) <= 0.5
    y = np.concatenate([ready.y_train, ready.y_test]) * ready.y_scale + ready.y_mean
    assert np.sort(y) == pytest.approx(np.sort(dataset.y[outer.train]), rel=1e-9)
    assert ready.y_train.mean() == pytest.approx(0.0, abs=1e-12)
    assert ready.y_train.std() == pytest.approx(1.0, rel=1e-12)
    X = dataset.X.copy()
    X[outer.test] += 100.0
    moved = prepare_data(cell, replace(dataset, X=X))
    rows = slice(None)
    assert np.array_equal(moved.X_train[rows], ready.X_train[rows])
    assert np.array_equal(moved.X_test[rows], ready.X_test[rows])


def test_labels_have_a_constant_prediction_too() -> None:
    cell = config(
        data=config().data.model_copy(update={"name": "pima"}),
        likelihood=LikelihoodConfig(name="bernoulli-probit"),
        training=training(em_iterations=3, evaluation=EvaluationPlan(count=2)),
    )
    outcome = run_cell(cell)
    constant = outcome.data["constant"]["nlpd"]
    assert 0.6 < constant < np.log(2.0)  # a third of the labels are 1
    assert outcome.metrics["nlpd"] is not None and outcome.metrics["nlpd"] < constant


def test_nothing_is_held_out_where_all_rows_train() -> None:
    with pytest.raises(ValueError, match="'none' trains on all rows: remove held_out"):
        SplitConfig(kind="none", held_out=0.1)
    assert SplitConfig(kind="none").held_out is None
