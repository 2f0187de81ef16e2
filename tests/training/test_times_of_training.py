"""Seconds of a run: all of the training, awaited, and nothing of the evaluation, on a clock of our own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fake_time import Clock, LazyOps, install
from small_cell import config

from svgpbench.checks.cases import VARIANTS, build_model, small_problem
from svgpbench.config import OnlineConfig, TrainingConfig
from svgpbench.experiments import cell as cell_module
from svgpbench.experiments.cell import run_cell
from svgpbench.initialization.growing_basis import Growth
from svgpbench.methods import build_method
from svgpbench.training.batches import TrainingData
from svgpbench.training.em import Trained, Trainer
from svgpbench.training.online import OnlineTrainer
from svgpbench.tree import leaves

PROBLEM = small_problem()
SECONDS = {
    "prior": 1.0,
    "factor": 10.0,
    "e_phase": 100.0,
    "e_phase_batches": 100.0,
    "m_phase": 1000.0,
    "m_phase_batches": 1000.0,
    # of the evaluation
    "bound": 1e5,
    "predict": 1e6,
    "negative_beta": 1e7,
}
"""A decimal place each: a sum says which steps are in it, and how often."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return install(monkeypatch)


def trainer(clock: Clock, likelihood: str = "gaussian", **settings: Any) -> Trainer:
    model = build_model(likelihood, "matern52")
    targets = PROBLEM.targets(model.likelihood.support)
    data = TrainingData(PROBLEM.X, targets, PROBLEM.X[:9], targets[:9])
    name, options = VARIANTS["t-svgp tied-projected"]
    ops = LazyOps(clock, SECONDS)
    training = TrainingConfig(**({"em_iterations": 3, "m_steps": 2, "m_rate": 0.01} | settings))
    run = Trainer(ops, model, build_method(name, options), data, PROBLEM.theta(model), training)
    ops.sync(run.state.prior)
    return run


def seconds(trained: Trained) -> list[float]:
    assert trained.status == "ok", trained.message
    return [float(point["seconds"] or 0.0) for point in trained.trace]


E_PHASE, M_PHASE = 110.0, 1000.0  # factor and steps; steps, the prior at the new θ among them


def test_training_is_timed_to_its_end_and_evaluation_is_not(clock: Clock) -> None:
    found = seconds(trainer(clock).run())
    assert found == [E_PHASE, 2 * E_PHASE + M_PHASE, 3 * E_PHASE + 2 * M_PHASE]
    assert clock.now > 3e6  # which the evaluation took


class EagerOps(LazyOps):
    """NumPy as it is: a step is done when its call returns."""

    def jit(self, f: Any) -> Any:
        lazy = super().jit(f)

        def done(*arguments: Any) -> Any:
            out = lazy(*arguments)
            if not self._depth:
                self.sync(out)
            return out

        return done


