"""What a cell reports of its predictions is better than who knows the training targets alone can say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_cell import config, own

from svgpbench.config import (
    CellConfig,
    DataConfig,
    InducingConfig,
    KernelConfig,
    LikelihoodConfig,
    TrainingConfig,
)
from svgpbench.experiments.cell import build_trainer, load_data, prepare_data, run_cell

REGRESSION = config(
    kernel=KernelConfig(lengthscale=3.0),
    inducing=InducingConfig(count=30, init="random"),
    training=TrainingConfig(em_iterations=6, m_steps=5),
)
CLASSES = config(
    data=DataConfig(name="ionosphere"),
    likelihood=LikelihoodConfig(name="bernoulli-probit"),
    kernel=KernelConfig(lengthscale=6.0),
    inducing=InducingConfig(count=30, init="random"),
    training=TrainingConfig(em_iterations=3, e_steps=4, m_steps=5),
)


def score(cell: CellConfig, name: str) -> float:
    value = run_cell(cell).metrics[name]
    assert value is not None
    return value


def targets(cell: CellConfig) -> tuple[np.ndarray, np.ndarray]:
    data = prepare_data(cell, load_data(cell.data))
    return data.y_train, data.y_test


def test_regression_against_the_training_part_s_mean_and_spread() -> None:
    train, test = targets(REGRESSION)
    mean, variance = train.mean(), train.var()
    error = np.mean((test - mean) ** 2)
    assert score(REGRESSION, "rmse") < 0.4 * np.sqrt(error)
    constant = 0.5 * np.log(2 * np.pi * variance) + error / (2 * variance)
    assert score(REGRESSION, "nlpd") < constant - 0.9


def test_classification_against_the_larger_class_and_its_share() -> None:
    train, test = targets(CLASSES)
    share = train.mean()
    wrong = np.mean(test != (share > 0.5))
    assert score(CLASSES, "error_rate") < wrong / 3
    constant = -np.mean(np.log(np.where(test == 1.0, share, 1.0 - share)))
    assert score(CLASSES, "nlpd") < constant - 0.3


@pytest.mark.parametrize("likelihood", ["softmax", "robust-max"])
def test_several_classes_against_the_largest(tmp_path: Path, likelihood: str) -> None:
    """Three bands of x, of which the largest holds half of the rows."""
    rng = np.random.default_rng(0)
    x, z = rng.uniform(-2.0, 2.0, (2, 120))
    labels = np.array(["a", "b", "c"])[np.digitize(x, [-1.0, 0.0])]
    rows = [f"{a:.4f},{b:.4f},{label}" for a, b, label in zip(x, z, labels, strict=True)]
    path = tmp_path / "bands.csv"
    path.write_text("\n".join(["x,z,y", *rows]) + "\n")
    cell = own(path, "multiclass", LikelihoodConfig(name=likelihood)).model_copy(
        update={
            "inducing": InducingConfig(count=20, init="random"),
            "training": TrainingConfig(em_iterations=3, e_steps=8, e_rate=0.5, m_steps=2),
        }
    )
    train, test = targets(cell)
    largest = np.bincount(train.astype(int)).argmax()
    assert score(cell, "error_rate") < np.mean(test != largest) / 2
    assert build_trainer(cell)[0].model.latents == 3
