"""The timed cases do what training does; `bench_steps.py` times them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from svgpbench.backends import load_backend
from svgpbench.benchmarks.timing import run_speed
from svgpbench.benchmarks.timing.cases import (
    STEPS,
    USUAL_STEPS,
    build_case,
    timed_method,
    usual_methods,
)
from svgpbench.benchmarks.timing.problems import (
    LATER,
    SHAPES,
    TimedProblem,
    fingerprint,
    make_problem,
    problem_of,
    shape_of,
)
from svgpbench.checks.cases import VARIANTS, likelihoods_of
from svgpbench.config import LEARN, TrainingConfig
from svgpbench.errors import UserError
from svgpbench.kernels import unconstrain
from svgpbench.libraries.steps import HELD_STEPS
from svgpbench.numerics.adam import adam_start
from svgpbench.ops import Ops
from svgpbench.runs.worker_setup import compilations
from svgpbench.training.batches import TrainingData
from svgpbench.training.blocks import Batch, trainable_part
from svgpbench.training.em import Trainer
from svgpbench.training.steps import compile_steps
from svgpbench.tree import leaves, tree_map

TINY = make_problem("tiny")
USUAL = ("t-svgp", "q-svgp", "q-svgp-autodiff")


def trainer(ops: Ops, problem: TimedProblem, method_title: str, e_steps: int = 1) -> Trainer:
    """The EM loop with the problem's batch for all its data, weighted as a batch of the data."""
    model = problem.model()
    data = TrainingData(problem.X, problem.y, problem.X_new, problem.y_new)
    settings = TrainingConfig(
        e_steps=e_steps,
        e_rate=float(problem.e_rate),
        m_steps=1,
        m_rate=float(problem.m_rate),
        learn=LEARN,
    )
    loop = Trainer(
        ops, model, timed_method(method_title).build(), data, problem.theta(model), settings
    )
    loop.scale = loop.one = ops.asarray(np.float64(problem.n / len(problem.y)))
    return loop


