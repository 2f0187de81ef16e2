"""Diagonal precision: q against dense Gaussians, steps against the Fisher matrix, fixed points."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from finite_differences import derivative, gradient

from svgpbench.backends import load_backend
from svgpbench.checks.bench import Bench
from svgpbench.checks.cases import MatrixCase, build_model, small_problem
from svgpbench.checks.dense import kernel_matrix, sgpr_bound
from svgpbench.checks.dense.diagonal import moments
from svgpbench.checks.dense.gaussians import Dense
from svgpbench.config import TrainingConfig
from svgpbench.errors import UserError
from svgpbench.kernels import Model, Theta
from svgpbench.kernels.kernels import KernelParameters, kernel
from svgpbench.likelihoods import GaussianLikelihood, GaussianParameters
from svgpbench.methods import build_method
from svgpbench.methods.diagonal_precision import DiagonalPrecision, DiagonalState
from svgpbench.ops import Ops
from svgpbench.training.batches import TrainingData
from svgpbench.training.blocks import factor_at, prior_at
from svgpbench.training.em import Trained, Trainer
from svgpbench.tree import tree_map
from svgpbench_datasets import REGISTRY

Floats = npt.NDArray[np.float64]
ORACLE = Path(__file__).parents[1] / "oracles" / "values" / "decoupled_brute_force.json"
PROBLEM = small_problem()
EXACT = DiagonalPrecision()
OPTIMISERS = ("exact", "projected-b", "projected-a", "adam")


def method(optimiser: str) -> DiagonalPrecision:
    return DiagonalPrecision(optimiser, "unit" if optimiser == "adam" else "prior")


def state(ops: Ops, mu: Floats, g: Floats) -> DiagonalState:
    """A state of P latents from mu and g [P, M]."""
    return DiagonalState(ops.asarray(mu), ops.asarray(g), ops.zeros(()), ())


def relative(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    return float(np.max(np.abs(np.asarray(a) - np.asarray(b))) / np.max(np.abs(np.asarray(b))))


# --- q ---------------------------------------------------------------------------------------------


def test_q_is_the_dense_gaussian_for_g_of_either_sign(ops: Ops) -> None:
    model = build_model("gaussian", "matern52")
    theta = PROBLEM.theta(model)
    dense = Dense(
        MatrixCase("diagonal-precision exact", "gaussian", "matern52"),
        theta,
        PROBLEM.X,
        PROBLEM.y,
        1.0,
    )
    rng = np.random.default_rng(0)
    mu, g = rng.standard_normal((2, 8)), rng.uniform(0.0, 3.0, (2, 8))
    g[1, ::2] = -0.3 / np.linalg.eigvalsh(dense.K)[-1]
    at = tree_map(ops.asarray, theta)
    p = prior_at(ops, model, EXACT, at)
    f = factor_at(ops, model, EXACT, at, p, ops.asarray(PROBLEM.X))
    q = EXACT.factorise(ops, f, state(ops, mu, g))
    mean, v = (ops.to_numpy(x) for x in EXACT.marginals(ops, f, q))
    m, S = (ops.to_numpy(x) for x in EXACT.posterior(ops, p, q))
    wanted = [moments(dense.K, *pair) for pair in zip(mu, g, strict=True)]
    for i, (m_i, S_i) in enumerate(wanted):
        assert relative(m[i], m_i) < 1e-10
        assert relative(S[i], S_i) < 1e-10
        mean_i, v_i = dense.marginals(m_i, S_i)
        assert relative(mean[i], mean_i) < 1e-10
        assert relative(v[i], v_i) < 1e-10
    kl = sum(dense.kl(*pair) for pair in wanted)
    assert float(ops.to_numpy(EXACT.kl(ops, f, q))) == pytest.approx(kl, rel=1e-10)


def test_q_is_the_brute_force_one_of_the_reference_file(ops: Ops) -> None:
    """Its KL is on the union of both bases with 1e-10 added, so it is good to 1e-6; here to 1e-11."""
    content = json.loads(ORACLE.read_text())
    inputs, expected = content["inputs"], content["expected"]["diagonal_precision"]
    assert content["settings"]["jitter"] == 0
    model = Model(kernel(inputs["kernel"]), GaussianLikelihood(), jitter=0.0)
    parameters = KernelParameters(
        np.array([inputs["variance"]]), np.array([inputs["lengthscales"]])
    )
    theta = Theta(parameters, GaussianParameters(np.float64(1.0)), np.array(inputs["beta"]))
    theta = tree_map(ops.asarray, theta)
    p = prior_at(ops, model, EXACT, theta)
    f = factor_at(ops, model, EXACT, theta, p, ops.asarray(np.array(inputs["Xtest"])))
    given = [np.array([inputs["diagonal_precision"][k]]) for k in ("mu", "g")]
    q = EXACT.factorise(ops, f, state(ops, *given))
    mean, v = (ops.to_numpy(x)[0] for x in EXACT.marginals(ops, f, q))
    assert relative(mean, expected["mean"]) < 1e-11
    assert relative(v, expected["var"]) < 1e-11
    assert float(ops.to_numpy(EXACT.kl(ops, f, q))) == pytest.approx(expected["kl"], rel=1e-11)


# --- steps -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli-logit"])
def test_exact_step_is_the_inverse_fisher_times_the_gradient(likelihood: str) -> None:
    """F as the Hessian of KL[q' ‖ q] at q' = q and ∇ of the dense bound, both by finite differences."""
    model = build_model(likelihood, "matern32")
    y = PROBLEM.targets(model.likelihood.support)
    case = MatrixCase("diagonal-precision exact", likelihood, "matern32")
    dense = Dense(case, PROBLEM.theta(model), PROBLEM.X, y, 1.0)
    b = Bench(load_backend("numpy"), model, EXACT, PROBLEM)
    rng = np.random.default_rng(1)
    mu, g = 0.3 * rng.standard_normal(8), rng.uniform(0.5, 2.0, 8)
    start = state(b.ops, mu[None], g[None])
    rate = 1e-2
    stepped = b.e_step(start, b.full, rate)

    def bound(x: Floats) -> float:
        return dense.elbo(*moments(dense.K, *np.split(x, 2)))

    m, S = moments(dense.K, mu, g)
    precision = np.linalg.inv(S)

    def divergence(x: Floats) -> float:
        m1, S1 = moments(dense.K, *np.split(x, 2))
        log_ratio = np.linalg.slogdet(S)[1] - np.linalg.slogdet(S1)[1]
        return float(
            0.5 * (np.trace(precision @ S1) + (m1 - m) @ precision @ (m1 - m) + log_ratio - 8)
        )

    at, unit = np.concatenate([mu, g]), np.eye(16)

    def along(i: int) -> Callable[[Floats], float]:
        return lambda x: float(derivative(lambda h: divergence(x + h * unit[i]), 1e-2))

    fisher = np.array([gradient(along(i), [at], 1e-2)[0] for i in range(16)])
    d_mu, d_g = np.split(np.linalg.solve(fisher, gradient(bound, [at])[0]), 2)
    d_theta1 = precision @ dense.K @ d_mu + d_g * m  # of θ₁ = S⁻¹m = μ + g∘m
    found_mu, found_g = stepped.mu[0], stepped.g[0]
    found_theta1 = found_mu + found_g * (dense.K @ found_mu)
    assert relative((found_g - g) / rate, d_g) < 1e-5
    assert relative((found_theta1 - precision @ m) / rate, d_theta1) < 1e-5


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli-logit"])
def test_exact_stops_above_projected_b_above_projected_a(likelihood: str) -> None:
    bounds = []
    for optimiser in OPTIMISERS[:3]:
        b = Bench(
            load_backend("numpy"), build_model(likelihood, "matern52"), method(optimiser), PROBLEM
        )
        at = b.start
        for _ in range(50):
            at = b.e_step(at, b.full, 1.0)
        bounds.append(float(b.bound(at, b.full)))
        again = float(b.bound(b.e_step(at, b.full, 1.0), b.full))
        assert again == pytest.approx(bounds[-1], abs=1e-11)
    exact, projected_b, projected_a = bounds
    assert exact > projected_b + 5e-4  # 8e-4 and 2e-3 nats apart
    assert projected_b > projected_a + 5e-2  # 2.3 and .07


def test_a_rate_whose_precision_is_not_positive_definite_is_halved_and_counted(ops: Ops) -> None:
    """One minibatch, Gaussian, asks for negative g: the step taken is that of half the rate."""
    b = Bench(ops, build_model("gaussian", "matern52"), EXACT, PROBLEM)
    at, rate = b.start, 0.6
    for rows in PROBLEM.batches:
        before, batch = at, b.batch(rows)
        at = b.e_step(at, batch, rate)
        if float(ops.to_numpy(at.halvings)):
            break
    assert float(ops.to_numpy(at.halvings)) == 1.0
    half = b.e_step(before, batch, 0.5 * rate)
    assert float(ops.to_numpy(half.halvings)) == 0.0
    for name in ("mu", "g"):
        assert np.array_equal(ops.to_numpy(getattr(at, name)), ops.to_numpy(getattr(half, name)))
    full_g = ops.to_numpy(before.g + 2.0 * (half.g - before.g))[0]
    K_inv = np.linalg.inv(ops.to_numpy(b.prior.Kuu)[0])
    assert np.linalg.eigvalsh(K_inv + np.diag(full_g))[0] < 0.0


# --- the thesis's sinusoid ---------------------------------------------------------------------------


def sinusoid_run(
    optimiser: str, *, name: str, inducing: int, lengthscale: float, rate: float, steps: int
) -> tuple[Trained, float]:
    """E-steps at fixed θ (noise variance 0.01, jitter 1e-6, Z a grid), and the best bound of all q."""
    data = REGISTRY.load(name)
    theta = Theta(
        KernelParameters(np.array([0.813]), np.array([[lengthscale]])),
        GaussianParameters(np.float64(0.01)),
        np.linspace(-1.0, 1.0, inducing)[:, None],
    )
    model = Model(kernel("se"), GaussianLikelihood(noise_variance=0.01), jitter=1e-6)
    settings = TrainingConfig(em_iterations=steps, e_rate=rate, m_steps=0)
    rows = TrainingData(data.X, data.y, data.X[:5], data.y[:5])
    run = Trainer(load_backend("numpy"), model, method(optimiser), rows, theta, settings).run()
    return run, sgpr_bound(theta, "se", data.X, data.y, 1e-6)


def bounds_of(run: Trained) -> Floats:
    assert run.status == "ok", run.message
    return np.array([point["elbo"] for point in run.trace], dtype=np.float64)


def test_on_the_sinusoid_exact_is_monotone_and_ends_above_both_projected_steps() -> None:
    settings: dict[str, Any] = {"name": "thesis-sinusoid:300", "inducing": 20, "lengthscale": 0.2}
    run, best = sinusoid_run("exact", rate=1.0, steps=30, **settings)
    exact = bounds_of(run)
    assert np.all(np.diff(exact) > -1e-9 * abs(best))
    b = bounds_of(sinusoid_run("projected-b", rate=1.0, steps=40, **settings)[0])
    a = bounds_of(sinusoid_run("projected-a", rate=1.0, steps=40, **settings)[0])
    assert best - 0.3 < exact[-1] < best
    assert b[-1] < exact[-1] - 0.1
    assert a[-1] < b[-1] - 300.0


def test_negative_g_is_met_and_is_the_better_q() -> None:
    """With more inducing inputs than the lengthscale needs, the best g has negative entries."""
    settings: dict[str, Any] = {"name": "thesis-sinusoid", "inducing": 30, "lengthscale": 0.3}
    run, best = sinusoid_run("exact", rate=1.0, steps=30, **settings)
    assert run.q.g.min() < -1.0
    before, last = bounds_of(run)[-2:]
    assert last == pytest.approx(before, rel=1e-13)
    assert 0.0 < best - last < 5e-4  # which the jitter costs
    b = bounds_of(sinusoid_run("projected-b", rate=0.1, steps=200, **settings)[0])
    assert b[-1] < bounds_of(run)[-1] - 0.5


def test_where_bases_overlap_projected_b_diverges_at_the_rate_at_which_exact_settles() -> None:
    settings: dict[str, Any] = {"name": "thesis-sinusoid", "inducing": 30, "lengthscale": 0.3}
    projected = sinusoid_run("projected-b", rate=1.0, steps=20, **settings)[0]
    assert bounds_of(projected)[-1] < -1e6


# --- start, options --------------------------------------------------------------------------------


def test_the_start_is_the_prior_or_unit_g() -> None:
    ops, model = load_backend("numpy"), build_model("gaussian", "se")
    theta = PROBLEM.theta(model)
    K = kernel_matrix("se", theta, PROBLEM.Z, PROBLEM.Z) + 1e-6 * np.eye(8)
    p = prior_at(ops, model, EXACT, theta)
    for start, covariance in (("prior", K), ("unit", np.linalg.inv(np.linalg.inv(K) + np.eye(8)))):
        for optimiser in OPTIMISERS if start == "unit" else OPTIMISERS[:3]:
            built = DiagonalPrecision(optimiser, start)
            initial = built.initial_state(ops, p, 2, 48)
            mean, S = built.posterior(ops, p, built.factorise(ops, p, initial))
            assert np.all(mean == 0.0)
            assert relative(S, np.stack([covariance] * 2)) < 1e-12
            assert built.starts_at_prior == (start == "prior")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"optimiser": "exat"}, "did you mean 'exact'"),
        ({"start": "units"}, "did you mean 'unit'"),
        ({"optimiser": "adam"}, "set start = 'unit'"),
        ({"tying": "tied"}, "known: tied-projected, weights"),
        ({"optimiser": "adam", "tying": "tied-projected"}, "leave tying = 'weights'"),
    ],
)
def test_a_wrong_option_is_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        build_method("diagonal-precision", options)
    assert "\n" not in str(caught.value)
