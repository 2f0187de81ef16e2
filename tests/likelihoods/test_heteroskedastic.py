"""Gaussian noise with a latent log variance: integrals by SciPy, limits, and a fit that finds the noise."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from svgpbench.api import fit
from svgpbench.backends import load_backend
from svgpbench.checks.dense.expectations import expectations
from svgpbench.likelihoods import GaussianLikelihood, GaussianParameters, HeteroskedasticGaussian
from svgpbench.ops import Ops
from svgpbench.sklearn import SVGPRegressor

NUMPY, LIKELIHOOD = load_backend("numpy"), HeteroskedasticGaussian()
S2 = 0.3
Y = np.array([-1.7, 0.0, 0.4, 3.0, 40.0])
MU = np.array([[0.3, -0.2, 0.5, 1.0, 9.0], [0.5, -2.0, 0.0, 1.5, 3.0]])
VAR = np.array([[0.5, 1e-8, 0.2, 2.0, 4.0], [0.3, 1.0, 1e-8, 2.5, 0.7]])


def parameters(ops: Ops, s2: float = S2) -> GaussianParameters:
    return GaussianParameters(ops.asarray(np.float64(s2)))


def test_expectations_are_integrals_over_both_latents(ops: Ops) -> None:
    args = [ops.asarray(x) for x in (Y, MU, VAR)]
    V, alpha, beta = expectations(LIKELIHOOD, GaussianParameters(S2), Y, MU, VAR, np.zeros((0, 2)))
    got = LIKELIHOOD.variational_expectations(ops, parameters(ops), *args)
    np.testing.assert_allclose(ops.to_numpy(got), V, rtol=1e-10)
    for got, expected in zip(
        LIKELIHOOD.gradients(ops, parameters(ops), *args), (alpha, beta), strict=True
    ):
        np.testing.assert_allclose(ops.to_numpy(got), expected, rtol=1e-10, atol=1e-10)


def by_scipy(y: float, mu: np.ndarray, v: np.ndarray, s2: float) -> float:
    """Return log p(y), by an adaptive integral over f₂ around its mode."""
    sd = np.sqrt(v[1])

    def log_product(f2: np.ndarray) -> np.ndarray:
        spread = np.sqrt(v[0] + s2 * np.exp(f2))
        given_f2 = scipy.stats.norm.logpdf(y, mu[0], spread)
        return given_f2 + scipy.stats.norm.logpdf(f2, mu[1], sd)

    # an outlier moves the mode towards the f₂ at which it is none
    explained = np.log(((y - mu[0]) ** 2 + v[0]) / s2)
    line = np.concatenate(
        [mu[1] + sd * np.linspace(-40, 40, 4001), np.linspace(mu[1], explained, 4001)]
    )
    for _ in range(12):
        best = line[np.argmax(log_product(line))]
        gap = np.min(np.abs(line - best)[line != best])
        line = best + gap * np.linspace(-1.5, 1.5, 31)
    top = log_product(best)
    steps = sd * np.array([0.0, *(0.01 * 1.6 ** np.arange(17))])
    edges = sorted({*(best - steps), *(best + steps)})
    total = sum(
        scipy.integrate.quad(lambda f: np.exp(log_product(f) - top), a, b, epsabs=0, epsrel=1e-9)[0]
        for a, b in itertools.pairwise(edges)
        if max(log_product(np.linspace(a, b, 50))) > top - 60.0
    )
    return float(top + np.log(total))


@pytest.mark.parametrize("v2", [1e-8, 1e-3, 0.3, 3.8, 25.0])
@pytest.mark.parametrize("mu2", [-8.0, 0.0, 6.0])
def test_densities_are_integrals_over_the_log_variance(mu2: float, v2: float) -> None:
    """Far outliers, certain and uncertain means, noise known and unknown."""
    cases = [(y, v1) for y in (0.0, 0.31, 2.0, 40.0) for v1 in (1e-8, 0.3)]
    y = np.array([case[0] for case in cases])
    mu = np.tile([[-0.2], [mu2]], (1, len(y)))
    v = np.stack([[case[1] for case in cases], np.full(len(y), v2)])
    got = LIKELIHOOD.log_predictive_density(NUMPY, parameters(NUMPY), y, mu, v)
    expected = [by_scipy(y[i], mu[:, i], v[:, i], S2) for i in range(len(y))]
    np.testing.assert_allclose(got, expected, rtol=1e-7, atol=1e-7)


def test_every_backend_has_the_same_densities(ops: Ops) -> None:
    args = [ops.asarray(x) for x in (Y, MU, VAR)]
    for got, expected in zip(
        LIKELIHOOD.predicted(ops, parameters(ops), *args)[:2],
        LIKELIHOOD.predicted(NUMPY, parameters(NUMPY), Y, MU, VAR)[:2],
        strict=True,
    ):
        np.testing.assert_allclose(ops.to_numpy(got), expected, rtol=1e-11, atol=1e-12)


def test_of_a_known_log_variance_it_is_gaussian_noise() -> None:
    known = np.stack([VAR[0], np.full_like(VAR[1], 1e-14)])
    p = parameters(NUMPY)
    for i, log_variance in enumerate(MU[1]):
        at = slice(i, i + 1)
        gaussian = GaussianParameters(S2 * np.exp(log_variance))
        args = (Y[at], MU[:1, at], VAR[:1, at])
        for name in ("variational_expectations", "log_predictive_density"):
            expected = getattr(GaussianLikelihood(), name)(NUMPY, gaussian, *args)
            got = getattr(LIKELIHOOD, name)(NUMPY, p, Y[at], MU[:, at], known[:, at])
            np.testing.assert_allclose(got, expected, rtol=1e-6)
        np.testing.assert_allclose(
            LIKELIHOOD.predictive_sd(NUMPY, p, MU[:, at], known[:, at]),
            GaussianLikelihood().predictive_sd(NUMPY, gaussian, MU[:1, at], VAR[:1, at]),
            rtol=1e-6,
        )


def test_a_fit_finds_noise_that_grows_with_the_input() -> None:
    rng = np.random.default_rng(3)

    def sd(x: np.ndarray) -> np.ndarray:
        return 0.05 + 0.5 * x

    def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
        x = rng.uniform(size=n)
        return x[:, None], np.sin(6.0 * x) + sd(x) * rng.standard_normal(n)

    (X, y), (X_test, y_test) = rows(400), rows(2000)
    model = SVGPRegressor(likelihood="heteroskedastic", inducing=15).fit(X, y)
    fits = {"gaussian": fit(X, y, inducing=15), "heteroskedastic": model.posterior_}
    nlpd = {name: x.score(X_test, y_test)["nlpd_original"] for name, x in fits.items()}
    assert nlpd["heteroskedastic"] < nlpd["gaussian"] - 0.15
    assert nlpd["heteroskedastic"] < 0.03 + np.mean(
        -scipy.stats.norm.logpdf(y_test, np.sin(6.0 * X_test[:, 0]), sd(X_test[:, 0]))
    )
    at = np.array([[0.1], [0.5], [0.9]])
    predicted = model.posterior_.predict(at, std=True, quantiles=(0.025, 0.975))
    np.testing.assert_allclose(model.predict(at), predicted["mean"], atol=1e-9)
    np.testing.assert_array_equal(model.predict(at, return_std=True)[1], predicted["std"])
    # 400 rows tell the deviation at one input to some 10 %: it was off by up to 18 % with three seeds
    np.testing.assert_allclose(predicted["std"], sd(at[:, 0]), rtol=0.2)
    width = (predicted["0.975"] - predicted["0.025"]) / predicted["std"]
    # 1.002 to 1.003 times that of a Gaussian, as the noise variance itself is uncertain
    np.testing.assert_allclose(width, 2 * 1.96, rtol=0.004)
