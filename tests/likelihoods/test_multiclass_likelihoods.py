"""Softmax and robust-max: derivatives, integrals, probabilities, and the same numbers everywhere."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.integrate
import scipy.special as sc
import scipy.stats
from finite_differences import derivative

from svgpbench.backends import load_backend
from svgpbench.errors import UserError
from svgpbench.likelihoods import (
    BernoulliLogit,
    NoParameters,
    RobustMax,
    Softmax,
    WeightedNoise,
)
from svgpbench.likelihoods.multiclass import MulticlassLikelihood
from svgpbench.likelihoods.quadrature import gauss_hermite
from svgpbench.ops import Array, Ops, Tree

Floats = npt.NDArray[np.float64]
CLASSES, ROWS, EPSILON = 4, 9, 1e-3
RNG = np.random.default_rng(3)
MU = RNG.normal(size=(CLASSES, ROWS))
VAR = np.exp(0.5 * RNG.normal(size=(CLASSES, ROWS)))
Y = np.arange(ROWS) % CLASSES * 1.0
NOISE = RNG.normal(size=(7, CLASSES))

SOFTMAX, ROBUST_MAX = Softmax(classes=CLASSES), RobustMax(classes=CLASSES, epsilon=EPSILON)
SQUASHED = RobustMax(classes=CLASSES, epsilon=EPSILON, nodes=20, squash=1e-6)
CASES: dict[str, MulticlassLikelihood] = {
    "softmax": SOFTMAX,
    "robust-max": ROBUST_MAX,
    "squashed robust-max": SQUASHED,
}
every_likelihood = pytest.mark.parametrize("name", CASES)


def bound_parameters(ops: Ops, name: str) -> Tree:
    return CASES[name].bind(NoParameters(), ops.asarray(NOISE) if name == "softmax" else ())


def everything(ops: Ops, name: str) -> list[Any]:
    """V, α, β, predictive density and class probabilities."""
    x, p = CASES[name], bound_parameters(ops, name)
    y, mu, v = (ops.asarray(a) for a in (Y, MU, VAR))
    return [
        x.variational_expectations(ops, p, y, mu, v),
        *x.gradients(ops, p, y, mu, v),
        x.log_predictive_density(ops, p, y, mu, v),
        x.predict(ops, p, mu, v),
    ]


def expectations(name: str, mu: Floats, v: Floats) -> Floats:
    """V̂ [b] on NumPy."""
    ops = load_backend("numpy")
    p = bound_parameters(ops, name)
    return np.asarray(CASES[name].variational_expectations(ops, p, Y, mu, v))


def shifted(x: Floats, latent: int, h: float) -> Floats:
    moved = x.copy()
    moved[latent] += h
    return moved


@every_likelihood
def test_every_backend_has_the_same_numbers(ops: Ops, name: str) -> None:
    for got, wanted in zip(
        everything(ops, name), everything(load_backend("numpy"), name), strict=True
    ):
        np.testing.assert_allclose(ops.to_numpy(got), wanted, rtol=1e-11, atol=1e-13)


@every_likelihood
def test_alpha_is_the_derivative_of_the_discretised_expectation(name: str) -> None:
    _, alpha, *_ = everything(load_backend("numpy"), name)
    for c in range(CLASSES):
        wanted = derivative(lambda h, c=c: expectations(name, shifted(MU, c, h), VAR), 1e-3)
        np.testing.assert_allclose(alpha[c], wanted, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", ["robust-max", "squashed robust-max"])
def test_beta_of_robust_max_is_the_derivative_in_the_variance(name: str) -> None:
    _, _, beta, *_ = everything(load_backend("numpy"), name)
    assert np.any(beta < 0)
    for c in range(CLASSES):
        wanted = derivative(lambda h, c=c: expectations(name, MU, shifted(VAR, c, h)), 1e-3)
        np.testing.assert_allclose(beta[c], -2 * wanted, rtol=1e-8, atol=1e-8)


def test_beta_of_softmax_is_minus_the_derivative_of_alpha() -> None:
    """Mean p(1 − p) is exactly −∂α_c/∂μ_c draw by draw, and never negative."""
    ops = load_backend("numpy")
    _, _, beta, *_ = everything(ops, "softmax")
    p = bound_parameters(ops, "softmax")
    assert np.all(beta >= 0)
    for c in range(CLASSES):

        def alpha_at(h: float, c: int = c) -> Floats:
            return np.asarray(SOFTMAX.gradients(ops, p, Y, shifted(MU, c, h), VAR)[0][c])

        np.testing.assert_allclose(beta[c], -derivative(alpha_at, 1e-3), rtol=1e-8, atol=1e-9)


@every_likelihood
def test_autodiff_of_the_expectation(ops: Ops, name: str) -> None:
    """α in μ; in v −β/2, for softmax the slope of V̂ itself."""
    likelihood, p = CASES[name], bound_parameters(ops, name)
    y, mu, v = (ops.asarray(a) for a in (Y, MU, VAR))

    def f(tree: tuple[Array, Array]) -> Array:
        return ops.sum(likelihood.variational_expectations(ops, p, y, *tree))

    _, (in_mu, in_v) = ops.value_and_grad(f)((mu, v))
    alpha, beta = likelihood.gradients(ops, p, y, mu, v)
    np.testing.assert_allclose(ops.to_numpy(in_mu), ops.to_numpy(alpha), rtol=1e-11, atol=1e-13)
    if name != "softmax":
        wanted = -0.5 * ops.to_numpy(beta)
        np.testing.assert_allclose(ops.to_numpy(in_v), wanted, rtol=1e-12, atol=1e-13)
        return
    for c in range(CLASSES):
        wanted = derivative(lambda h, c=c: expectations(name, MU, shifted(VAR, c, h)), 1e-3)
        np.testing.assert_allclose(ops.to_numpy(in_v)[c], wanted, rtol=1e-8, atol=1e-9)


def test_slope_of_a_sampled_expectation_tends_to_minus_half_beta() -> None:
    """To O(S^−½): |∂V̂/∂v + β/2| within six standard errors, which halve when S is fourfold."""
    ops = load_backend("numpy")
    for draws in (4_000, 16_000):
        noise = np.random.default_rng(1).standard_normal((draws, CLASSES))
        p = SOFTMAX.bind(NoParameters(), noise)
        _, beta = SOFTMAX.gradients(ops, p, Y, MU, VAR)
        for c in range(CLASSES):

            def at(h: float, c: int = c, p: Tree = p) -> Floats:
                V = SOFTMAX.variational_expectations(ops, p, Y, MU, shifted(VAR, c, h))
                return np.asarray(V)

            error = np.abs(derivative(at, 1e-2) + 0.5 * beta[c])
            # the slope averages (onehot − p) ε/(2√v), of standard deviation at most 1/(2√v)
            assert np.all(error <= 6.0 / (2.0 * np.sqrt(VAR[c] * draws)))


def chance_of_the_largest(y: int, mu: Floats, v: Floats) -> float:
    """P[f_y is the largest] by SciPy's adaptive quadrature over f_y."""
    others = [c for c in range(len(mu)) if c != y]

    def integrand(t: float) -> float:
        z = (mu[y] + np.sqrt(v[y]) * t - mu[others]) / np.sqrt(v[others])
        return float(np.exp(-0.5 * t * t) / np.sqrt(2 * np.pi) * np.prod(sc.ndtr(z)))

    return float(scipy.integrate.quad(integrand, -12, 12, epsabs=1e-13, epsrel=1e-12, limit=200)[0])


