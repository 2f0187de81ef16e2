"""An `EvaluationPlan`: when a run is evaluated, on which rows, and what its bound estimates."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from small_training import PROBLEM, recorded_steps, trainer

from svgpbench.backends import load_backend
from svgpbench.checks.cases import MatrixCase, build_model
from svgpbench.checks.dense.gaussians import Dense
from svgpbench.config import EvaluationPlan, TrainingConfig
from svgpbench.ops import Ops
from svgpbench.training import batches
from svgpbench.training.batches import chosen_rows
from svgpbench.training.em import Trainer

NUMPY = load_backend("numpy")


@pytest.mark.parametrize(
    ("count", "last", "iterations"),
    [
        (4, 1000, {1, 10, 100, 1000}),
        (4, 25000, {25, 250, 2500, 25000}),
        (7, 1000, {1, 4, 10, 32, 100, 317, 1000}),  # √10 = 3.16…
        (4, 55, {1, 6, 55}),  # 0.055, 0.55, 5.5
        (2, 12, {1, 12}),
        (40, 1, {1}),
    ],
)
def test_evaluations_are_evenly_spaced_in_log_time(
    count: int, last: int, iterations: set[int]
) -> None:
    settings = TrainingConfig(em_iterations=last, evaluation=EvaluationPlan(count=count))
    traced = {i for i in range(1, last + 1) if settings.is_traced(i)}
    assert traced == iterations


@given(st.integers(2, 60), st.integers(1, 10**6))
def test_shares_are_equal_for_runs_of_different_lengths(count: int, last: int) -> None:
    found = sorted(EvaluationPlan(count=count).iterations(last))
    shares = np.logspace(-3, 0, count)
    wanted = np.maximum(shares * last, 1)  # the first iteration at which the share is over
    assert found[0] >= 1 and found[-1] == last
    at = np.array([min(found, key=lambda i, x=x: abs(i - x - 0.5)) for x in wanted])
    assert np.all((at - wanted > -1e-6) & (at - wanted < 1 + 1e-6))
    assert len(found) <= count


def test_a_plan_takes_the_place_of_the_trace_s_steps() -> None:
    settings = TrainingConfig(em_iterations=20, trace_every=3, evaluation=EvaluationPlan(count=2))
    assert [i for i in range(1, 21) if settings.is_traced(i)] == [1, 20]


@pytest.mark.parametrize(
    "wrong", [{"count": 1}, {"count": 2, "rows": 3}, {"count": 2, "train_rows": 0}]
)
def test_a_plan_has_at_least_two_evaluations(wrong: dict[str, int]) -> None:
    with pytest.raises(ValidationError, match=list(wrong)[-1]):
        EvaluationPlan.model_validate(wrong)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1])
def test_a_cool_down_is_a_share(share: float) -> None:
    with pytest.raises(ValidationError, match="cool_down"):
        TrainingConfig(cool_down=share)


def test_chosen_rows_are_a_fixed_sample_without_replacement() -> None:
    rows = chosen_rows(1000, 50)
    assert rows is not None
    assert len(set(rows.tolist())) == 50 and (np.diff(rows) > 0).all()
    assert rows[0] >= 0 and rows[-1] < 1000
    again = chosen_rows(1000, 50)
    assert np.array_equal(rows, again)
    assert rows.tolist() != list(range(50))
    assert chosen_rows(50, 50) is chosen_rows(50, None) is chosen_rows(50, 60) is None
    # every row is as likely: first and second half, of many numbers of rows
    halves = Counter(
        bool(row >= n / 2) for n in range(40, 400) for row in np.asarray(chosen_rows(n, 10))
    )
    assert halves[True] == pytest.approx(1800, abs=150)
    assert rows[:5].tolist() == PINNED


PINNED = [1, 16, 19, 21, 54]


def planned(
    ops: Ops, *, train_rows: int | None, likelihood: str = "gaussian", **changes: Any
) -> Trainer:
    plan = EvaluationPlan(count=2, train_rows=train_rows)
    model = build_model(likelihood, "matern52")
    settings = {"em_iterations": 2, "e_steps": 2, "e_rate": 0.5, "evaluation": plan} | changes
    return trainer(ops, model=model, **settings)


def dense_bound(run: Trainer, likelihood: str, rows: Any) -> float:
    """Return (n/rows) ΣV − KL over some rows at the state of a run."""
    q = run.method.factorise(run.ops, run.state.prior, run.state.q)
    m, S = run.method.posterior(run.ops, run.state.prior, q)
    case = MatrixCase("t-svgp tied-projected", likelihood, "matern52")
    X, y = run.data.X[rows], run.data.y[rows]
    return Dense(case, run.theta(run.state), X, y, len(run.data.y) / len(y)).elbo(m, S)


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli-probit"])
@pytest.mark.parametrize("batch_size", [None, 16])
@pytest.mark.parametrize("at_once", [5000, 3])
def test_a_bound_over_a_sample_is_scaled_and_has_the_whole_kl(
    monkeypatch: pytest.MonkeyPatch, likelihood: str, batch_size: int | None, at_once: int
) -> None:
    """At once, or in chunks of three rows."""
    monkeypatch.setattr(batches, "EVALUATION_ROWS", at_once)
    run = planned(NUMPY, train_rows=11, likelihood=likelihood, batch_size=batch_size)
    point = run.run().trace[-1]
    rows = chosen_rows(len(PROBLEM.X), 11)
    assert point["elbo"] == pytest.approx(dense_bound(run, likelihood, rows), rel=1e-9)
    assert point["elbo"] != pytest.approx(dense_bound(run, likelihood, slice(None)), rel=1e-3)


def test_every_backend_sees_the_same_rows(ops: Ops) -> None:
    wanted = planned(NUMPY, train_rows=11, batch_size=16).run().trace
    found = planned(ops, train_rows=11, batch_size=16).run().trace
    for one, other in zip(found, wanted, strict=True):
        assert one["elbo"] == pytest.approx(other["elbo"], rel=1e-11)


def test_training_does_not_depend_on_what_is_evaluated() -> None:
    whole = planned(NUMPY, train_rows=None, batch_size=16).run()
    sampled = planned(NUMPY, train_rows=11, batch_size=16).run()
    every = planned(NUMPY, train_rows=None, batch_size=16, evaluation=None).run()
    for other in (sampled, every):
        assert other.trace[-1]["nlpd"] == whole.trace[-1]["nlpd"]
    assert every.trace[-1]["elbo"] == whole.trace[-1]["elbo"] != sampled.trace[-1]["elbo"]


def test_a_sample_of_more_rows_than_there_are_is_all_rows() -> None:
    whole = planned(NUMPY, train_rows=None).run().trace
    more = planned(NUMPY, train_rows=len(PROBLEM.X)).run().trace
    assert [x["elbo"] for x in more] == [x["elbo"] for x in whole]


@pytest.mark.parametrize("optimiser", ["adam", "l-bfgs"])
def test_a_collapsed_bound_is_no_sum_over_rows_and_is_never_estimated(optimiser: str) -> None:
    plan = EvaluationPlan(count=2, train_rows=11)
    settings = {"optimiser": optimiser, "em_iterations": 2}
    sampled, whole = (
        trainer(NUMPY, "sgpr", evaluation=x, **settings).run().trace for x in (plan, None)
    )
    assert [x["elbo"] for x in sampled] == [x["elbo"] for x in whole]


@pytest.mark.parametrize("batch_size", [None, 16])
@pytest.mark.parametrize("joint", [False, True])
def test_the_rates_of_q_and_of_hyperparameters_fall_together(
    batch_size: int | None, joint: bool
) -> None:
    variant = "q-svgp adam" if joint else "t-svgp tied-projected"
    steps = {"joint": True, "m_steps": 1} if joint else {}
    run = trainer(
        NUMPY,
        variant,
        em_iterations=6,
        e_rate=0.4,
        m_rate=0.02,
        batch_size=batch_size,
        cool_down=0.5,
        **steps,
    )
    e_steps = recorded_steps(run, ["e_phase", "e_phase_batches"])
    m_steps = recorded_steps(run, ["m_phase", "m_phase_batches"])
    assert run.run().status == "ok"
    factors = np.array([1, 1, 1, 10 ** (-1 / 3), 10 ** (-2 / 3), 0.1])
    assert [rate for rate, _ in e_steps] == pytest.approx(0.4 * factors, rel=1e-12)
    # of separate steps, the M-phase follows the E-phase of its iteration, and the last has none
    wanted = 0.02 * (factors if joint else factors[:-1])
    assert [rate for rate, _ in m_steps] == pytest.approx(wanted, rel=1e-12)


def test_a_cooled_run_is_two_runs_by_hand() -> None:
    """The second EM iteration of two has a tenth of both rates, and Adam's moments go on."""
    settings = {"e_rate": 0.5, "m_steps": 3, "batch_size": 16}
    cooled = trainer(NUMPY, em_iterations=3, m_rate=0.05, cool_down=0.5, **settings).run()
    by_hand = trainer(NUMPY, em_iterations=3, m_rate=0.05, **settings)
    bounds = []
    for factor in (1.0, 10 ** (-1 / 3), 0.1):  # 1.5 of the three iterations are cooled
        by_hand.settings = by_hand.settings.model_copy(update={"e_rate": 0.5 * factor})
        by_hand.state = by_hand.iterate(by_hand.state)
        by_hand.m_rate = NUMPY.asarray(np.float64(0.05 * factor))
        bounds.append(by_hand.state.trace[-1]["elbo"])
    assert [x["elbo"] for x in cooled.trace] == pytest.approx(bounds, rel=1e-12)
    plain = trainer(NUMPY, em_iterations=3, m_rate=0.05, **settings).run()
    assert plain.trace[0]["elbo"] == cooled.trace[0]["elbo"]
    assert plain.trace[1]["elbo"] != cooled.trace[1]["elbo"]
