"""β < 0: damped, clipped or raw, alike in every natural-gradient method, counted, and free where β ≥ 0."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import small_training

from svgpbench.backends import load_backend
from svgpbench.checks.bench import Bench
from svgpbench.checks.cases import VARIANTS, MatrixCase, build_model, small_problem
from svgpbench.checks.dense.gaussians import Dense
from svgpbench.errors import UserError
from svgpbench.kernels import Model
from svgpbench.kernels.kernels import kernel
from svgpbench.likelihoods import (
    BernoulliLogit,
    BernoulliProbit,
    Likelihood,
    Poisson,
    Softmax,
    StudentT,
)
from svgpbench.methods import build_method
from svgpbench.ops import Array, Ops, Tree
from svgpbench.plugins import frameworks
from svgpbench.training.em import Trained, Trainer
from svgpbench_backends.numpy_backend import NumpyOps

SMALL = small_problem()
PROBLEM = dataclasses.replace(SMALL, y=SMALL.y + 3.0)
OUTLIERS = StudentT(scale=0.3)
"""To q = p nearly all of this y are outliers, so that a full step has no positive precision."""
NATURAL = ("q-svgp natgrad", "q-svgp natgrad autodiff", "q-svgp natgrad unwhitened")


def bench(ops: Ops, method: str, likelihood: Likelihood) -> Bench:
    name, options = VARIANTS[method]
    return Bench(ops, Model(kernel("matern52"), likelihood), build_method(name, options), PROBLEM)


def halvings(ops: Ops, state: Any) -> float:
    return float(ops.to_numpy(state.halvings))


def assert_equal_posteriors(
    one: list[Any], *others: list[Any], rtol: float = 1e-8, atol: float = 1e-10
) -> None:
    for other in others:
        for x, y in zip(one, other, strict=True):
            np.testing.assert_allclose(x, y, rtol=rtol, atol=atol)


# the matrix runs every method on every backend; one shows the loop
@pytest.mark.parametrize(
    ("ops", "method"),
    [("numpy", m) for m in NATURAL] + [(b, NATURAL[0]) for b in frameworks()],
    indirect=["ops"],
)
def test_methods_halve_alike(ops: Ops, method: str) -> None:
    t, q = bench(ops, "t-svgp untied", OUTLIERS), bench(ops, method, OUTLIERS)
    one, other = (b.e_step(b.start, b.full, 1.0) for b in (t, q))
    assert halvings(ops, one) == halvings(ops, other) > 0
    assert_equal_posteriors(t.posterior(one), q.posterior(other), rtol=1e-10)


def test_a_damped_step_is_the_first_halved_one_with_a_positive_precision() -> None:
    ops = load_backend("numpy")
    b = bench(ops, "t-svgp tied-projected", OUTLIERS)
    state = b.e_step(b.start, b.full, 1.0)
    rate = 0.5 ** halvings(ops, state)
    _, beta = b.model.likelihood.gradients(
        ops, PROBLEM.theta(b.model).likelihood, PROBLEM.y, *prior_marginals(b)
    )
    W = ops.to_numpy(b.steps.factor(b.raw, b.prior, b.full).W)[0]
    lowest = [
        np.linalg.eigvalsh(np.eye(len(W)) + r * (W * beta[0]) @ W.T).min() for r in (rate, 2 * rate)
    ]
    assert lowest[0] > 0 > lowest[1]


def prior_marginals(b: Bench) -> tuple[Array, Array]:
    f = b.steps.factor(b.raw, b.prior, b.full)
    return b.method.marginals(b.ops, f, b.method.factorise(b.ops, f, b.start))


def test_fifty_steps_with_halvings_among_them_agree() -> None:
    """Identity 1 where it needs both methods to halve at the same steps."""
    ops = load_backend("numpy")
    runs = [
        Bench(ops, *MatrixCase(name, "robust-max", "se").build(), SMALL)
        for name in ("t-svgp tied-projected", *NATURAL)
    ]
    states = [b.minibatch_run(50) for b in runs]
    assert {halvings(ops, state) for state in states} == {1.0}
    reference, *others = [b.posterior(s) for b, s in zip(runs, states, strict=True)]
    assert_equal_posteriors(reference, *others, atol=1e-9)


def test_squashed_probit_steps_agree_with_damping_on() -> None:
    ops, squashed = load_backend("numpy"), BernoulliProbit(squash=1e-3)
    assert squashed.damps and not BernoulliProbit().damps
    runs = [bench(ops, m, squashed) for m in ("t-svgp tied-projected", *NATURAL[:2])]
    reference, *others = [b.posterior(b.minibatch_run(20)) for b in runs]
    assert_equal_posteriors(reference, *others)


def test_clipped_steps_agree_and_only_add_precision() -> None:
    ops, clipped = load_backend("numpy"), StudentT(scale=0.3, negative_beta="clip")
    t = bench(ops, "t-svgp tied-projected", clipped)
    q = bench(ops, "q-svgp natgrad", clipped)
    one, other = t.minibatch_run(20), q.minibatch_run(20)
    assert halvings(ops, one) == halvings(ops, other) == 0
    assert_equal_posteriors(t.posterior(one), q.posterior(other))
    assert np.linalg.eigvalsh(ops.to_numpy(one.C)[0]).min() > -1e-12
    dampened = bench(ops, "t-svgp tied-projected", OUTLIERS)
    assert np.linalg.eigvalsh(dampened.minibatch_run(20).C[0]).min() < -1e-3


@pytest.mark.parametrize(
    "method", ["q-svgp natgrad autodiff", "q-svgp natgrad unwhitened autodiff"]
)
def test_a_gradient_by_autodiff_of_sampled_expectations_is_damped(method: str) -> None:
    """The β of V̂ itself may be negative; a step is the first of 1, ½, ¼, … that can be taken."""
    ops, softmax = load_backend("numpy"), Softmax(classes=3, samples=2)
    assert softmax.log_concave and not softmax.damps
    b = bench(ops, method, softmax)
    batch = b.batch(PROBLEM.batches[0])
    state = b.e_step(b.start, batch, 1.0)
    turns = halvings(ops, state)
    assert turns > 1
    assert np.all(np.isfinite(ops.to_numpy(state.q.chol)))
    shorter, longer = (b.e_step(b.start, batch, 0.5**k) for k in (turns, turns - 1))
    assert (halvings(ops, shorter), halvings(ops, longer)) == (0, 1)
    for one in (shorter, longer):
        np.testing.assert_array_equal(state.q.chol, one.q.chol)
    closed = bench(ops, method.replace(" autodiff", ""), softmax)
    assert halvings(ops, closed.e_step(closed.start, batch, 1.0)) == 0


class SoftmaxOfItsDraws(Softmax):
    """Softmax whose β is that of V̂ itself, negative where the draws have it so."""

    @property
    def log_concave(self) -> bool:
        return False

    def gradients(self, ops: Ops, p: Tree, y: Array, mu: Array, v: Array) -> tuple[Array, Array]:
        found = self._expectations(ops, p, y, mu, v)
        return found[1], found[2]


@pytest.mark.parametrize("method", ["t-svgp untied", "t-svgp tied-projected", *NATURAL])
def test_a_sampled_likelihood_that_is_not_log_concave_is_damped_alike(method: str) -> None:
    ops, batch = load_backend("numpy"), PROBLEM.batches[0]
    wanted, found = (
        bench(ops, name, likelihood(classes=3, samples=2))
        for name, likelihood in ((NATURAL[1], Softmax), (method, SoftmaxOfItsDraws))
    )
    one, other = (b.e_step(b.start, b.batch(batch), 1.0) for b in (wanted, found))
    assert halvings(ops, one) == halvings(ops, other) > 1
    assert_equal_posteriors(wanted.posterior(one), found.posterior(other), rtol=1e-9)


@pytest.mark.parametrize(
    "method", ["q-svgp natgrad autodiff", "q-svgp adam", "q-svgp adam autodiff"]
)
def test_clipping_is_refused_where_the_gradient_itself_is_taken(method: str) -> None:
    name, options = VARIANTS[method]
    built = build_method(name, options)
    assert "closed-form" in built.refuses(StudentT(negative_beta="clip"))
    assert built.refuses(StudentT()) == built.refuses(Poisson()) == ""


class Counting(NumpyOps):
    """NumPy that counts factorisations and loops."""

    def __init__(self) -> None:
        super().__init__("eager", "float64", "cpu")
        self.cholesky_calls = self.loops = 0

    def cholesky(self, a: Array) -> Array:
        self.cholesky_calls += 1
        return NumpyOps.cholesky(a)

    def while_loop(self, condition: Any, step: Any, carry: Any) -> Any:
        self.loops += 1
        return super().while_loop(condition, step, carry)


@pytest.mark.parametrize(
    ("method", "likelihood", "factorisations", "loops"),
    [
        ("t-svgp tied-projected", BernoulliLogit(), 1, 0),
        ("t-svgp tied-projected", BernoulliProbit(), 1, 0),
        ("t-svgp tied-projected", Softmax(classes=3, samples=5), 1, 0),
        ("t-svgp tied-projected", StudentT(negative_beta="clip"), 1, 0),
        ("t-svgp tied-projected", StudentT(), 2, 1),
        ("q-svgp natgrad", BernoulliLogit(), 1, 0),
        ("q-svgp natgrad", StudentT(), 1, 1),
    ],
)
def test_only_likelihoods_that_need_damping_pay_for_it(
    method: str, likelihood: Likelihood, factorisations: int, loops: int
) -> None:
    """No step is halved here, so a q-SVGP step, which factorises anyway, costs the same."""
    ops = Counting()
    b = bench(ops, method, likelihood)
    rows = b.batch(PROBLEM.batches[0])
    f = b.steps.factor(b.raw, b.prior, rows)
    before = ops.cholesky_calls
    state = b.steps.e_phase(b.raw, f, rows, b.start, b.number(0.1), b.number(3.0))
    assert halvings(ops, state) == 0
    assert (ops.cholesky_calls - before, ops.loops) == (factorisations, loops)


def test_halvings_add_up_over_steps_and_pass_through_the_m_step() -> None:
    ops = load_backend("numpy")
    for tying in ("tied-projected", "tied", "untied", "standard", "whitened"):
        b = bench(ops, f"t-svgp {tying}", OUTLIERS)
        first = b.e_step(b.start, b.full, 1.0)
        again = b.start._replace(halvings=first.halvings)
        second = b.e_step(again, b.full, 1.0)
        assert halvings(ops, second) == 2.0 * halvings(ops, first) > 0
        likelihood = b.model.conditional(PROBLEM.theta(b.model))
        invariant = b.method.invariant(ops, b.prior, likelihood, second)
        f = b.steps.factor(b.raw, b.prior, b.full)
        assert halvings(ops, b.method.state_at(ops, f, likelihood, invariant)) == halvings(
            ops, second
        )


def train(likelihood: Likelihood, method: str, **changes: Any) -> tuple[Trainer, Trained]:
    model, ops = Model(kernel("matern52"), likelihood), load_backend("numpy")
    settings = {"em_iterations": 2, "e_steps": 3, "m_steps": 2, "m_rate": 0.01} | changes
    run = small_training.trainer(ops, method, problem=PROBLEM, model=model, **settings)
    return run, run.run()


@pytest.mark.parametrize("batch_size", [None, 16])
def test_the_trace_counts_halvings_and_data_with_negative_beta(batch_size: int | None) -> None:
    run, trained = train(OUTLIERS, "t-svgp tied-projected", em_iterations=1, batch_size=batch_size)
    point = trained.trace[-1]
    assert trained.status == "ok"
    assert point["halvings"] == float(run.state.q.halvings) > 0
    case = MatrixCase("t-svgp tied-projected", "student-t", "matern52")
    m, S = posterior(run)
    theta = PROBLEM.theta(build_model("student-t", "matern52"))
    scale = theta.likelihood._replace(scale=np.float64(0.3))
    dense = Dense(case, theta._replace(likelihood=scale), PROBLEM.X, PROBLEM.y, 1.0)
    _, _, beta = dense.expectations(m, S)
    assert point["negative_beta"] == np.sum(beta < 0) > 0


def posterior(run: Trainer) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    ops, method = run.ops, run.method
    q = method.factorise(ops, run.state.prior, run.state.q)
    mean, covariance = method.posterior(ops, run.state.prior, q)
    return ops.to_numpy(mean), ops.to_numpy(covariance)


def test_a_log_concave_likelihood_has_no_negative_beta_to_count() -> None:
    _, trained = train(BernoulliLogit(), "q-svgp natgrad")
    assert "negative_beta" not in trained.trace[-1]
    assert trained.trace[-1]["halvings"] == 0


def test_raw_steps_end_where_damped_ones_go_on() -> None:
    raw = StudentT(scale=0.3, negative_beta="raw")
    _, ended = train(raw, "t-svgp tied-projected")
    assert ended.status == "not_pd"
    assert "precision" in ended.message
    _, damped = train(OUTLIERS, "t-svgp tied-projected")
    assert damped.status == "ok"


def test_counting_data_needs_one_latent_below_zero_only() -> None:
    """Of several latents, a row counts once."""
    ops = load_backend("numpy")
    model = build_model("robust-max", "matern52")
    theta = PROBLEM.theta(model)
    mu, v = np.stack([np.linspace(-2, 2, 9)] * 3) * [[1.0], [0.3], [-0.5]], np.full((3, 9), 0.4)
    y = np.arange(9) % 3 * 1.0
    _, beta = model.likelihood.gradients(ops, theta.likelihood, y, mu, v)
    count = model.conditional(theta).count_negative_beta(ops, y, mu, v)
    assert float(count) == np.sum((beta < 0).any(axis=0)) < np.sum(beta < 0)


def test_an_unknown_treatment_is_refused() -> None:
    with pytest.raises(UserError, match="unknown treatment of negative β"):
        StudentT(negative_beta="floor")  # type: ignore[arg-type]


def test_a_damped_step_of_several_latents_equals_the_dense_one() -> None:
    """Dense algebra finds the same step from eigenvalues; data that count fivefold overshoot."""
    ops, scale = load_backend("numpy"), 5.0
    case = MatrixCase("t-svgp tied-projected", "robust-max", "matern52")
    b = Bench(ops, *case.build(), PROBLEM)
    f = b.steps.factor(b.raw, b.prior, b.full)
    state = b.steps.e_phase(b.raw, f, b.full, b.start, b.one, b.number(scale))
    assert halvings(ops, state) > 0
    dense = Dense(case, PROBLEM.theta(b.model), PROBLEM.X, PROBLEM.classes, scale)
    M = len(dense.K)
    mean, covariance = dense.natural_step(np.zeros((3, M)), np.stack([dense.K] * 3), 1.0)
    got = b.posterior(state)
    np.testing.assert_allclose(got[0], mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(got[1], covariance, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    "method", ["t-svgp tied-projected", "q-svgp natgrad", "diagonal-precision exact"]
)
def test_a_retreating_step_goes_half_as_far_where_it_is_halved(method: str) -> None:
    ops = load_backend("numpy")
    damped, retreating = (
        bench(ops, method, StudentT(scale=0.3, negative_beta=how)) for how in ("damp", "retreat")
    )
    halved = halvings(ops, damped.e_step(damped.start, damped.full, 1.0))
    state = retreating.e_step(retreating.start, retreating.full, 1.0)
    assert halvings(ops, state) == halved + 1 > 1
    half = damped.e_step(damped.start, damped.full, 0.5 ** (halved + 1))
    for x, y in zip(retreating.posterior(state), damped.posterior(half), strict=True):
        np.testing.assert_array_equal(x, y)