def assert_same(ops: Ops, ours: Any, theirs: Any) -> None:
    for a, b in zip(leaves(ours), leaves(theirs), strict=True):
        np.testing.assert_allclose(ops.to_numpy(a), ops.to_numpy(b), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("method", ["t-svgp", "q-svgp"])
def test_an_em_iteration_of_ten_sampled_classes_stays_in_the_cone(method: str) -> None:
    case = build_case(load_backend("torch"), make_problem("softmax10-M100"), method, "em_step")
    assert np.isfinite(case.figure(case.call()))


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("method", USUAL)
def test_every_case_runs_and_gives_a_finite_figure(ops: Ops, method: str, step: str) -> None:
    case = build_case(ops, TINY, method, step)
    result = case.call()
    assert all(np.all(np.isfinite(ops.to_numpy(x))) for x in leaves(result))
    assert np.isfinite(case.figure(result))


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("ops", ["jax", "tensorflow"], indirect=True)
def test_a_case_is_compiled_once_however_often_it_is_called(ops: Ops, step: str) -> None:
    case = build_case(ops, TINY, "t-svgp", step)
    case.call()
    first = compilations(ops, case.compiled)
    # predictions from kept factors share a function, which is compiled for each number of rows
    assert first == len(case.compiled) or step.startswith("predict_cached")
    for _ in range(2):
        case.call()
        assert compilations(ops, case.compiled) == first


def test_what_is_timed_unasked_is_what_methods_say_of_themselves() -> None:
    assert set(USUAL) <= set(usual_methods())


@pytest.mark.parametrize(
    "title", [title for title in VARIANTS if "gaussian" in likelihoods_of(title)]
)
def test_any_variant_of_any_method_can_be_timed(title: str) -> None:
    ops = load_backend("numpy")
    figures = []
    for step in USUAL_STEPS:
        case = build_case(ops, TINY, title, step)
        figures.append(case.figure(case.call()))
        assert np.isfinite(figures[-1]), step
    assert len(set(figures)) == len(USUAL_STEPS) or timed_method(title).build().collapsed


def test_a_likelihood_that_a_method_refuses_is_said_before_anything_starts() -> None:
    with pytest.raises(UserError, match="'gpr' cannot take 'bernoulli-probit': it has Gaussian"):
        run_speed(["tiny", "tiny-bern"], ["numpy"], methods=["gpr"])


@pytest.mark.parametrize("problem", [make_problem("tiny-bern")], ids=["tiny-bern"])
def test_methods_of_natural_gradients_show_one_figure(ops: Ops, problem: TimedProblem) -> None:
    cases = [build_case(ops, problem, method, "e_step") for method in USUAL]
    figures = [case.figure(case.call()) for case in cases]
    np.testing.assert_allclose(figures, figures[0], rtol=1e-10)


@pytest.mark.parametrize("method", USUAL)
@pytest.mark.parametrize(("step", "count"), [("e_step", 1), ("e_step_held", HELD_STEPS)])
def test_e_step_case_is_the_e_phase_of_training(
    ops: Ops, method: str, step: str, count: int
) -> None:
    loop = trainer(ops, TINY, method, count)
    loop.state, _ = loop.e_phase(loop.state)
    assert_same(ops, build_case(ops, TINY, method, step).call(), loop.state.q)


@pytest.mark.parametrize("method", USUAL)
def test_m_step_and_predict_cases_are_those_of_training(ops: Ops, method: str) -> None:
    loop = trainer(ops, TINY, method)
    loop.state, _ = loop.e_phase(loop.state)
    predicted = loop.steps.predict(
        loop.state.raw, loop.state.prior, loop.state.q, loop.batches.test()
    )
    assert_same(ops, build_case(ops, TINY, method, "predict").call(), predicted)
    loop.state = loop.m_phase(loop.state)
    expected = (loop.state.raw, loop.state.prior, loop.state.q, loop.state.adam)
    assert_same(ops, build_case(ops, TINY, method, "m_step").call(), expected)


@pytest.mark.parametrize("rows", [1, 100])
@pytest.mark.parametrize("method", USUAL)
def test_predictions_from_kept_factors_are_those_of_training(
    ops: Ops, method: str, rows: int
) -> None:
    loop = trainer(ops, TINY, method)
    loop.state, _ = loop.e_phase(loop.state)
    at = np.resize(np.arange(len(TINY.y_new)), rows)
    new = tree_map(ops.asarray, Batch(TINY.X_new[at], TINY.y_new[at], np.arange(rows)))
    predicted = loop.steps.predict(loop.state.raw, loop.state.prior, loop.state.q, new)
    case = build_case(ops, TINY, method, f"predict_cached_{rows}")
    assert STEPS[f"predict_cached_{rows}"] == rows  # the time is that of one
    assert_same(ops, case.call(), predicted)
    assert case.figure(case.call()) == pytest.approx(
        float(np.mean(ops.to_numpy(predicted.log_density)))
    )


@pytest.mark.parametrize("method", USUAL)
def test_em_step_takes_e_steps_on_fresh_batches_and_an_m_step_on_one_more(
    ops: Ops, method: str
) -> None:
    """Built of single steps at θ, each from its own blocks."""
    model, built = TINY.model(), timed_method(method).build()
    steps = compile_steps(ops, model, built, 1, 1, LEARN)
    raw = tree_map(ops.asarray, unconstrain(TINY.theta(model)))
    prior = steps.prior(raw)
    scale = ops.asarray(np.float64(60 / 16))
    e_rate, m_rate = ops.asarray(TINY.e_rate), ops.asarray(TINY.m_rate)
    state = built.initial_state(ops, prior, 1, 60)
    first = [(TINY.X, TINY.y, TINY.rows)]
    later = list(zip(TINY.X_later, TINY.y_later, TINY.rows_later, strict=True))
    for drawn in first + later[:3]:
        batch = Batch(*map(ops.asarray, drawn))
        f = steps.factor(raw, prior, batch)
        state = steps.e_phase(raw, f, batch, state, e_rate, scale)
    last = Batch(*(ops.asarray(np.asarray(x)[None]) for x in later[3]))
    adam = adam_start(ops, trainable_part(raw, LEARN))
    expected = steps.m_phase_batches(raw, prior, state, adam, last, m_rate, scale)
    assert_same(ops, build_case(ops, TINY, method, "em_step").call(), expected)


@pytest.mark.parametrize("step", STEPS)
def test_with_the_peers_estimates_a_sampled_likelihood_shows_the_peers_figure(
    ops: Ops, step: str
) -> None:
    """q-svgp-autodiff differentiates the sampled V̂, as peers do."""
    problem = make_problem("tiny-softmax")
    case = build_case(ops, problem, "q-svgp", step)
    own, as_peers = case.figure(case.call()), case.as_peers
    theirs = build_case(ops, problem, "q-svgp-autodiff", step)
    assert as_peers is not None
    assert as_peers() == pytest.approx(theirs.figure(theirs.call()), rel=1e-9)
    assert as_peers() != pytest.approx(own, rel=1e-3)
    assert build_case(ops, TINY, "q-svgp", step).as_peers is None


def test_a_case_starts_from_the_same_state_every_time(ops: Ops) -> None:
    case = build_case(ops, TINY, "t-svgp", "m_step")
    assert case.figure(case.call()) == case.figure(case.call())


def test_figures_are_the_mean_log_density_and_the_bound_after_the_step() -> None:
    ops = load_backend("numpy")
    case = build_case(ops, TINY, "t-svgp", "predict")
    predicted = case.call()
    mean = np.mean(predicted.log_density)
    assert case.figure(predicted) == pytest.approx(mean, rel=1e-14)
    assert mean != pytest.approx(np.mean(predicted.mean), rel=1e-3)
    loop = trainer(ops, TINY, "t-svgp")
    loop.state, _ = loop.e_phase(loop.state)
    after = loop.bound_over(
        loop.state, list(loop.batches.evaluation(loop.state.raw.inducing)), float(loop.scale)
    )
    case = build_case(ops, TINY, "t-svgp", "e_step")
    assert case.figure(case.call()) == pytest.approx(after, rel=1e-12)


PINNED = {
    "tiny-softmax": "e2b26dd51031f5a0",
    "softmax10-M100": "6e50130eac464b0c",
    "reg-M100": "c61fb1e2b34fe765",
    "reg-M500": "eab5d16aee731f8b",
    "reg-M500-b8192": "dc5cdeff3556048d",
    "bern-M100": "3a0a534c3fdbd4d0",
    "bern-M500": "15fc85abeec19875",
    "roads-M200": "8622becb8493a7e6",
    "roads-M2000": "47c346cd80b34960",
    "tiny": "8a790b82acdbf4ca",
    "tiny-bern": "3181bb4895034ea5",
}


@pytest.mark.parametrize("name", SHAPES)
def test_problem_is_the_same_numbers_everywhere(name: str) -> None:
    problem, shape = make_problem(name), SHAPES[name]
    assert fingerprint(problem) == fingerprint(make_problem(name)) == PINNED[name]
    assert problem.X.shape == (shape.b, shape.D) and problem.Z.shape == (shape.M, shape.D)
    assert problem.X_later.shape == (LATER, shape.b, shape.D)
    assert problem.X_new.shape == (shape.t, shape.D) and problem.n == shape.n


def test_two_bases_have_the_sizes_that_a_shape_names() -> None:
    sizes_of = {
        "roads-M200": (350, 150),
        "roads-M2000": (3500, 1500),
        "reg-M100": (100, 100),
    }
    for name, sizes in sizes_of.items():
        problem = make_problem(name)
        gamma, beta = problem.theta(problem.model(), "decoupled").inducing
        assert (len(gamma), len(beta)) == sizes
        assert len(problem.theta(problem.model()).inducing) == shape_of(name).M


def test_a_family_has_any_m_and_is_its_own_shape_but_for_that() -> None:
    assert {name: shape_of(name) for name in SHAPES} == SHAPES
    assert shape_of("softmax10-M25") == SHAPES["softmax10-M100"]._replace(M=25)
    assert shape_of("reg-M250") == SHAPES["reg-M500"]._replace(M=250)
    large = shape_of("bern-M2048")
    assert large == SHAPES["bern-M500"]._replace(M=2048, t=2048)
    assert len(problem_of(large._replace(D=2)).Z) == 2048


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("reg-M025", "unknown speed problem 'reg-M025'; did you mean"),
        ("sofmax10-M25", "'softmax10-M"),
        ("tiny-M5", "softmax10-M<number>"),
        ("reg-M", "reg-M<number>"),
        ("reg-M11935", "inducing inputs are reg's rows; take an M up to 11934"),
    ],
)
def test_an_m_that_there_is_not_is_one_line(name: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        shape_of(name)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("problem", "method", "step", "near"),
    [("tiny", "tsvgp", "e_step", "t-svgp"), ("tiny", "t-svgp", "estep", "e_step")],
)
def test_unknown_name_is_told_with_the_nearest(
    ops: Ops, problem: str, method: str, step: str, near: str
) -> None:
    with pytest.raises(UserError, match=f"did you mean '{near}'"):
        build_case(ops, make_problem(problem), method, step)
