"""DECOUPLED: its gradients, and the columns that it samples."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from finite_differences import gradient
from two_bases import PROBLEM, at_first_batch

from svgpbench.backends import load_backend
from svgpbench.checks.cases import build_model
from svgpbench.checks.dense import kernel_matrix
from svgpbench.errors import UserError
from svgpbench.methods import build_method
from svgpbench.methods.decoupled import DecoupledState, DecoupledSVGP, MeanPrecision
from svgpbench.ops import Ops

Floats = npt.NDArray[np.float64]
NUMPY = load_backend("numpy")
M_A, M_B = len(PROBLEM.gamma), len(PROBLEM.Z)


def some_state(ops: Ops) -> DecoupledState:
    rng = np.random.default_rng(3)
    a = 0.4 * rng.standard_normal((1, M_A))
    L_B = np.tril(0.3 * rng.standard_normal((1, M_B, M_B))) + 0.5 * np.eye(M_B)
    return DecoupledState(MeanPrecision(ops.asarray(a), ops.asarray(L_B)), ())


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli-logit"])
def test_closed_form_gradients_are_those_of_the_bound(likelihood: str) -> None:
    method, state = DecoupledSVGP(optimiser="sgd"), some_state(NUMPY)
    at = at_first_batch(NUMPY, method, likelihood)

    def bound(a: Floats, L_B: Floats) -> float:
        return float(at.elbo(DecoupledState(MeanPrecision(a, np.tril(L_B)), ())))

    found = method.gradients(NUMPY, at.f, at.data, state)
    for exact, numeric in zip(found, gradient(bound, list(state.q)), strict=True):
        np.testing.assert_allclose(exact, numeric, rtol=0, atol=1e-8)


@pytest.mark.parametrize("ops", ["numpy"], indirect=True)
def test_sampled_columns_average_to_the_whole_in_value_and_gradient(ops: Ops) -> None:
    whole, method, state = DecoupledSVGP(), DecoupledSVGP(subset=4), some_state(ops)

    def of(m: DecoupledSVGP, points: npt.ArrayLike | None) -> list[Floats]:
        at = at_first_batch(ops, m, "gaussian", points)
        g = m.gradients(ops, at.f, at.data, state)
        return [ops.to_numpy(x) for x in (at.elbo(state), *g)]

    parts = np.random.default_rng(0).permutation(M_A).reshape(-1, 4)
    sampled = [of(method, points) for points in parts]
    means = [np.mean(x, axis=0) for x in zip(*sampled, strict=True)]
    for mean, wanted in zip(means, of(whole, None), strict=True):
        np.testing.assert_allclose(mean, wanted, rtol=0, atol=1e-12 * np.max(np.abs(wanted)))
    assert abs(sampled[0][0] - sampled[1][0]) > 1e-2  # one part alone is not the whole


def test_the_union_of_both_bases_is_a_mean_on_gamma_and_beta(ops: Ops) -> None:
    method, state = DecoupledSVGP(union=True), some_state(ops)
    whole = at_first_batch(ops, method, "gaussian")
    assert whole.f.K_af.shape[-2] == M_A + M_B
    np.testing.assert_array_equal(
        ops.to_numpy(whole.f.K_af[..., M_A:, :]), ops.to_numpy(whole.f.K_bf)
    )
    a = ops.concat((state.q.a, ops.zeros((1, M_B))), axis=-1)
    at_zero = DecoupledState(MeanPrecision(a, state.q.L_B), ())
    alone = at_first_batch(ops, DecoupledSVGP(), "gaussian")
    found, wanted = float(whole.elbo(at_zero)), float(alone.elbo(state))
    assert found == pytest.approx(wanted, rel=1e-12)


def test_a_union_neither_grows_nor_samples_columns() -> None:
    assert DecoupledSVGP(union=True).refuses_growth()
    with pytest.raises(UserError, match="union or subset"):
        DecoupledSVGP(union=True, subset=4)


def test_kl_with_sampled_columns_may_be_negative() -> None:
    near = np.argsort(np.sum((PROBLEM.gamma - PROBLEM.gamma[0]) ** 2, axis=1))[:2]
    a = np.zeros((1, M_A))
    a[0, near] = (1.0, -100.0)  # the drawn one is small and its neighbour is not
    state = DecoupledState(MeanPrecision(a, 1e-3 * np.eye(M_B)[None]), ())
    assert at_first_batch(NUMPY, DecoupledSVGP(subset=1), "gaussian", near[:1]).kl(state) < 0.0
    assert at_first_batch(NUMPY, DecoupledSVGP(), "gaussian").kl(state) > 0.0


def test_the_start_is_the_prior_and_not_a_saddle() -> None:
    method = DecoupledSVGP()
    at = at_first_batch(NUMPY, method, "bernoulli-logit")
    start = method.initial_state(NUMPY, at.p, 1, 48)
    assert 0.0 <= at.kl(start) < 1e-10
    slope = method.gradients(NUMPY, at.f, at.data, start).L_B
    assert np.max(np.abs(slope)) > 1e-4
    saddle = start._replace(q=start.q._replace(L_B=0.0 * start.q.L_B))
    at_zero = method.gradients(NUMPY, at.f, at.data, saddle).L_B
    assert not np.any(at_zero)


def test_bad_options_are_one_line() -> None:
    with pytest.raises(UserError, match="unknown E-step of decoupled 'sdg'; did you mean 'sgd'"):
        build_method("decoupled", {"optimiser": "sdg"})
    with pytest.raises(UserError, match="'subset' of method 'decoupled' must be 0"):
        build_method("decoupled", {"subset": -1})


def test_the_posterior_is_that_of_dense_algebra(ops: Ops) -> None:
    """K_βα a and K_β − K_βCK_β with C = (B⁻¹ + K_β)⁻¹."""
    method, state = DecoupledSVGP(), some_state(ops)
    at = at_first_batch(ops, method, "gaussian")
    mean, S = method.posterior(ops, at.p, method.factorise(ops, at.p, state))
    theta = PROBLEM.theta(build_model("gaussian", "matern52"), "decoupled")
    alpha, beta = theta.inducing
    K_b = kernel_matrix("matern52", theta, beta, beta) + 1e-6 * np.eye(M_B)
    a, L_B = (ops.to_numpy(x)[0] for x in state.q)
    C = np.linalg.inv(np.linalg.inv(L_B @ L_B.T) + K_b)
    expected = kernel_matrix("matern52", theta, beta, alpha) @ a
    np.testing.assert_allclose(ops.to_numpy(mean)[0], expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ops.to_numpy(S)[0], K_b - K_b @ C @ K_b, rtol=1e-7, atol=1e-9)
