"""The FLOPs of a whole training are those that its loop does, counted on shapes while it runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import small_cell

from svgpbench.backends import new_backend
from svgpbench.config import (
    CellConfig,
    InducingConfig,
    LikelihoodConfig,
    MethodConfig,
    TrainingConfig,
)
from svgpbench.experiments.cell import initial_theta
from svgpbench.kernels import Model
from svgpbench.kernels.bases import Decoupled
from svgpbench.kernels.kernels import kernel
from svgpbench.likelihoods import build_likelihood
from svgpbench.methods import build_method
from svgpbench.results.training_cost import ONE_EACH, flops_of
from svgpbench.training.batches import TrainingData
from svgpbench.training.chunked import trainer_class
from svgpbench.training.state import TrainState

N, D, M = 40, 3, 6
THETA_AT_THE_START = 150


def cell(
    method: str, likelihood: str = "gaussian", gamma: int | None = None, **keys: Any
) -> CellConfig:
    training = {"em_iterations": 4, "m_steps": 3} | keys.pop("training", {})
    return small_cell.config(
        likelihood=LikelihoodConfig(name=likelihood),
        inducing=InducingConfig(count=M, gamma=gamma),
        training=TrainingConfig(**training),
        method=MethodConfig(name=method, options=keys),
    )


def trained(config: CellConfig) -> tuple[int, int]:
    """FLOPs of the loop that trains, evaluation left out, and how often L-BFGS evaluated."""
    method = build_method(config.method.name, config.method.options)
    model = Model(kernel(config.kernel.name), build_likelihood(config.likelihood), config.jitter)
    X, y = np.zeros((N, D)), np.zeros(N)
    data = TrainingData(X, y, X, y, 1.0)
    inducing: Any = X if method.basis == "data" else X[:M]
    if config.inducing.gamma:
        inducing = Decoupled(X[: config.inducing.gamma], X[:M])
    theta = initial_theta(config, model, X, y)._replace(inducing=inducing)
    ops: Any = new_backend("counting")
    ops.to_numpy = lambda x: np.zeros(x.shape)  # L-BFGS then finds itself at the top

    class Loop(trainer_class(method)):  # type: ignore[misc]
        def add_trace_point(self, state: TrainState, blocks: Any = None) -> TrainState:
            return state

    loops: list[Any] = []

    def run() -> None:
        loops.append(Loop(ops, model, method, data, theta, config.training))
        loops[0].run()

    _, counted = ops.count(run)
    return counted[0], loops[0].state.evaluated


@pytest.mark.parametrize(
    "config",
    [
        cell("t-svgp"),
        cell("t-svgp", training={"e_steps": 5, "batch_size": 10}),
        cell("t-svgp", tying="untied", training={"batch_size": 10}),
        cell("t-svgp", training={"m_steps": 0, "e_steps": 2}),
        cell("t-svgp", training={"optimiser": "l-bfgs"}),
        cell("q-svgp", "bernoulli-probit", optimiser="adam", training={"e_steps": 8}),
        cell("diagonal-precision", optimiser="exact", training={"optimiser": "l-bfgs"}),
        cell("orth", coupled="t-svgp", gamma_step="newton", gamma=7),
        cell("t-vgp", "bernoulli-probit"),
        cell("gpr", training={"optimiser": "l-bfgs"}),
        cell("sgpr", training={"optimiser": "l-bfgs"}),
        cell("sgpr"),
    ],
    ids=lambda config: (
        f"{config.method.name} {config.training.optimiser} {config.training.batch_size}"
    ),
)
def test_the_count_is_what_the_loop_does(config: CellConfig) -> None:
    flops, evaluated = trained(config)
    assert (evaluated > 0) == (config.training.optimiser == "l-bfgs")
    counted = flops_of(config, N, D, evaluated if evaluated else None)
    assert 0 <= flops - counted.flops < THETA_AT_THE_START
    assert counted.note == ""


def test_evaluations_that_nobody_counted_are_one_an_iteration_and_a_note_says_so() -> None:
    config = cell("sgpr", training={"optimiser": "l-bfgs"})
    one_each, none = flops_of(config, N, D, None), flops_of(config, N, D, 0)
    nine = flops_of(config, N, D, 9)
    assert one_each.note == ONE_EACH
    assert one_each.flops == nine.flops > none.flops  # three phases of three iterations


def test_folds_and_seeds_count_alike_and_rows_that_are_drawn_count_alone() -> None:
    config = cell("t-svgp")
    assert flops_of(config.model_copy(update={"seed": 3}), N, D, None) == flops_of(
        config, N, D, None
    )
    few = cell("t-svgp", training={"rows": 20})
    assert flops_of(few, N, D, None) == flops_of(config, 20, D, None)


def test_online_training_is_not_counted_and_says_so() -> None:
    found = flops_of(cell("t-svgp", training={"kind": "online"}), N, D, None)
    assert math.isnan(found.flops)
    assert "online" in found.note
