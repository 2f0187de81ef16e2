"""The EM loop: what it traces, how it fails, and that every backend sees the same run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from small_training import PROBLEM, assert_traces_agree, column, trainer

from svgpbench.backends import load_backend
from svgpbench.checks.cases import MatrixCase, build_model
from svgpbench.checks.dense import kernel_matrix, sgpr_bound
from svgpbench.checks.dense.gaussians import Dense
from svgpbench.config import LEARN
from svgpbench.errors import UserError
from svgpbench.initialization.inducing_inputs import initial_inducing_inputs
from svgpbench.ops import Ops
from svgpbench.plugins import frameworks
from svgpbench.training.em import Trainer
from svgpbench.training.state import TrainState
from svgpbench.tree import leaves


def test_every_backend_gives_the_same_trace(ops: Ops) -> None:
    assert_traces_agree(trainer(ops).run(), trainer(load_backend("numpy")).run(), rel=1e-11)


def test_minibatches_are_the_same_on_every_backend(ops: Ops) -> None:
    settings = {"batch_size": 16, "e_steps": 5, "e_rate": 0.5}
    expected = column(trainer(load_backend("numpy"), **settings).run(), "elbo")
    assert column(trainer(ops, **settings).run(), "elbo") == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize(
    "settings",
    [{}, {"batch_size": 16, "e_rate": 0.5}, {"optimiser": "l-bfgs"}],
    ids=["full batch", "minibatches", "l-bfgs"],
)
def test_a_sparser_trace_has_the_same_points(settings: dict[str, Any]) -> None:
    numpy = load_backend("numpy")
    whole = trainer(numpy, em_iterations=8, **settings).run()
    sparse = trainer(numpy, em_iterations=8, trace_every=3, **settings).run()
    assert [point["iteration"] for point in sparse.trace] == [1, 3, 6, 8]
    for point in sparse.trace:
        other = whole.trace[int(point["iteration"] or 0) - 1]
        assert {**point, "seconds": 0.0} == {**other, "seconds": 0.0}


def test_a_failure_between_trace_points_ends_the_run_at_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = trainer(load_backend("numpy"), em_iterations=8, trace_every=3)
    spoil = run.e_phase

    def e_phase(state: TrainState) -> tuple[TrainState, Any]:
        state, blocks = spoil(state)
        if state.iteration == 4:
            state = state._replace(q=state.q._replace(C=state.q.C * np.nan))
        return state, blocks

    monkeypatch.setattr(run, "e_phase", e_phase)
    failed = run.run()
    assert failed.status != "ok"
    assert "at EM iteration 6; lower " in failed.message
    assert [point["iteration"] for point in failed.trace] == [1, 3]


def test_first_trace_point_is_the_collapsed_bound_before_any_m_step() -> None:
    run = trainer(load_backend("numpy"))
    bound = sgpr_bound(PROBLEM.theta(run.model), "matern52", PROBLEM.X, PROBLEM.y, 1e-6)
    assert column(run.run(), "elbo")[0] == pytest.approx(bound, rel=1e-12)


def test_untied_m_step_never_lowers_the_bound_of_a_gaussian_fit() -> None:
    run = trainer(load_backend("numpy"), "t-svgp untied", em_iterations=8)
    assert all(np.diff(column(run.run(), "elbo")) > 0.0)


def test_bound_in_chunks_is_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("svgpbench.training.batches.EVALUATION_ROWS", 13)
    run = trainer(load_backend("numpy"), batch_size=16)
    run.state, _ = run.e_phase(run.state)
    in_chunks = run.elbo(run.state)
    monkeypatch.setattr("svgpbench.training.batches.EVALUATION_ROWS", 1000)
    assert in_chunks == pytest.approx(run.elbo(run.state), rel=1e-13)


def test_chunks_shrink_as_bases_grow_and_metrics_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    run = trainer(load_backend("numpy"), batch_size=16)
    run.state, _ = run.e_phase(run.state)
    whole = (run.elbo(run.state), run.metrics(run.state))
    assert [len(b.y) for b in run.batches.evaluation(run.state.raw.inducing)] == [48]
    monkeypatch.setattr("svgpbench.training.batches.EVALUATION_ENTRIES", 4 * len(PROBLEM.Z))
    assert [len(b.y) for b in run.batches.evaluation(run.state.raw.inducing)] == [4] * 12
    assert [len(b.y) for b in run.batches.test_chunks(run.state.raw.inducing)] == [4, 4, 2]
    assert run.elbo(run.state) == pytest.approx(whole[0], rel=1e-13)
    assert run.metrics(run.state) == pytest.approx(whole[1], rel=1e-13)


def test_metrics_in_original_units() -> None:
    point = trainer(load_backend("numpy")).run().trace[-1]
    assert point["nlpd_original"] == pytest.approx(float(point["nlpd"] or 0) + np.log(2.0))
    assert point["rmse_original"] == pytest.approx(2.0 * float(point["rmse"] or 0))


def test_metrics_agree_with_a_dense_prediction() -> None:
    run = trainer(load_backend("numpy"), em_iterations=1)
    point = run.run().trace[-1]
    theta = PROBLEM.theta(run.model)
    X, t, s2 = PROBLEM.X, run.data.X_test, 0.3
    Z = np.asarray(theta.inducing)
    Kuu = kernel_matrix("matern52", theta, Z, Z) + 1e-6 * np.eye(len(Z))
    Kuf, Kut = (kernel_matrix("matern52", theta, Z, A) for A in (X, t))
    precision = Kuu + Kuf @ Kuf.T / s2
    mean = Kut.T @ np.linalg.solve(precision, Kuf @ PROBLEM.y) / s2
    v = 1.7 - np.sum(Kut * (np.linalg.solve(Kuu, Kut) - np.linalg.solve(precision, Kut)), axis=0)
    error = run.data.y_test - mean
    nlpd = np.mean(0.5 * np.log(2 * np.pi * (v + s2)) + error**2 / (2 * (v + s2)))
    assert point["rmse"] == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-9)
    assert point["nlpd"] == pytest.approx(nlpd, rel=1e-9)


def test_classification_makes_half_the_errors_of_the_larger_class() -> None:
    at_ten = trainer(load_backend("numpy"), model=build_model("bernoulli-probit", "se"), e_steps=4)
    labels = PROBLEM.labels
    data = replace(at_ten.data, X_test=PROBLEM.X + 0.1, y_test=labels)
    parts = (at_ten.ops, at_ten.model, at_ten.method, data)
    point = Trainer(*parts, PROBLEM.theta(at_ten.model), at_ten.settings).run().trace[-1]
    know_nothing = min(np.mean(labels), np.mean(1.0 - labels))
    assert 0.4 < know_nothing < 0.5
    assert float(point["error_rate"] or 0.0) < 0.5 * know_nothing
    entropy = -np.mean(np.log([labels.mean() if y else 1.0 - labels.mean() for y in labels]))
    assert float(point["nlpd"] or 0.0) < 0.6 * entropy
    assert "rmse" not in point


@pytest.mark.parametrize(
    ("ops", "likelihood"),
    # softmax runs compiled on JAX in `svgpbench check`, where compiling is shared out over processes
    [(b, "robust-max") for b in ("numpy", *frameworks())]
    + [(b, "softmax") for b in ("numpy", "torch", "tensorflow")],
    indirect=["ops"],
)
def test_several_latents_train_alike_on_every_backend(ops: Ops, likelihood: str) -> None:
    """Three classes by minibatch: noise, halvings and counts are the harness's, not a framework's."""
    settings = {"batch_size": 16, "e_steps": 4, "e_rate": 0.5, "em_iterations": 2}
    model = build_model(likelihood, "matern52")
    reference = trainer(load_backend("numpy"), model=model, **settings).run()
    found = trainer(ops, model=model, **settings).run()
    assert len(reference.trace) == 2
    assert_traces_agree(found, reference, rel=1e-10)
    for point in found.trace:
        assert ("negative_beta" in point) == (likelihood == "robust-max")


def test_multiclass_metrics_agree_with_a_dense_prediction() -> None:
    """Error rate and NLPD from q(u) by dense algebra and robust-max's probabilities by Monte Carlo."""
    model = build_model("robust-max", "se")
    run = trainer(load_backend("numpy"), model=model, em_iterations=1, e_steps=6, e_rate=0.3)
    point, ops = run.run().trace[-1], run.ops
    m, S = run.method.posterior(
        ops, run.state.prior, run.method.factorise(ops, run.state.prior, run.state.q)
    )
    case = MatrixCase("t-svgp tied-projected", "robust-max", "se")
    dense = Dense(case, PROBLEM.theta(model), run.data.X_test, run.data.y_test, 1.0)
    mu, v = dense.marginals(m, S)  # [3, t]
    labels = run.data.y_test.astype(int)
    draws = np.random.default_rng(0).standard_normal((100_000, 3, 1))
    winners = np.argmax(mu + np.sqrt(v) * draws, axis=1)  # [S, t]
    P = np.stack([np.mean(winners == c, axis=0) for c in range(3)])
    epsilon = model.likelihood.epsilon  # type: ignore[attr-defined]
    p = epsilon / 2 + (1 - 1.5 * epsilon) * P
    assert point["error_rate"] == np.mean(np.argmax(p, axis=0) != labels)
    nlpd = -np.mean(np.log(p[labels, np.arange(len(labels))]))
    assert point["nlpd"] == pytest.approx(nlpd, abs=5e-3)  # six standard errors of a probability


