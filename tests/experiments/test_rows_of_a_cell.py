"""A batch is of the rows that a cell trains on, and a perturbed cell has the inducing inputs of its twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_cell import config

from svgpbench.config import InducingConfig, MethodConfig, TrainingConfig
from svgpbench.errors import UserError
from svgpbench.experiments.cell import build_trainer
from svgpbench.methods import build_method
from svgpbench.plugins import METHODS, load_all
from svgpbench.training.em import Trainer
from svgpbench.tree import leaves

ROWS = 60


def built(**changes: Any) -> Trainer:
    settings = {"training": TrainingConfig(rows=ROWS), "inducing": InducingConfig(count=6)}
    return build_trainer(config(**(settings | changes)))[0]


def test_a_batch_may_be_of_all_the_rows_that_are_trained_on_and_of_no_more() -> None:
    all_rows = built(training=TrainingConfig(rows=ROWS, batch_size=ROWS))
    assert sorted(all_rows.batches.sample()) == list(range(ROWS))
    with pytest.raises(UserError, match=r"training\.batch_size 61 exceeds 60 rows"):
        built(training=TrainingConfig(rows=ROWS, batch_size=ROWS + 1))


@pytest.mark.parametrize("method", load_all(METHODS))
@pytest.mark.parametrize("init", ["random", "greedy-variance"])
def test_a_perturbed_cell_has_the_basis_of_its_twin_or_its_own_rows(method: str, init: str) -> None:
    """A method whose basis is the data has the rows that it trains on, perturbed as they are."""
    basis = build_method(method, {}).basis
    inducing = InducingConfig(count=6, gamma=9 if basis == "decoupled" else None, init=init)
    settings = {"method": MethodConfig(name=method), "inducing": inducing}
    twin, moved = (built(perturbation=size, **settings) for size in (0.0, 1e-3))
    theirs, ours = (leaves(run.theta(run.state).inducing) for run in (twin, moved))
    assert not np.array_equal(twin.data.X, moved.data.X)
    if basis == "data":
        theirs = [moved.data.X]
    assert all(np.array_equal(one, other) for one, other in zip(ours, theirs, strict=True))
