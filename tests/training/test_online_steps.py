"""Each online step stands for all rows and moves q and θ at the one rate of its iteration."""

from __future__ import annotations

import pytest
from small_training import recorded_steps
from test_online import trainer

from svgpbench.training.online import OnlineTrainer


def test_both_steps_weigh_a_batch_by_n_over_b_and_move_at_the_rate_of_the_iteration() -> None:
    run = trainer(iterations=4, decay=0.5, batch=50)
    seen = [recorded_steps(run, [name]) for name in ("e_phase", "m_phase")]
    assert run.run().status == "ok"
    rates = [0.1 / (1.0 + 0.5 * t**0.5) for t in range(4)]
    for calls in seen:
        assert [rate for rate, _ in calls] == pytest.approx(rates, rel=1e-14)
        assert [scale for _, scale in calls] == [500 / 50] * 4


def test_an_iteration_is_one_step_of_each_kind_whatever_an_em_iteration_would_be() -> None:
    run = trainer(iterations=4, trace_every=1)
    settings = run.settings.model_copy(update={"e_steps": 7, "m_steps": 9})
    theta = run.theta(run.state)._replace(inducing=())
    parts = (run.ops, run.model, run.method, run.data)
    other = OnlineTrainer(*parts, theta, settings, run.growth, 3)
    assert [p["elbo"] for p in other.run().trace] == pytest.approx(
        [p["elbo"] for p in run.run().trace], rel=1e-10
    )
