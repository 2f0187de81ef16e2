"""Runs that end once the bound has settled: never before it has by the rule that `run` reports."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_training import PROBLEM, trainer

from svgpbench.backends import load_backend
from svgpbench.checks.cases import build_model
from svgpbench.stats.convergence import bound_trace
from svgpbench.training.em import LEAST_EVALUATIONS, LEAST_ITERATIONS, Trained, Trainer

NUMPY = load_backend("numpy")
REGION = 0.001 * len(PROBLEM.y)


def moves_after(trained: Trained, minibatches: bool = False) -> list[float]:
    """The move of the bound at each point, by what was known there."""
    at = [point["iteration"] for point in trained.trace]
    elbo = [point["elbo"] for point in trained.trace]
    return [
        bound_trace(at[:k], elbo[:k], minibatches)._replace(region=REGION).move
        for k in range(1, len(at) + 1)
    ]


def settling(**changes: Any) -> Trainer:
    usual = {"until": "settled", "em_iterations": 400, "steps": "guarded", "m_rate": 0.2}
    return trainer(NUMPY, **usual | changes)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"optimiser": "l-bfgs"},
        {"method": "sgpr", "optimiser": "l-bfgs", "m_steps": 1},
        {"model": build_model("poisson", "matern52")},
        {"batch_size": 40, "e_rate": 0.1, "m_steps": 0},
        {"trace_every": 7},
    ],
    ids=["adam", "l-bfgs", "collapsed", "poisson", "minibatches", "sparse trace"],
)
def test_a_run_ends_at_the_first_point_where_the_bound_has_settled(changes: dict[str, Any]) -> None:
    trained = settling(**changes).run()
    assert trained.ended == "settled"
    moves = moves_after(trained, "batch_size" in changes)
    last = int(trained.trace[-1]["iteration"] or 0)
    assert LEAST_ITERATIONS <= last < 400
    assert moves[-1] == 0.0
    for point, move in zip(trained.trace[:-1], moves, strict=False):
        iteration = int(point["iteration"] or 0)
        known = [
            p for p in trained.trace if 0.75 * iteration <= int(p["iteration"] or 0) <= iteration
        ]
        assert move or iteration < LEAST_ITERATIONS or len(known) < LEAST_EVALUATIONS


def test_the_limit_ends_a_run_that_has_not_settled_and_a_run_that_may_not_settle() -> None:
    short = settling(em_iterations=5).run()
    assert (len(short.trace), short.ended == "settled") == (5, False)
    whole = settling(until="limit", em_iterations=60).run()
    assert (len(whole.trace), whole.ended == "settled") == (60, False)


def test_a_settled_run_is_the_start_of_the_run_to_the_limit() -> None:
    settled, whole = settling().run(), settling(until="limit", em_iterations=100).run()
    for one, other in zip(settled.trace, whole.trace, strict=False):
        assert {**one, "seconds": 0.0} == {**other, "seconds": 0.0}
    assert whole.trace[-1]["elbo"] == pytest.approx(settled.trace[-1]["elbo"], abs=0.01 * 48)


def test_a_failure_is_no_end_by_settling() -> None:
    run = settling()
    run.state = run.state._replace(raw=run.state.raw._replace(inducing=PROBLEM.Z * np.nan))
    failed = run.run()
    assert failed.status != "ok"
    assert failed.ended != "settled"


@pytest.mark.parametrize(
    ("likelihood", "settles"),
    [
        ("gaussian", True),
        ("student-t", True),
        ("bernoulli-probit", False),
        ("bernoulli-logit", False),
        ("softmax", False),
        ("robust-max", False),
        ("poisson", False),
    ],
)
def test_a_bound_of_few_labels_or_counts_may_move_by_a_share_of_itself_only(
    likelihood: str, settles: bool
) -> None:
    """A rise by 0.02 nats on 48 rows is small beside the rows, and large beside a bound of -9."""
    run = settling(model=build_model(likelihood, "matern52"))
    for rise, expected in ((0.02, settles), (0.005, True), (0.06, False)):
        bounds = [-9.0] * 17 + [-9.0 + rise] * 3
        points = tuple({"iteration": i, "elbo": x} for i, x in enumerate(bounds, start=1))
        assert run.has_settled(run.state._replace(iteration=20, trace=points)) == expected, rise
