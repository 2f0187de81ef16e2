"""What a cell hands on of its run: the last point's metrics, every point, how it ended, facts of the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_cell import config

from svgpbench.config import CellConfig, DataConfig, SplitConfig, TrainingConfig
from svgpbench.experiments import cell as cell_module
from svgpbench.experiments.cell import build_trainer, load_data, run_cell
from svgpbench.experiments.outcome import CellOutcome, columns
from svgpbench.training.em import Trained

POINTS: list[dict[str, float | int | None]] = [
    {"iteration": 1, "elbo": -30.0, "nlpd": 3.0, "rmse": 0.9, "variance": 1.0, "seconds": 0.5},
    {"iteration": 3, "elbo": -10.0, "nlpd": 1.0, "rmse": 0.7, "variance": 3.0, "seconds": 1.5},
    {"iteration": 4, "elbo": -20.0, "nlpd": 2.0, "rmse": 0.8, "variance": 2.0, "seconds": 2.5},
]


def outcome_of(
    monkeypatch: pytest.MonkeyPatch, status: str, message: str, points: list[Any]
) -> CellOutcome:
    """What a cell makes of a run that ended so; everything else of it is real."""
    real = build_trainer

    def built(cell: CellConfig, *rest: Any, **more: Any) -> Any:
        run, ready = real(cell, *rest, **more)
        trained = Trained(status, message, points, run.theta(run.state), run.state.q)
        monkeypatch.setattr(run, "run", lambda *_, **__: trained)
        return run, ready

    monkeypatch.setattr(cell_module, "build_trainer", built)
    return run_cell(config())


def test_metrics_are_those_of_the_last_point_and_not_of_the_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outcome = outcome_of(monkeypatch, "ok", "", POINTS)
    assert outcome.metrics == {"elbo": -20.0, "nlpd": 2.0, "rmse": 0.8, "variance": 2.0}
    assert outcome.timing["train_s"] == 2.5
    assert outcome.trace == columns(POINTS)
    assert (outcome.status, outcome.message) == ("ok", "")


@pytest.mark.parametrize("status", ["not_pd", "diverged"])
def test_a_failure_is_handed_on_with_what_the_run_had_reached(
    monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    outcome = outcome_of(monkeypatch, status, "what went wrong", POINTS[:1])
    assert (outcome.status, outcome.message) == (status, "what went wrong")
    assert (outcome.trace, outcome.metrics["elbo"]) == (columns(POINTS[:1]), -30.0)


def test_a_run_that_failed_at_once_has_neither_metrics_nor_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outcome = outcome_of(monkeypatch, "not_pd", "at EM iteration 1", [])
    assert (outcome.trace, outcome.metrics, outcome.timing) == ({}, {}, {})
    assert outcome.data["n_train"] == 404


def test_facts_of_the_data_are_those_of_the_split() -> None:
    outcome = run_cell(
        config(split=SplitConfig(fold=2, folds=4), training=TrainingConfig(em_iterations=1))
    )
    _, ready = build_trainer(config(split=SplitConfig(fold=2, folds=4)))
    assert {k: outcome.data[k] for k in ("n_train", "n_test", "dimensions")} == {
        "n_train": 380,
        "n_test": 126,
        "dimensions": 13,
    }
    assert outcome.data["split_hash"] == ready.split_hash
    assert outcome.data["fingerprint"] == load_data(DataConfig(name="boston")).fingerprint


def test_scores_in_original_units_are_by_the_training_part_s_deviation() -> None:
    cell = config()
    outcome = run_cell(cell)
    y = load_data(cell.data).y[cell_module.split_rows(cell.data, cell.split, 506).train]
    metrics = {k: float(v or 0.0) for k, v in outcome.metrics.items()}
    assert len(y) == 404
    assert metrics["rmse_original"] == pytest.approx(metrics["rmse"] * y.std(), rel=1e-12)
    assert metrics["nlpd_original"] == pytest.approx(metrics["nlpd"] + np.log(y.std()), rel=1e-12)
    raw = run_cell(config(data=DataConfig(name="boston", standardise_y=False)))
    assert raw.metrics["rmse_original"] == raw.metrics["rmse"]
    assert raw.metrics["nlpd_original"] == raw.metrics["nlpd"]
