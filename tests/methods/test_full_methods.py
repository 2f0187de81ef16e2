"""q(f) on all data: its sites, its bound as a partition function, and sites of negative precision."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from finite_differences import derivative
from small_training import PROBLEM, column, trainer

from svgpbench.backends import load_backend
from svgpbench.checks.bench import Bench
from svgpbench.checks.cases import VARIANTS, build_model
from svgpbench.checks.dense import kernel_matrix
from svgpbench.checks.matrix import difference
from svgpbench.likelihoods import BernoulliProbit
from svgpbench.methods import build_method
from svgpbench.methods.full import DualVGP, FullFactor
from svgpbench.methods.tying import Sites
from svgpbench.ops import Ops
from svgpbench.training.blocks import data_term


@dataclass(frozen=True)
class HeavyTails(BernoulliProbit):
    """The squashed probit, whose β is −0.5 where a label is far on the wrong side."""

    squash: float = 1e-3
    log_concave: ClassVar[bool] = False


def few(n: int = 12) -> Any:
    """The first rows of the problem."""
    at, rng = np.arange(n), np.random.default_rng(3)
    batches = np.stack([rng.permutation(n)[:5] for _ in range(50)])
    return dataclasses.replace(
        PROBLEM, X=PROBLEM.X[at], y=PROBLEM.y[at], labels=PROBLEM.labels[at], batches=batches
    )


def test_minibatch_steps_are_those_of_untied_t_svgp_with_inducing_inputs_at_the_data() -> None:
    ops, problem = load_backend("numpy"), few()
    problem = dataclasses.replace(problem, Z=problem.X)
    model = build_model("bernoulli-logit", "matern32", jitter=0.0)
    runs = [
        Bench(ops, model, build_method(*VARIANTS[name]), problem)
        for name in ("t-vgp", "t-vgp negative sites", "t-svgp untied")
    ]
    found = [run.posterior(run.minibatch_run(50)) for run in runs]
    for other in found[1:]:
        assert max(map(difference, found[0], other)) < 1e-11


def test_bound_is_log_partition_and_a_rest(ops: Ops) -> None:
    model = build_model("bernoulli-logit", "se")
    b = Bench(ops, model, build_method("t-vgp", {}), few())
    state = b.e_step(b.e_step(b.start, b.full, 0.7), b.full, 0.7)  # on the way, not at the optimum
    f, method = b.steps.factor(b.raw, b.prior, b.full), DualVGP()
    other = method.bound_by_log_partition(ops, f, data_term(model, b.raw, b.full, b.one), state)
    assert difference(ops.to_numpy(other), ops.to_numpy(b.bound(state, b.full))) < 1e-12


def mixed_sites(K: Any) -> tuple[Any, Any]:
    """λ₁ and β of both signs with a proper posterior, and one site that is off."""
    n, rng = len(K), np.random.default_rng(3)
    beta = np.where(np.arange(n) % 3 == 0, -0.3, 2.0) * rng.uniform(0.2, 1.0, n)
    beta[4] = 0.0
    assert np.min(np.linalg.eigvalsh(np.linalg.inv(K) + np.diag(beta))) > 0.1
    assert np.min(beta) < 0
    return rng.standard_normal(n), beta


def test_negative_sites_agree_with_dense_inverses(ops: Ops) -> None:
    problem, method = few(), DualVGP(negative_sites=True)
    theta = problem.theta(build_model("gaussian", "matern32"), "data")
    K = kernel_matrix("matern32", theta, problem.X, problem.X)
    new = PROBLEM.X[20:25]
    Kfb = kernel_matrix("matern32", theta, problem.X, new)
    lambda1, beta = mixed_sites(K)
    f = FullFactor(*(ops.asarray(x[None]) for x in (K, Kfb, np.full(5, K[0, 0]))))
    q = method.factorise(ops, f, Sites(ops.asarray(lambda1[None]), ops.asarray(beta[None])))

    S = np.linalg.inv(np.linalg.inv(K) + np.diag(beta))
    m, A = S @ lambda1, np.linalg.solve(K, Kfb)
    v = K[0, 0] - np.sum(A * ((K - S) @ A), axis=0)
    log_ratio = np.linalg.slogdet(K)[1] - np.linalg.slogdet(S)[1]
    kl = 0.5 * (np.trace(np.linalg.solve(K, S)) + m @ np.linalg.solve(K, m) - len(m) + log_ratio)
    mean, covariance = method.posterior(ops, f, q)
    for got, expected in (
        (method.marginals(ops, f, q)[0], (A.T @ m)[None]),
        (method.marginals(ops, f, q)[1], v[None]),
        (method.kl(ops, f, q), kl),
        (mean, m[None]),
        (covariance, S[None]),
    ):
        assert difference(ops.to_numpy(got), expected) < 1e-11


def test_slopes_pass_through_negative_sites_and_through_sites_that_are_off(ops: Ops) -> None:
    problem, method = few(), DualVGP(negative_sites=True)
    theta = problem.theta(build_model("gaussian", "matern32"), "data")
    K = kernel_matrix("matern32", theta, problem.X, problem.X)
    lambda1, beta = mixed_sites(K)

    def kl(scale: Any) -> Any:
        f = FullFactor(scale * ops.asarray(K[None]), ops.asarray(K[None]), ops.asarray(K[None, 0]))
        sites = Sites(ops.asarray(lambda1[None]), scale * ops.asarray(beta[None]))
        return method.kl(ops, f, method.factorise(ops, f, sites))

    _, slope = ops.value_and_grad(kl)(ops.asarray(np.float64(1.0)))

    def dense(scale: float) -> float:
        S = np.linalg.inv(np.linalg.inv(scale * K) + scale * np.diag(beta))
        m = S @ lambda1
        ratio = np.linalg.slogdet(scale * K)[1] - np.linalg.slogdet(S)[1]
        inner = np.trace(np.linalg.solve(scale * K, S)) + m @ np.linalg.solve(scale * K, m)
        return float(0.5 * (inner - len(m) + ratio))

    expected = derivative(lambda step: dense(1.0 + step), 1e-3)
    assert float(ops.to_numpy(slope)) == pytest.approx(float(expected), rel=1e-8)


def sure_of_the_wrong_labels(treatment: str) -> tuple[Bench, Sites]:
    """A q near −4 where y = 1 and near 4 where y = 0, under a wide prior: β < 0 at every datum."""
    ops, problem = load_backend("numpy"), few(24)
    model = dataclasses.replace(
        build_model("bernoulli-probit", "se"), likelihood=HeavyTails(negative_beta=treatment)
    )
    b = Bench(ops, model, build_method("t-vgp", {"negative_sites": True}), problem)
    b.move(b.raw._replace(kernel=b.raw.kernel._replace(variance=np.array([30.0]))))
    wrong = 1.0 - 2.0 * problem.labels[None]
    return b, Sites(ops.asarray(40.0 * wrong), ops.asarray(np.full((1, 24), 10.0)))


def test_step_control_keeps_q_positive_where_a_plain_step_does_not() -> None:
    b, state = sure_of_the_wrong_labels("raw")
    assert np.isnan(float(b.bound(b.e_step(state, b.full, 1.0), b.full)))
    b, state = sure_of_the_wrong_labels("damp")
    first = float(b.bound(state, b.full))
    for _ in range(30):
        state = b.e_step(state, b.full, 1.0)
    assert float(b.bound(state, b.full)) > first + 1.0


def test_negative_sites_are_refused_until_they_are_asked_for() -> None:
    assert "negative_sites" in DualVGP().refuses(HeavyTails())
    assert not DualVGP(negative_sites=True).refuses(HeavyTails())
    assert not DualVGP().refuses(HeavyTails(negative_beta="clip"))


def test_a_negative_site_that_was_not_asked_for_is_nan_and_not_dropped(ops: Ops) -> None:
    b = Bench(ops, build_model("gaussian", "se"), build_method("t-vgp", {}), few())
    beta = np.ones((1, 12))
    beta[0, 3] = -1e-3
    state = Sites(b.start.lambda1, ops.asarray(beta))
    assert np.isnan(b.kl(state))


@pytest.mark.parametrize("name", ["t-vgp", "q-vgp natgrad", "gpr"])
@pytest.mark.parametrize("optimiser", ["adam", "l-bfgs"])
def test_an_m_step_moves_no_data(name: str, optimiser: str) -> None:
    problem = few()
    run = trainer(load_backend("numpy"), name, problem=problem, m_steps=3, optimiser=optimiser)
    trained = run.run()
    assert np.array_equal(trained.theta.inducing, problem.X)
    first, second, last = column(trained, "elbo")
    assert first < second < last


def test_a_full_method_takes_minibatches() -> None:
    settings: dict[str, Any] = {"m_steps": 2, "batch_size": 5, "e_rate": 0.5}
    for name in ("t-vgp", "q-vgp natgrad"):
        run = trainer(load_backend("numpy"), name, problem=few(), em_iterations=2, **settings)
        assert run.run().status == "ok"
