"""Seconds of a run: all of the training, awaited, and nothing of the evaluation, on a clock of our own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import small_training
import test_online
from fake_time import Clock, LazyOps, install
from small_cell import config

from svgpbench.checks.cases import build_model
from svgpbench.experiments import cell as cell_module
from svgpbench.experiments.cell import run_cell
from svgpbench.initialization.growing_basis import Growth
from svgpbench.training.em import Trained, Trainer
from svgpbench.training.online import OnlineTrainer
from svgpbench.tree import leaves

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


def trainer(clock: Clock, ops: type[LazyOps] = LazyOps, **changes: Any) -> Trainer:
    run = small_training.trainer(ops(clock, SECONDS), **({"m_steps": 2, "m_rate": 0.01} | changes))
    run.ops.sync(run.state.prior)
    return run


def seconds(trained: Trained) -> list[float]:
    return small_training.column(trained, "seconds")


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


def test_work_that_is_done_at_once_is_timed_alike(clock: Clock) -> None:
    assert seconds(trainer(clock, EagerOps).run()) == seconds(trainer(clock).run())


@pytest.mark.parametrize("ops", [LazyOps, EagerOps])
def test_a_climb_through_all_iterations_is_timed_without_its_evaluations(
    clock: Clock, ops: type[LazyOps], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SECONDS, "value_and_gradient", 1000.0)
    run = trainer(clock, ops, method="gpr", optimiser="l-bfgs", em_iterations=4)
    found = seconds(run.run())
    assert found[0] == E_PHASE + 1.0  # the prior at the same θ
    climbed = np.diff(found)
    assert np.all(climbed > 2 * 1000.0)  # two iterations of one evaluation or more
    assert np.all(climbed < 1e5)
    assert clock.now > 4e6


def test_a_joint_step_is_awaited_whole(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """q and θ move side by side: neither is done because the other is."""
    run, awaited = trainer(clock, method="q-svgp adam", m_steps=1, joint=True), list[Any]()
    monkeypatch.setattr(run.ops, "sync", lambda tree: awaited.extend(leaves(tree)))
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
    model = build_model("student-t", "matern52")
    found = seconds(trainer(clock, model=model, e_rate=0.1).run())
    assert np.diff(found).tolist() == [E_PHASE + M_PHASE] * 2


def test_a_second_run_starts_at_zero(clock: Clock) -> None:
    run = trainer(clock, m_steps=0)
    first = seconds(run.run())
    clock.now += 5e8
    assert seconds(run.run()) == first == [110.0, 220.0, 330.0]


def online(clock: Clock, **settings: Any) -> OnlineTrainer:
    usual = {"iterations": 6, "rates": (0.05,), "trace_every": 2} | settings
    run = test_online.trainer(growth=Growth(4, 4), ops=LazyOps(clock, SECONDS), **usual)
    run.ops.sync(run.state.prior)
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