def test_robust_max_equals_adaptive_quadrature() -> None:
    """V, and α and β as the derivatives of the integral itself in means and variances."""
    ops, dense = load_backend("numpy"), dataclasses.replace(ROBUST_MAX, nodes=200)
    V = dense.variational_expectations(ops, NoParameters(), Y, MU, VAR)
    alpha, beta = dense.gradients(ops, NoParameters(), Y, MU, VAR)
    right, wrong = np.log(1 - EPSILON), np.log(EPSILON / (CLASSES - 1))
    for i in (0, 3, 6):
        y, mu, v = int(Y[i]), MU[:, i], VAR[:, i]
        P = chance_of_the_largest(y, mu, v)
        np.testing.assert_allclose(V[i], P * right + (1 - P) * wrong, rtol=1e-10)
        for c in range(CLASSES):
            in_mu = derivative(
                lambda h, c=c, a=(y, mu, v): chance_of_the_largest(a[0], shifted(a[1], c, h), a[2]),
                1e-2,
            )
            in_v = derivative(
                lambda h, c=c, a=(y, mu, v): chance_of_the_largest(a[0], a[1], shifted(a[2], c, h)),
                1e-2,
            )
            np.testing.assert_allclose(alpha[c, i], (right - wrong) * in_mu, atol=1e-6)
            np.testing.assert_allclose(beta[c, i], -2 * (right - wrong) * in_v, atol=1e-5)