def test_work_that_is_done_at_once_is_timed_alike(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    awaited = seconds(trainer(clock).run())
    monkeypatch.setitem(globals(), "LazyOps", EagerOps)
    assert seconds(trainer(clock).run()) == awaited


@pytest.mark.parametrize("ops", [LazyOps, EagerOps])
def test_a_climb_through_all_iterations_is_timed_without_its_evaluations(
    clock: Clock, ops: type[LazyOps]
) -> None:
    model = build_model("gaussian", "se")
    data = TrainingData(PROBLEM.X, PROBLEM.y, PROBLEM.X[:9], PROBLEM.y[:9])
    training = TrainingConfig(optimiser="l-bfgs", em_iterations=4, m_steps=2)
    lazy = ops(clock, SECONDS | {"value_and_gradient": 1000.0})
    theta = PROBLEM.theta(model)._replace(inducing=PROBLEM.X)
    run = Trainer(lazy, model, build_method("gpr", {}), data, theta, training)
    lazy.sync(run.state.prior)
    found = seconds(run.run())
    assert found[0] == E_PHASE + 1.0  # the prior at the same θ
    climbed = np.diff(found)
    assert np.all(climbed > 2 * 1000.0)  # two iterations of one evaluation or more
    assert np.all(climbed < 1e5)
    assert clock.now > 4e6


def test_a_joint_step_is_awaited_whole(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """q and θ move side by side: neither is done because the other is."""
    model, awaited = build_model("gaussian", "se"), list[Any]()
    data = TrainingData(PROBLEM.X, PROBLEM.y, PROBLEM.X[:9], PROBLEM.y[:9])
    ops, (name, options) = LazyOps(clock, SECONDS), VARIANTS["q-svgp adam"]
    monkeypatch.setattr(ops, "sync", lambda tree: awaited.extend(leaves(tree)))
    training = TrainingConfig(em_iterations=2, m_steps=1, joint=True)
    run = Trainer(ops, model, build_method(name, options), data, PROBLEM.theta(model), training)
    awaited.clear()
    state = run.iterate(run.state)
    assert {id(x) for x in leaves((state.prior, state.q))} <= {id(x) for x in awaited}


def test_minibatches_are_timed_alike(clock: Clock) -> None:
    found = seconds(trainer(clock, batch_size=16, e_rate=0.5).run())
    # a batch brings its factor along, compiled into the steps
    assert np.diff(found).tolist() == [100.0 + M_PHASE] * 2
    assert found[0] == 100.0


def test_a_sparse_trace_tells_the_same_seconds(clock: Clock) -> None:
    whole = seconds(trainer(clock, em_iterations=7).run())
    sparse = seconds(trainer(clock, em_iterations=7, trace_every=3).run())
    assert sparse == [whole[at - 1] for at in (1, 3, 6, 7)]


def test_counts_of_negative_precisions_are_evaluation(clock: Clock) -> None:
    found = seconds(trainer(clock, "student-t", e_rate=0.1).run())
    assert np.diff(found).tolist() == [E_PHASE + M_PHASE] * 2


def test_a_second_run_starts_at_zero(clock: Clock) -> None:
    run = trainer(clock, m_steps=0)
    first = seconds(run.run())
    clock.now += 5e8
    assert seconds(run.run()) == first == [110.0, 220.0, 330.0]


def online(clock: Clock, **settings: Any) -> OnlineTrainer:
    model = build_model("gaussian", "se")
    data = TrainingData(PROBLEM.X, PROBLEM.y, PROBLEM.X[:9], PROBLEM.y[:9])
    ops = LazyOps(clock, SECONDS)
    rates = {"iterations": 6, "increment": 4, "rates": (0.05,), "trace_every": 2} | settings
    training = TrainingConfig(kind="online", batch_size=24, online=OnlineConfig(**rates))
    theta = PROBLEM.theta(model)._replace(inducing=())
    method = build_method("t-svgp", {})
    run = OnlineTrainer(ops, model, method, data, theta, training, Growth(4, 4))
    ops.sync(run.state.prior)
    return run


STEP = 10.0 + 100.0 + 1000.0  # factor, q, θ with the prior there


def test_online_steps_are_timed_to_their_end_and_evaluation_is_not(clock: Clock) -> None:
    assert seconds(online(clock).run()) == [STEP, 2 * STEP, 4 * STEP, 6 * STEP]


@pytest.mark.parametrize("rates", [(0.05, 1e-4), (1e-4, 0.05)])
def test_trials_that_were_not_chosen_are_not_timed(clock: Clock, rates: tuple[float, ...]) -> None:
    """Whether they come before the chosen one or after it."""
    trained = online(clock, rates=rates, trial=2).run()
    assert trained.trace[-1]["gamma0"] == 0.05
    found = seconds(trained)
    assert found == [STEP, 2 * STEP, 4 * STEP, 6 * STEP]


def test_a_cell_reports_the_seconds_of_its_last_point(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = cell_module.load_backend
    lazy = LazyOps(clock, SECONDS)
    monkeypatch.setattr(
        cell_module, "load_backend", lambda *w: lazy if len(w) > 1 else real("numpy")
    )
    outcome = run_cell(config())
    assert outcome.timing == {"train_s": outcome.trace["seconds"][-1]}
    # the prior that the run was built with is awaited with the first steps
    assert outcome.timing["train_s"] == 1.0 + 2 * E_PHASE + M_PHASE
