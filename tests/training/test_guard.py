"""Guarded steps: the bound of a full-batch run never falls, on any method, likelihood and backend."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from small_training import PROBLEM, assert_traces_agree, column, trainer

from svgpbench.backends import load_backend
from svgpbench.checks.cases import USUAL, VARIANTS, likelihoods_of
from svgpbench.config import Decay, LikelihoodConfig, TrainingConfig
from svgpbench.kernels import Model
from svgpbench.kernels.kernels import kernel
from svgpbench.likelihoods import build_likelihood
from svgpbench.methods import build_method
from svgpbench.methods.step_control import MOST_HALVINGS
from svgpbench.ops import Ops
from svgpbench.training.em import Trainer
from svgpbench.training.guard import Slack, checks_e_steps, guarded_phase
from svgpbench.training.state import TrainState
from svgpbench.tree import tree_map

NUMPY = load_backend("numpy")
HARD: dict[str, dict[str, Any]] = {
    "student-t": {"scale": 0.02},  # far narrower than the errors at the start
    "robust-max": {"classes": 3, "epsilon": 1e-3},
    "softmax": {"classes": 3, "samples": 12},
}
SLACK = np.sqrt(np.finfo(np.float64).eps)


def hard_run(ops: Ops, method: str, likelihood: str, **settings: Any) -> Trainer:
    """A run that starts far from a good q and θ, with rates that are too large."""
    built = build_likelihood(LikelihoodConfig(name=likelihood, **HARD.get(likelihood, {})))
    model = Model(kernel("matern52"), built, 1e-6)
    of_method = build_method(*VARIANTS[method])
    theta = PROBLEM.theta(model, of_method.basis)
    theta = theta._replace(kernel=theta.kernel._replace(variance=np.array([9.0])))
    large = dataclasses.replace(PROBLEM, counts=300.0 * PROBLEM.counts)
    usual: dict[str, Any] = {"steps": "guarded", "em_iterations": 4, "m_steps": 3, "m_rate": 0.5}
    usual["e_rate"] = 0.01 if of_method.first_order else 1.0
    if "sgd" in method:  # its step is as long as the gradient, which counts of 1,000 make large
        usual["e_rate"] = 1e-5
    return trainer(ops, of_method, problem=large, model=model, theta=theta, **usual | settings)


def bounds(run: Trainer) -> list[float]:
    return column(run.run(), "elbo")


def largest_fall(values: list[float]) -> float:
    """The largest fall, in slacks: √ε(|bound| + n)."""
    before = np.array(values[:-1])
    return float(np.max(-np.diff(values) / (SLACK * (np.abs(before) + len(PROBLEM.y)))))


CASES = [
    (method, likelihood)
    for method in USUAL
    for likelihood in likelihoods_of(method)
    if "subset" not in method  # its KL is an estimate, from other points at every trace point
]


@pytest.mark.parametrize(("method", "likelihood"), CASES)
def test_the_bound_of_a_guarded_run_never_falls(method: str, likelihood: str) -> None:
    """Where E-steps are of Adam, or expectations are drawn, it may fall, but ends above its start."""
    run = hard_run(NUMPY, method, likelihood)
    values = bounds(run)
    assert np.isfinite(values).all()
    if not (run.method.first_order or run.model.likelihood.samples):
        # an iteration is an M-phase and an E-phase, and each may fall by its slack
        assert largest_fall(values) <= 2.0
    assert values[-1] > values[0]


@pytest.mark.parametrize(("likelihood", "rate"), [("poisson", 0.05), ("student-t", 0.5)])
def test_full_steps_ruin_what_guarded_ones_do_not(likelihood: str, rate: float) -> None:
    """The start is hard: without a guard the first E-step or the M-steps lower the bound."""
    method, settings = "t-svgp tied-projected", {"em_iterations": 8, "m_rate": rate}
    full = hard_run(NUMPY, method, likelihood, steps="full", **settings).run()
    values = [float(point["elbo"] or 0.0) for point in full.trace]
    guarded = bounds(hard_run(NUMPY, method, likelihood, **settings))
    assert full.status != "ok" or (largest_fall(values) > 1e3 and guarded[-1] > values[-1] + 10.0)


@pytest.mark.parametrize(
    ("method", "likelihood", "settings"),
    [
        ("t-svgp tied-projected", "poisson", {}),
        ("t-svgp untied", "student-t", {}),
        ("q-svgp natgrad", "poisson", {"e_steps": 2}),
        ("t-svgp tied-projected", "poisson", {"batch_size": 16, "e_rate": 0.3}),
        ("t-svgp tied-projected", "gaussian", {"m_rate": 2.0}),
    ],
)
def test_every_backend_cuts_the_same_steps_back(
    ops: Ops, method: str, likelihood: str, settings: dict[str, Any]
) -> None:
    reference = hard_run(NUMPY, method, likelihood, **settings).run()
    found = hard_run(ops, method, likelihood, **settings).run()
    assert len(reference.trace) == len(found.trace) == 4
    assert_traces_agree(found, reference, rel=1e-10)
    last = reference.trace[-1]
    cut_back = "m_halvings" if likelihood == "gaussian" else "halvings"
    assert int(last[cut_back] or 0) > 0


def test_a_gaussian_e_step_is_exact_and_is_not_checked() -> None:
    checked = {
        title: checks_e_steps(build_method(name, options), build_likelihood(LikelihoodConfig()))
        for title, (name, options) in VARIANTS.items()
    }
    assert not checked["t-svgp tied-projected"]
    assert not checked["q-svgp natgrad unwhitened"]
    assert not checked["t-vgp"]
    assert not checked["sgpr"]
    assert checked["q-svgp adam"]
    assert checked["orth natgrad newton"]
    assert checked["diagonal-precision exact"]


def run_of_phases(start: TrainState, values: dict[float, float]) -> tuple[TrainState, list[Any]]:
    """Guard a phase whose bound depends on its factor alone; it may fall by 0.01·10 + 0.1·4 from 10."""
    calls: list[Any] = []

    def phase(factor: float, adam: Any) -> TrainState:
        calls.append((factor, adam))
        return start._replace(iteration=1, seconds=factor)

    def bound(state: TrainState) -> float:
        return values[state.seconds] if state.iteration else values[0.0]

    return guarded_phase(phase, bound, start, "restart", Slack(0.01, 0.1), 4), calls  # type: ignore[arg-type]


def blank(**changes: Any) -> TrainState:
    state = TrainState((), (), (), "moments", ())  # type: ignore[arg-type]
    return state._replace(**changes)


def test_a_phase_runs_again_at_half_the_rate_with_new_moments_until_the_bound_has_not_fallen() -> (
    None
):
    values = {0.0: 10.0, 1.0: np.nan, 0.5: -np.inf, 0.25: 9.4, 0.125: 9.5}
    state, calls = run_of_phases(blank(m_halvings=2), values)
    assert calls == [(1.0, "moments")] + [(x, "restart") for x in (0.5, 0.25, 0.125)]
    assert (state.seconds, state.m_halvings, state.m_factor) == (0.125, 5, 0.125)


def test_the_rate_recovers_while_no_phase_is_cut_back() -> None:
    state, _ = run_of_phases(blank(m_factor=0.25), {0.0: 1.0, 0.25: 2.0})
    assert state.m_factor == pytest.approx(0.25 * 2**0.25)
    state, _ = run_of_phases(blank(m_factor=0.99), {0.0: 1.0, 0.99: 2.0})
    assert state.m_factor == 1.0


def test_a_phase_that_no_rate_mends_is_left_out() -> None:
    values = {0.0: 1.0} | {0.5**k: np.nan for k in range(MOST_HALVINGS)}
    start = blank()
    state, calls = run_of_phases(start, values)
    assert len(calls) == MOST_HALVINGS
    assert (state.iteration, state.adam) == (0, "restart")
    assert state.m_halvings == MOST_HALVINGS


def test_a_bound_that_is_not_finite_before_a_phase_refuses_only_what_is_not_finite() -> None:
    state, calls = run_of_phases(blank(), {0.0: np.nan, 1.0: np.inf, 0.5: -1e9})
    assert [factor for factor, _ in calls] == [1.0, 0.5]
    assert state.seconds == 0.5


def test_an_e_step_that_no_rate_mends_leaves_q_as_it_was() -> None:
    run = hard_run(NUMPY, "t-svgp tied-projected", "poisson", e_steps=2)
    batch = run.batches.full(run.state.raw.inducing)._replace(y=np.full(len(PROBLEM.y), np.nan))
    blocks = run.steps.factor(run.state.raw, run.state.prior, batch)
    q, count = run.guarded_steps.e_phase(
        run.state.raw, blocks, batch, run.state.q, run.one, run.one
    )
    assert float(count) == 2 * MOST_HALVINGS
    tree_map(np.testing.assert_array_equal, q, run.state.q)


def test_adam_and_joint_steps_stay_finite() -> None:
    """A rate of 1e3 throws q and θ away; guarded steps are cut back."""
    settings = {"e_rate": 1e3, "m_rate": 1e3, "m_steps": 1, "joint": True}
    run = hard_run(NUMPY, "q-svgp adam", "poisson", **settings)
    guarded = bounds(run)
    assert run.state.m_halvings > 0
    full = bounds(hard_run(NUMPY, "q-svgp adam", "poisson", steps="full", **settings))
    assert min(guarded) > max(full)


def test_l_bfgs_phases_never_lower_the_bound() -> None:
    for likelihood in ("poisson", "student-t", "robust-max"):
        run = hard_run(NUMPY, "t-svgp tied-projected", likelihood, optimiser="l-bfgs")
        assert largest_fall(bounds(run)) <= 2.0


def test_full_steps_are_the_default_and_a_rate_may_fall() -> None:
    assert TrainingConfig().steps == "full"
    assert TrainingConfig().until == "limit"
    run = hard_run(NUMPY, "t-svgp tied-projected", "poisson", e_rate=Decay(start=1.0))
    assert largest_fall(bounds(run)) <= 2.0