def test_sharp_competitors_need_the_nodes_that_robust_max_has() -> None:
    """Where competitors vary a tenth as much as f_y: 20 nodes miss P by up to 1e-2, 100 by 1e-5."""
    ops, v = load_backend("numpy"), np.full((CLASSES, ROWS), 0.1)
    v[Y.astype(int), np.arange(ROWS)] = 1.0
    exact = [chance_of_the_largest(int(y), MU[:, i], v[:, i]) for i, y in enumerate(Y)]
    errors = {}
    for nodes in (20, ROBUST_MAX.nodes):
        at = dataclasses.replace(ROBUST_MAX, nodes=nodes)
        V = at.variational_expectations(ops, NoParameters(), Y, MU, v)
        right, wrong = np.log(1 - EPSILON), np.log(EPSILON / (CLASSES - 1))
        errors[nodes] = np.max(np.abs((V - wrong) / (right - wrong) - exact))
    assert 1e-3 < errors[20] < 1e-2
    assert errors[ROBUST_MAX.nodes] < 1e-5


@every_likelihood
def test_probabilities_sum_to_one_and_hold_the_label_s_own(ops: Ops, name: str) -> None:
    *_, density, probabilities = (ops.to_numpy(x) for x in everything(ops, name))
    # the classes of robust-max are integrated one by one
    tolerance = {"softmax": 1e-14, "robust-max": 1e-6, "squashed robust-max": 5e-3}[name]
    np.testing.assert_allclose(probabilities.sum(axis=0), 1.0, atol=tolerance)
    own = probabilities[Y.astype(int), np.arange(ROWS)]
    np.testing.assert_allclose(np.exp(density), own, rtol=1e-13)


def test_predictive_density_of_softmax_is_the_log_of_the_mean() -> None:
    ops = load_backend("numpy")
    *_, density, _ = everything(ops, "softmax")
    f = MU[..., None] + np.sqrt(VAR)[..., None] * NOISE.T[:, None]
    p = sc.softmax(f, axis=0)[Y.astype(int), np.arange(ROWS)]  # [b, S]
    np.testing.assert_allclose(density, np.log(p.mean(axis=-1)), rtol=1e-13)
    V = expectations("softmax", MU, VAR)
    assert np.all(density > V)  # Jensen


def test_softmax_of_two_classes_is_the_logit_of_their_difference() -> None:
    """f₁ − f₀ ~ N(μ₁ − μ₀, v₀ + v₁): V, α of class 1, β, by a grid of nodes as weighted noise."""
    ops = load_backend("numpy")
    t, w = gauss_hermite(60)
    noise = np.stack(np.meshgrid(t, t, indexing="ij"), axis=-1).reshape(-1, 2)
    p = WeightedNoise(noise, np.outer(w, w).reshape(-1))
    y, mu, v = Y % 2, MU[:2], VAR[:2]
    softmax, logit = Softmax(classes=2), BernoulliLogit(nodes=200)
    difference, total = (mu[1] - mu[0])[None], v.sum(axis=0)[None]
    V = logit.variational_expectations(ops, NoParameters(), y, difference, total)
    alpha, beta = logit.gradients(ops, NoParameters(), y, difference, total)
    got = softmax.gradients(ops, p, y, mu, v)
    np.testing.assert_allclose(softmax.variational_expectations(ops, p, y, mu, v), V, rtol=1e-8)
    np.testing.assert_allclose(got[0], [-alpha[0], alpha[0]], rtol=1e-7)
    np.testing.assert_allclose(got[1], [beta[0], beta[0]], rtol=1e-7)


def test_latents_far_apart_neither_overflow_nor_give_nan(ops: Ops) -> None:
    mu, v = 1000.0 * MU, 0.0 * VAR + 0.01
    for name, x in CASES.items():
        p, args = bound_parameters(ops, name), [ops.asarray(a) for a in (Y, mu, v)]
        for got in (x.variational_expectations(ops, p, *args), *x.gradients(ops, p, *args)):
            assert np.all(np.isfinite(ops.to_numpy(got)))
        sure = ops.to_numpy(x.predict(ops, p, *args[1:]))
        assert np.array_equal(sure.argmax(axis=0), mu.argmax(axis=0))


def test_robust_max_with_equal_latents_is_even() -> None:
    ops, level = load_backend("numpy"), np.ones((CLASSES, 1))
    probabilities = ROBUST_MAX.predict(ops, NoParameters(), level, level)
    np.testing.assert_allclose(probabilities, 1 / CLASSES, rtol=1e-12)
    two = dataclasses.replace(ROBUST_MAX, classes=2).predict(
        ops, NoParameters(), np.array([[0.3], [1.0]]), np.array([[0.5], [0.2]])
    )
    largest = scipy.stats.norm.cdf(0.7 / np.sqrt(0.7))
    np.testing.assert_allclose(two[1, 0], EPSILON + (1 - 2 * EPSILON) * largest, rtol=1e-9)


def test_a_single_class_is_refused() -> None:
    with pytest.raises(UserError, match="needs at least 2 classes, not 1"):
        Softmax(classes=1)
