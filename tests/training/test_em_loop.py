"""What the EM loop hands from one phase to the next: the rate of the iteration, the blocks of the new θ."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from small_training import PROBLEM, recorded_steps, trainer

from svgpbench.backends import load_backend
from svgpbench.checks.dense import sgpr_bound
from svgpbench.config import Decay, InducingConfig, LogLinear
from svgpbench.initialization.growing_basis import Growth
from svgpbench.methods.mean_covariance import MeanCholesky
from svgpbench.numerics.adam import adam_ascent, adam_start
from svgpbench.ops import Ops
from svgpbench.training.batches import Batches
from svgpbench.training.blocks import Batch, replace_trainable, trainable_part
from svgpbench.training.em import Trainer
from svgpbench.training.m_step import m_objective
from svgpbench.training.schedules import rate_at
from svgpbench.training.state import TrainState
from svgpbench.tree import leaves, tree_map

NUMPY = load_backend("numpy")


@pytest.mark.parametrize("rate", [LogLinear(start=0.01, end=0.5, steps=2), Decay(start=0.5), 0.3])
@pytest.mark.parametrize("batch_size", [None, 16])
def test_an_e_phase_has_the_rate_of_its_iteration(rate: Any, batch_size: int | None) -> None:
    run = trainer(NUMPY, e_rate=rate, em_iterations=4, batch_size=batch_size)
    calls = recorded_steps(run, ["e_phase" if batch_size is None else "e_phase_batches"])
    assert run.run().status == "ok"
    assert [used for used, _ in calls] == [rate_at(rate, iteration) for iteration in (1, 2, 3, 4)]


@pytest.mark.parametrize("optimiser", ["adam", "l-bfgs"])
def test_a_point_after_m_steps_is_the_collapsed_bound_at_the_new_hyperparameters(
    optimiser: str,
) -> None:
    """One E-step of rate 1 is exact for a Gaussian, if it sees the kernel matrix of the θ it is at."""
    run = trainer(NUMPY, em_iterations=3, optimiser=optimiser)
    trained = run.run()
    bound = sgpr_bound(trained.theta, "matern52", PROBLEM.X, PROBLEM.y, 1e-6)
    assert trained.trace[-1]["elbo"] == pytest.approx(bound, rel=1e-10)
    assert trained.trace[0]["elbo"] != pytest.approx(bound, rel=1e-3)
    for held, fresh in zip(
        leaves(run.state.prior), leaves(run.steps.prior(run.state.raw)), strict=True
    ):
        assert np.array_equal(held, fresh)


@pytest.mark.parametrize("whiten", [True, False])
@pytest.mark.parametrize("batch_size", [None, 16])
def test_a_joint_step_is_one_adam_over_q_and_hyperparameters(
    ops: Ops, whiten: bool, batch_size: int | None
) -> None:
    """Against one Adam on the tree of both, up the gradient of the bound by autodiff."""
    variant = "q-svgp adam" if whiten else "q-svgp adam unwhitened"
    run = trainer(
        ops, variant, joint=True, m_steps=1, e_rate=0.05, em_iterations=4, batch_size=batch_size
    )
    model, method, learn = run.model, run.method, run.learn
    draws = Batches(ops, model, method, run.data, batch_size, 0)
    raw, q, rate = run.state.raw, run.state.q.q, ops.asarray(np.float64(0.05))
    adam = adam_start(ops, (trainable_part(raw, learn), q))

    def bound(both: Any, batch: Batch) -> Any:
        state, at = run.state.q._replace(q=both[1]), replace_trainable(raw, learn, both[0])
        return m_objective(ops, model, method, at, state, batch, run.scale)

    trained = run.run()
    for point in trained.trace:
        batch = draws.full(()) if batch_size is None else tree_map(first, draws.minibatches(1, ()))
        both = (trainable_part(raw, learn), MeanCholesky(q.mean, ops.tril(q.chol)))
        _, gradient = ops.value_and_grad(lambda x, batch=batch: bound(x, batch))(both)
        slope = (gradient[0], gradient[1]._replace(chol=ops.tril(gradient[1].chol)))
        (parts, q), adam = adam_ascent(ops, adam, both, slope, rate)
        raw = replace_trainable(raw, learn, parts)
        value = run.elbo(run.with_theta(run.state, raw)._replace(q=run.state.q._replace(q=q)))
        assert point["elbo"] == pytest.approx(value, rel=1e-9)
    assert trained.trace[-1]["elbo"] > trained.trace[0]["elbo"]


def first(x: Any) -> Any:
    return x[0]


def test_of_two_bases_each_starts_within_its_own_limit() -> None:
    one = np.ones((1, 3))
    growth = Growth.from_config(InducingConfig(count=5, gamma=20), 8)
    assert growth == Growth(increment=8, limit=5, limit_gamma=20)
    bases = growth.start(PROBLEM.X, one)
    assert (len(bases.beta), len(bases.gamma)) == (5, 8)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_hyperparameters_that_are_not_finite_have_diverged(monkeypatch: pytest.MonkeyPatch) -> None:
    run = trainer(NUMPY)

    def m_phase(state: TrainState) -> TrainState:
        kernel = state.raw.kernel._replace(variance=state.raw.kernel.variance * np.nan)
        return run.with_theta(state, state.raw._replace(kernel=kernel))

    monkeypatch.setattr(run, "m_phase", m_phase)
    failed = run.run()
    assert (failed.status, failed.message) == (
        "diverged",
        'θ is not finite at EM iteration 2; lower m_rate, or set steps = "guarded"',
    )
    assert [point["iteration"] for point in failed.trace] == [1]


@pytest.mark.parametrize("bound", [-1e92, 1e92, -1e17])
def test_a_bound_that_is_finite_and_absurd_has_diverged(
    monkeypatch: pytest.MonkeyPatch, bound: float
) -> None:
    run, given = trainer(NUMPY), iter((-1e3, bound))
    monkeypatch.setattr(run, "elbo", lambda at, blocks=None: next(given))
    failed = run.run()
    said = f"the bound is {bound:.3g} at EM iteration 2: no bound of these data; "
    said += 'lower e_rate or m_rate, or set steps = "guarded"'
    assert (failed.status, failed.message) == ("diverged", said)
    assert [point["elbo"] for point in failed.trace] == [-1e3]


def test_what_is_absurd_is_so_in_the_units_of_the_targets() -> None:
    run = trainer(NUMPY)
    limit = 1e12 * len(PROBLEM.y) * max(1.0, np.mean(PROBLEM.y**2))
    assert run.is_plausible_bound(-limit) and not run.is_plausible_bound(-1.01 * limit)
    large = replace(run.data, y=1e6 * run.data.y)
    model, method, theta = run.model, run.method, run.theta(run.state)
    assert Trainer(NUMPY, model, method, large, theta, run.settings).is_plausible_bound(
        -1e11 * limit
    )
