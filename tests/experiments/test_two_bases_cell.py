"""Two bases in a cell: what an experiment must say, where the bases start, and how runs end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import small_cell

from svgpbench.config import (
    CellConfig,
    DataConfig,
    InducingConfig,
    KernelConfig,
    LikelihoodConfig,
    MethodConfig,
    TrainingConfig,
)
from svgpbench.experiments.cell import run_cell
from svgpbench.initialization.inducing_inputs import initial_bases

TWO = InducingConfig(count=6, gamma=9, init="random")


def config(method: str, **changes: Any) -> CellConfig:
    """Boston by a method with two bases."""
    training = TrainingConfig(em_iterations=3, e_rate=0.05, m_steps=2, m_rate=0.01)
    chosen = MethodConfig(name=method, options=changes.pop("options", {}))
    parts: dict[str, Any] = {
        "kernel": KernelConfig(lengthscale=3.0),
        "inducing": TWO,
        "training": training,
    }
    return small_cell.config(method=chosen, **(parts | changes))


@pytest.mark.parametrize("init", ["k-means", "random"])
def test_bases_are_disjoint_and_seeded(init: str) -> None:
    X = np.random.default_rng(0).standard_normal((60, 2))
    inducing = InducingConfig(count=5, gamma=12, init=init)
    bases = initial_bases(X, inducing, 3)
    assert (bases.gamma.shape, bases.beta.shape) == ((12, 2), (5, 2))
    assert len(np.unique(np.concatenate(bases), axis=0)) == 17
    again, other = initial_bases(X, inducing, 3), initial_bases(X, inducing, 4)
    assert np.array_equal(bases.gamma, again.gamma)
    assert not np.array_equal(bases.gamma, other.gamma)


@pytest.mark.parametrize("method", ["decoupled", "orth", "hybrid"])
@pytest.mark.parametrize("batch", [None, 64])
@pytest.mark.parametrize("subset", [0, 4, 20])
def test_every_method_with_two_bases_runs(method: str, batch: int | None, subset: int) -> None:
    """`subset` above |γ| is all of γ."""
    training = TrainingConfig(
        em_iterations=3, e_steps=4, e_rate=0.05, m_steps=2, m_rate=0.01, batch_size=batch
    )
    outcome = run_cell(config(method, training=training, options={"subset": subset}))
    assert outcome.status == "ok", outcome.message
    bounds = [float(value or 0.0) for value in outcome.trace["elbo"]]
    assert bounds[-1] > bounds[0]
    know_nothing = 1.0237  # who predicts the training part's mean, 0 in these units
    assert outcome.metrics["rmse"] is not None and outcome.metrics["rmse"] < 0.86 * know_nothing


def test_the_traced_bound_is_that_of_all_columns() -> None:
    """With sampled columns the trace sums their estimates over a partition of γ: nothing is random."""
    frozen = TrainingConfig(em_iterations=1, e_rate=1e-12, m_steps=0)
    whole, sampled = (
        run_cell(config("orth", training=frozen, options={"subset": r})).metrics["elbo"]
        for r in (0, 4)
    )
    assert sampled == pytest.approx(whole, rel=1e-12)


def test_classification_with_two_bases() -> None:
    training = TrainingConfig(em_iterations=5, e_steps=4, e_rate=0.7, m_steps=0)
    outcome = run_cell(
        config(
            "orth",
            data=DataConfig(name="ionosphere"),
            kernel=KernelConfig(lengthscale=6.0),
            likelihood=LikelihoodConfig(name="bernoulli-probit"),
            training=training,
            options={"coupled": "t-svgp", "gamma_step": "newton"},
        )
    )
    assert outcome.status == "ok"
    know_nothing = 26 / 71  # of the test rows are of the smaller class
    assert outcome.metrics["error_rate"] is not None
    assert outcome.metrics["error_rate"] < 0.5 * know_nothing


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
@pytest.mark.parametrize(
    ("method", "options", "rate"),
    [("decoupled", {"optimiser": "sgd"}, 1e9), ("orth", {"gamma_rate": 1e300}, 0.05)],
)
def test_gradient_steps_that_overflow_end_as_diverged(
    method: str, options: dict[str, object], rate: float
) -> None:
    training = TrainingConfig(em_iterations=2, e_steps=40, e_rate=rate, m_steps=0)
    outcome = run_cell(config(method, options=options, training=training))
    assert outcome.status == "diverged"
    assert (
        outcome.message
        == 'q is not finite at EM iteration 1; lower e_rate, or set steps = "guarded"'
    )


def test_a_step_that_leaves_a_finite_bound_of_1e92_ends_as_diverged() -> None:
    training = TrainingConfig(em_iterations=2, e_rate=1e45, m_steps=0)
    outcome = run_cell(config("decoupled", options={"optimiser": "sgd"}, training=training))
    assert (outcome.status, outcome.trace) == ("diverged", {})
    assert "at EM iteration 1: no bound of these data; lower e_rate" in outcome.message


def test_equal_points_without_jitter_end_as_not_positive_definite() -> None:
    outcome = run_cell(config("orth", jitter=0.0, kernel=KernelConfig(lengthscale=1e9)))
    assert outcome.status == "not_pd"
    assert "K(Z, Z)" in outcome.message
