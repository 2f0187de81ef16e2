"""V, α and β of every likelihood: exact derivatives of the discretised V, and dense quadrature."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
import scipy.integrate
import scipy.special as sc
import scipy.stats
from finite_differences import derivative

from svgpbench.backends import load_backend
from svgpbench.likelihoods import (
    BernoulliLogit,
    BernoulliProbit,
    GaussianLikelihood,
    GaussianParameters,
    Likelihood,
    NoParameters,
    Poisson,
    StudentT,
    StudentTParameters,
    likelihoods,
)
from svgpbench.ops import Array, Ops, Tree
from svgpbench.plugins import LIKELIHOODS, is_ours

Floats = npt.NDArray[np.float64]
NOISE, SQUASH, SCALE, DF = 0.3, 1e-3, 0.7, 3.0

CASES: dict[str, Likelihood] = {
    "gaussian": GaussianLikelihood(),
    "bernoulli-probit": BernoulliProbit(),
    "squashed bernoulli-probit": BernoulliProbit(squash=SQUASH),
    "bernoulli-logit": BernoulliLogit(),
    "student-t": StudentT(df=DF),
    "poisson": Poisson(),
}
DENSE: dict[str, Likelihood] = {
    name: dataclasses.replace(x, nodes=200) if hasattr(x, "nodes") else x
    for name, x in CASES.items()
}
MU, VAR = (
    x.reshape(1, -1) for x in np.meshgrid([-4.0, -2.0, -0.3, 0.0, 1.0, 3.0], [0.05, 0.5, 2.0])
)
every_likelihood = pytest.mark.parametrize("name", CASES)


def targets(name: str) -> Floats:
    y = np.linspace(-1.5, 2.0, MU.size)
    if CASES[name].support == "counts":
        return np.arange(MU.size) % 7.0
    return y if CASES[name].support == "real" else (y > 0).astype(np.float64)


def parameters(ops: Ops, name: str) -> Tree:
    if name == "gaussian":
        return GaussianParameters(ops.asarray(np.float64(NOISE)))
    return (
        StudentTParameters(ops.asarray(np.float64(SCALE)))
        if name == "student-t"
        else NoParameters()
    )


def log_density(name: str, y: Floats, f: Floats) -> Floats:
    """Log p(y | f) by SciPy."""
    if name == "gaussian":
        return np.asarray(scipy.stats.norm.logpdf(y, f, np.sqrt(NOISE)))
    if name == "student-t":
        return np.asarray(scipy.stats.t.logpdf(y, DF, f, SCALE))
    if name == "poisson":
        return np.asarray(scipy.stats.poisson.logpmf(y, np.exp(f)))
    margin = (2 * y - 1) * f
    if name == "bernoulli-logit":
        return np.asarray(sc.log_expit(margin))
    if name == "bernoulli-probit":
        return np.asarray(sc.log_ndtr(margin))
    return np.log(SQUASH + (1 - 2 * SQUASH) * sc.ndtr(margin))


def integral(mu: Floats, v: Floats, g: Callable[[Floats], Floats]) -> Floats:
    """E g(f) under N(μ, v) by the trapezium rule on ±12 σ, which converges faster than any power."""
    t = np.linspace(-12.0, 12.0, 6001)
    weights = scipy.stats.norm.pdf(t) * (t[1] - t[0])
    return np.asarray(np.sum(weights * g(mu[..., None] + np.sqrt(v)[..., None] * t), axis=-1))


def expectations(name: str, mu: Floats, v: Floats) -> Floats:
    """V̂ [b] itself, on NumPy."""
    ops = load_backend("numpy")
    p = parameters(ops, name)
    return np.asarray(CASES[name].variational_expectations(ops, p, targets(name), mu, v))


def test_every_likelihood_of_one_latent_is_tested_here() -> None:
    ours = {cls for name, cls in likelihoods().items() if is_ours(LIKELIHOODS, name)}
    assert {type(x) for x in CASES.values()} == {cls for cls in ours if cls().latents == 1}


@every_likelihood
def test_alpha_and_beta_are_derivatives_of_the_discretised_expectation(name: str) -> None:
    ops = load_backend("numpy")
    alpha, beta = CASES[name].gradients(ops, parameters(ops, name), targets(name), MU, VAR)
    in_mu = derivative(lambda h: expectations(name, MU + h, VAR), 1e-3)
    in_v = derivative(lambda h: expectations(name, MU, VAR * (1 + h)), 1e-3) / VAR[0]
    np.testing.assert_allclose(alpha[0], in_mu, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(beta[0], -2 * in_v, rtol=1e-8, atol=1e-9)


@every_likelihood
def test_every_backend_has_the_same_expectation_and_derivatives(ops: Ops, name: str) -> None:
    reference = load_backend("numpy")
    likelihood, y = CASES[name], targets(name)
    p = parameters(reference, name)
    wanted = (
        likelihood.variational_expectations(reference, p, y, MU, VAR),
        *likelihood.gradients(reference, p, y, MU, VAR),
    )
    mine, args = parameters(ops, name), [ops.asarray(x) for x in (y, MU, VAR)]
    got = (
        likelihood.variational_expectations(ops, mine, *args),
        *likelihood.gradients(ops, mine, *args),
    )
    for g, w in zip(got, wanted, strict=True):
        np.testing.assert_allclose(ops.to_numpy(g), w, rtol=1e-11, atol=1e-13)


@every_likelihood
def test_gradient_through_the_expectation_is_alpha_and_minus_half_beta(ops: Ops, name: str) -> None:
    likelihood, p = CASES[name], parameters(ops, name)
    y, mu, v = (ops.asarray(x) for x in (targets(name), MU, VAR))
    weights = ops.asarray(np.cos(np.arange(MU.size)))

    def f(tree: tuple[Array, Array]) -> Array:
        return ops.sum(weights * likelihood.variational_expectations(ops, p, y, *tree))

    _, (in_mu, in_v) = ops.value_and_grad(f)((mu, v))
    alpha, beta = likelihood.gradients(ops, p, y, mu, v)
    for got, wanted in ((in_mu, weights * alpha), (in_v, -0.5 * weights * beta)):
        np.testing.assert_allclose(ops.to_numpy(got), ops.to_numpy(wanted), rtol=1e-12, atol=1e-12)


@every_likelihood
def test_expectation_and_derivatives_equal_dense_quadrature(name: str) -> None:
    """200 nodes against the integrals themselves: V, E[∇log p], and −∂V/∂v·2 by Bonnet and Price."""
    ops = load_backend("numpy")
    y, likelihood, p = targets(name), DENSE[name], parameters(ops, name)

    def exact(mu: Floats) -> Floats:
        return integral(mu, VAR, lambda f: log_density(name, y[None, :, None], f))

    value = likelihood.variational_expectations(ops, p, y, MU, VAR)
    np.testing.assert_allclose(value, exact(MU)[0], rtol=1e-9, atol=1e-10)
    alpha, beta = likelihood.gradients(ops, p, y, MU, VAR)
    np.testing.assert_allclose(alpha, derivative(lambda h: exact(MU + h), 1e-3), atol=1e-8)
    # β = −∂²V/∂μ²: a difference of differences, hence the wider step and tolerance
    h = 1e-2
    second = (
        -exact(MU + 2 * h) + 16 * exact(MU + h) - 30 * exact(MU) + 16 * exact(MU - h)
        - exact(MU - 2 * h)
    ) / (12 * h * h)  # fmt: skip
    np.testing.assert_allclose(beta, -second, atol=1e-6)


ERRORS_OF_20_NODES = {
    "bernoulli-probit": (5e-8, 4e-7, 4e-7),
    "squashed bernoulli-probit": (2e-3, 2e-2, 1e-2),
    "bernoulli-logit": (2e-8, 1e-7, 2e-7),
    "student-t": (1e-3, 6e-3, 4e-3),
    "poisson": (1e-12, 1e-12, 1e-12),
}
"""Largest errors of V, α and β with 20 nodes against 200 on the grid here, rounded up."""


@pytest.mark.parametrize("name", ERRORS_OF_20_NODES)
def test_20_nodes_are_as_good_as_stated_and_no_better(name: str) -> None:
    ops, y = load_backend("numpy"), targets(name)
    p, found = parameters(ops, name), []
    for likelihood in (CASES[name], DENSE[name]):
        V = likelihood.variational_expectations(ops, p, y, MU, VAR)
        found.append((V, *likelihood.gradients(ops, p, y, MU, VAR)))
    errors = [float(np.max(np.abs(a - b))) for a, b in zip(*found, strict=True)]
    for error, stated in zip(errors, ERRORS_OF_20_NODES[name], strict=True):
        assert error <= stated, errors
        assert error > 0.2 * stated or stated < 1e-10, errors


def test_gradient_in_the_scale_equals_differences(ops: Ops) -> None:
    likelihood, y = StudentT(df=DF), targets("student-t")
    args = [ops.asarray(x) for x in (y, MU, VAR)]

    def f(p: StudentTParameters) -> Array:
        return ops.sum(likelihood.variational_expectations(ops, p, *args))

    _, g = ops.value_and_grad(f)(parameters(ops, "student-t"))
    t, w = np.polynomial.hermite_e.hermegauss(likelihood.nodes)

    def plain(h: float) -> float:
        error = y[:, None] - (MU[0][:, None] + np.sqrt(VAR[0])[:, None] * t)
        density = scipy.stats.t.logpdf(error, DF, scale=SCALE + h)
        return float(np.sum(density @ w) / np.sqrt(2 * np.pi))

    np.testing.assert_allclose(ops.to_numpy(g.scale), derivative(plain, 1e-3), rtol=1e-9)


def test_gradient_in_the_noise_variance_equals_differences(ops: Ops) -> None:
    likelihood, y = GaussianLikelihood(), targets("gaussian")
    args = [ops.asarray(x) for x in (y, MU, VAR)]

    def f(p: GaussianParameters) -> Array:
        return ops.sum(likelihood.variational_expectations(ops, p, *args))

    _, g = ops.value_and_grad(f)(parameters(ops, "gaussian"))

    def plain(h: float) -> float:
        s2 = NOISE + h
        return float(np.sum(-0.5 * np.log(2 * np.pi * s2) - ((y - MU) ** 2 + VAR) / (2 * s2)))

    np.testing.assert_allclose(ops.to_numpy(g.noise_variance), derivative(plain, 1e-4), rtol=1e-9)


@every_likelihood
def test_predictive_density_is_the_log_of_the_integral(name: str) -> None:
    ops, y = load_backend("numpy"), targets(name)
    got = DENSE[name].log_predictive_density(ops, parameters(ops, name), y, MU, VAR)
    wanted = integral(MU, VAR, lambda f: np.exp(log_density(name, y[None, :, None], f)))
    # a Student-t has poles near the real line: 200 nodes leave 2e-9 at the largest variance
    np.testing.assert_allclose(got, np.log(wanted[0]), rtol=1e-9, atol=5e-9)


@pytest.mark.parametrize("name", [n for n in CASES if CASES[n].support == "binary"])
def test_predictive_probabilities_of_both_classes_sum_to_one(ops: Ops, name: str) -> None:
    likelihood, p = CASES[name], parameters(ops, name)
    mu, v = ops.asarray(MU), ops.asarray(VAR)
    one, zero = ops.asarray(np.ones(MU.size)), ops.asarray(np.zeros(MU.size))
    p1 = np.exp(ops.to_numpy(likelihood.log_predictive_density(ops, p, one, mu, v)))
    p0 = np.exp(ops.to_numpy(likelihood.log_predictive_density(ops, p, zero, mu, v)))
    np.testing.assert_allclose(p0 + p1, 1.0, rtol=1e-13)
    np.testing.assert_allclose(ops.to_numpy(likelihood.predict(ops, p, mu, v)), p1, rtol=1e-13)


@pytest.mark.parametrize("ops", ["numpy"], indirect=True)
@pytest.mark.parametrize("name", CASES)
def test_a_predictive_variance_is_stated_where_y_is_gaussian_and_nowhere_else(
    ops: Ops, name: str
) -> None:
    """By its quantiles: those of a Gaussian of that mean and variance hold their share of p(y)."""
    likelihood, p = CASES[name], parameters(ops, name)
    mu, v = ops.asarray(MU), ops.asarray(VAR)
    variance = likelihood.predictive_variance(ops, p, mu, v)
    if not isinstance(likelihood, GaussianLikelihood):
        assert variance == ()
        return
    deviation = np.sqrt(ops.to_numpy(variance))
    for level in (0.025, 0.6):
        y = scipy.stats.norm.ppf(level, MU[0], deviation)
        # P(y < q) = E Φ((q − f)/σ) under q(f)
        shares = [
            scipy.integrate.quad(lambda f, q=q, m=m, s=s: scipy.stats.norm.cdf((q - f) / NOISE**0.5)
                 * scipy.stats.norm.pdf(f, m, s),
                 m - 9 * s, m + 9 * s)[0]
            for q, m, s in zip(y, MU[0], np.sqrt(VAR[0]), strict=True)
        ]  # fmt: skip
        np.testing.assert_allclose(shares, level, rtol=1e-7)


def test_squashed_probit_is_not_log_concave_and_the_exact_one_is() -> None:
    """β at f = −4, y = 1 by a variance that hardly smooths."""
    ops = load_backend("numpy")
    y, mu, v = np.ones(1), np.full((1, 1), -4.0), np.full((1, 1), 1e-4)
    _, exact = BernoulliProbit().gradients(ops, NoParameters(), y, mu, v)
    _, squashed = BernoulliProbit(squash=SQUASH).gradients(ops, NoParameters(), y, mu, v)
    assert exact[0, 0] > 0.9
    np.testing.assert_allclose(squashed[0, 0], -0.50, atol=0.01)


@pytest.mark.parametrize("ops", ["numpy"], indirect=True)
def test_site_precision_is_the_inverse_noise_variance(ops: Ops) -> None:
    got = GaussianLikelihood().site_precision(ops, parameters(ops, "gaussian"))
    np.testing.assert_allclose(ops.to_numpy(got), 1 / NOISE, rtol=1e-15)
    assert ops.to_numpy(BernoulliLogit().site_precision(ops, NoParameters())) == 1.0