@pytest.mark.parametrize("likelihood", ["student-t", "poisson"])
def test_other_regressions_report_the_error_of_the_mean_of_y(likelihood: str) -> None:
    """Of f for Student-t noise, and of exp(μ + v/2) for counts, at the learned θ by dense algebra."""
    model = build_model(likelihood, "se")
    run = trainer(load_backend("numpy"), model=model, e_steps=4, e_rate=0.5)
    trained, ops = run.run(), run.ops
    point, state = trained.trace[-1], run.state
    q = run.method.factorise(ops, state.prior, state.q)
    case = MatrixCase("t-svgp tied-projected", likelihood, "se")
    dense = Dense(case, trained.theta, run.data.X_test, run.data.y_test, 1.0)
    mu, v = dense.marginals(*run.method.posterior(ops, state.prior, q))
    mean = mu[0] if likelihood == "student-t" else np.exp(mu[0] + v[0] / 2)
    error = np.sqrt(np.mean((mean - run.data.y_test) ** 2))
    assert point["rmse"] == pytest.approx(error, rel=1e-9)
    assert ("scale" in point) == (likelihood == "student-t")
    if likelihood == "student-t":
        assert point["scale"] == float(trained.theta.likelihood.scale)
        assert not 0.39 < float(point["scale"] or 0.0) < 0.41  # where it starts


def test_only_the_learned_parts_move() -> None:
    """Each part alone; a part that is not learned comes back from its transform, to rounding."""
    for part in LEARN:
        run = trainer(load_backend("numpy"), learn=(part,))
        before, after = PROBLEM.theta(run.model), run.run().theta
        moved = {
            name: max(np.max(np.abs(b / a - 1.0)) for a, b in zip(*pair, strict=True))
            for name in LEARN
            for pair in [(leaves(getattr(before, name)), leaves(getattr(after, name)))]
        }
        assert {name for name, share in moved.items() if share > 1e-14} == {part}
        assert moved[part] > 0.05


def test_a_kernel_matrix_that_is_not_positive_definite_is_a_status(ops: Ops) -> None:
    model = build_model("gaussian", "se", jitter=0.0)
    theta = PROBLEM.theta(model)
    theta = theta._replace(inducing=np.repeat(theta.inducing[:1], 8, axis=0) * (1 + 1e-9))
    trained = trainer(ops, model=model, theta=theta, em_iterations=1).run()
    assert trained.status == "not_pd"
    assert "K(Z, Z)" in trained.message


def test_steps_are_compiled_once_for_equal_settings() -> None:
    one, other = (trainer(load_backend("jax")) for _ in range(2))
    assert one.steps is other.steps


def test_inducing_inputs_are_the_same_for_a_seed_and_no_more_than_the_rows() -> None:
    a, b = (initial_inducing_inputs(PROBLEM.X, 8, "k-means", 3) for _ in range(2))
    assert np.array_equal(a, b)
    chosen = initial_inducing_inputs(PROBLEM.X, 8, "random", 3)
    assert all((row == PROBLEM.X).all(axis=1).any() for row in chosen)
    with pytest.raises(UserError, match="49 inducing inputs for 48 training rows"):
        initial_inducing_inputs(PROBLEM.X, 49, "random", 0)
