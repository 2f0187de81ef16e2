"""Properties that every likelihood must have, by numerical differences and integrals of its own functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from svgpbench.backends import load_backend
from svgpbench.checks.cases import SETTINGS
from svgpbench.checks.evaluate import REFERENCE
from svgpbench.config import LikelihoodConfig
from svgpbench.likelihoods import Conditional, Likelihood, build_likelihood
from svgpbench.ops import Ops
from svgpbench.plugins import LIKELIHOODS, load
from svgpbench.tree import leaves, rebuild

Floats = npt.NDArray[np.float64]

STEP = 1e-3
"""Step of a difference of fourth order; its error is about 1e-11 of the fifth derivative."""

OVER = {
    "real": "all real numbers",
    "positive": "all numbers above 0",
    "counts": "the counts 0, 1, 2, …",
    "binary": "the labels 0 and 1",
    "classes": "all classes",
}

VARIANCES = (0.05, 0.6, 2.5)


class Points(NamedTuple):
    """Targets y [b] with latent means and variances [P, b]."""

    y: Floats
    mu: Floats
    v: Floats


def build(name: str) -> Likelihood:
    """Return the likelihood with the settings of `svgpbench check`."""
    settings = SETTINGS.get(name, {})
    if load(LIKELIHOODS, name).support == "classes":
        settings = {"classes": 3} | settings
    return build_likelihood(LikelihoodConfig(name=name, **settings))


def targets(likelihood: Likelihood) -> Floats:
    """Return values of y that the likelihood takes."""
    values = {
        "real": np.array([-1.7, -0.2, 0.4, 3.0]),
        "binary": np.array([0.0, 1.0]),
        "classes": np.arange(float(likelihood.latents)),
        "counts": np.array([0.0, 1.0, 2.0, 7.0]),
        "positive": np.array([0.02, 0.4, 1.3, 7.5]),
    }
    return values[likelihood.support]


def points_of(likelihood: Likelihood) -> Points:
    """Return every target at each variance, with means that differ."""
    y = np.tile(targets(likelihood), len(VARIANCES))
    rng = np.random.default_rng(4)
    shape = (likelihood.latents, len(y))
    spread = np.repeat(VARIANCES, len(y) // len(VARIANCES))
    return Points(y, rng.normal(0.0, 0.8, shape), spread * rng.uniform(0.8, 1.2, shape))


def bound_to(ops: Ops, likelihood: Likelihood, parameters: Any = None) -> Conditional:
    """Return the likelihood with its initial or given parameters, and draws if it samples."""
    if parameters is None:
        parameters = likelihood.initial_parameters()
    shape = (likelihood.samples, likelihood.latents)
    noise = ops.asarray(np.random.default_rng(5).standard_normal(shape)) if shape[0] else ()
    scalars = rebuild(parameters, iter([ops.asarray(np.float64(x)) for x in leaves(parameters)]))
    return Conditional(likelihood, likelihood.bind(scalars, noise))


def expected(ops: Ops, conditional: Conditional, points: Points) -> Floats:
    """Return V [b]."""
    V = conditional.variational_expectations(ops, *map(ops.asarray, points))
    return np.asarray(ops.to_numpy(V))


def log_predictive(ops: Ops, conditional: Conditional, points: Points) -> Floats:
    """Return log p(y) [b]."""
    return np.asarray(
        ops.to_numpy(conditional.log_predictive_density(ops, *map(ops.asarray, points)))
    )


def slope(function: Callable[[float], Any]) -> Any:
    """Return the derivative at 0 by a difference of fourth order."""
    near = function(STEP) - function(-STEP)
    far = function(2 * STEP) - function(-2 * STEP)
    return (8.0 * near - far) / (12.0 * STEP)


def moved(points: Points, field: str, latent: int, distance: float) -> Points:
    """Return the points with the mean or the variance of one latent function moved."""
    values = np.array(getattr(points, field))
    values[latent] += distance
    return points._replace(**{field: values})


def slopes(ops: Ops, conditional: Conditional, points: Points) -> tuple[Floats, Floats]:
    """Return ∂V/∂μ and −2 ∂V/∂v, each [P, b]."""

    def all_latents(field: str) -> Floats:
        def moved_by(p: int) -> Callable[[float], Floats]:
            return lambda h: expected(ops, conditional, moved(points, field, p, h))

        return np.stack([slope(moved_by(p)) for p in range(len(points.mu))])

    return all_latents("mu"), -2.0 * all_latents("v")


def agree(value: Any, other: Any, tolerance: float) -> None:
    """Fail unless two arrays differ by at most a share of the larger one's magnitude, at least of 1."""
    value, other = np.asarray(value), np.asarray(other)
    scale = max(1.0, float(np.abs(other).max(initial=0.0)))
    np.testing.assert_allclose(value, other, rtol=0.0, atol=tolerance * scale)


@pytest.fixture(autouse=True)
def float64_unless_compared(request: pytest.FixtureRequest, ops: Ops) -> None:
    """Skip tests by differences and integrals, which float32 has not the digits for."""
    if ops.dtype != "float64" and request.function is not test_numbers_are_those_of_the_reference:
        pytest.skip(f"backend {ops.name!r} offers no float64, whose differences tell")


@pytest.fixture
def likelihood(likelihood_name: str) -> Likelihood:
    """Return each likelihood that is tested."""
    return build(likelihood_name)


def test_alpha_and_beta_are_slopes_of_the_expected_log_likelihood(
    ops: Ops, likelihood: Likelihood
) -> None:
    if likelihood.samples:
        pytest.skip("it samples: α and β may be another estimate than the slopes of V")
    points, conditional = points_of(likelihood), bound_to(ops, likelihood)
    alpha, beta = conditional.gradients(ops, *map(ops.asarray, points))
    expected_alpha, expected_beta = slopes(ops, conditional, points)
    agree(ops.to_numpy(alpha), expected_alpha, 1e-7)
    if not likelihood.clips:
        agree(ops.to_numpy(beta), expected_beta, 1e-7)


def test_expectations_are_a_sum_and_its_gradient(ops: Ops, likelihood: Likelihood) -> None:
    if not type(ops).capabilities.autodiff:
        pytest.skip(f"backend {ops.name!r} has no autodiff")
    points, conditional = points_of(likelihood), bound_to(ops, likelihood)
    found = conditional.expectations(ops, *map(ops.asarray, points))
    agree(ops.to_numpy(found.value), expected(ops, conditional, points).sum(), 1e-12)
    alpha, beta = slopes(ops, conditional, points)
    agree(ops.to_numpy(found.alpha), alpha, 1e-7)
    agree(ops.to_numpy(found.beta), beta, 1e-7)
    initial = leaves(likelihood.initial_parameters())
    for index, gradient in enumerate(leaves(found.parameters)):

        def total(h: float, index: int = index) -> float:
            values = [x + h * (i == index) for i, x in enumerate(initial)]
            parameters = rebuild(likelihood.initial_parameters(), iter(values))
            return float(expected(ops, bound_to(ops, likelihood, parameters), points).sum())

        agree(ops.to_numpy(gradient), slope(total), 1e-7)


def test_the_expected_log_is_below_the_log_of_the_expectation(
    ops: Ops, likelihood: Likelihood
) -> None:
    """Jensen's inequality; both are log p(y | μ) where the variance is 0."""
    points, conditional = points_of(likelihood), bound_to(ops, likelihood)
    V, log_p = expected(ops, conditional, points), log_predictive(ops, conditional, points)
    assert np.all(log_p + 1e-8 >= V)
    certain = points._replace(v=np.full_like(points.v, 1e-10))
    V, log_p = expected(ops, conditional, certain), log_predictive(ops, conditional, certain)
    agree(V, log_p, 1e-7)


def outcomes(likelihood: Likelihood, mu: Floats, v: Floats) -> tuple[Points, Floats]:
    """Return targets that cover the distribution of y at one (μ, v) [P], and their weights in an integral."""
    if likelihood.support == "real":
        # steps of 3e-3 around μ, and a reach of 8e4 for heavy tails
        t = np.linspace(-12.0, 12.0, 8001)
        y, weights = mu[0] + np.sinh(t), np.cosh(t) * (t[1] - t[0])
    elif likelihood.support == "positive":
        t = np.linspace(-40.0, 40.0, 8001)
        y = np.exp(t)
        weights = y * (t[1] - t[0])
    else:
        count = 400 if likelihood.support == "counts" else len(targets(likelihood))
        y, weights = np.arange(float(count)), np.ones(count)
    shape = (len(mu), len(y))
    return Points(
        y, np.broadcast_to(mu[:, None], shape), np.broadcast_to(v[:, None], shape)
    ), weights


def distributions(ops: Ops, likelihood: Likelihood) -> Iterator[tuple[Points, Floats]]:
    """Yield targets and their probabilities at some means and variances."""
    points, conditional = points_of(likelihood), bound_to(ops, likelihood)
    # of a wider f, e^f exceeds 400, the largest count here, with a probability above 1e-6
    for mu, v in zip(points.mu.T[::3], np.minimum(points.v, 0.7).T[::3], strict=True):
        covering, weights = outcomes(likelihood, mu, v)
        yield covering, np.exp(log_predictive(ops, conditional, covering)) * weights


def mu_and_v(ops: Ops, points: Points) -> tuple[Any, Any]:
    """Return mean and variance of the first point."""
    return ops.asarray(points.mu[:, :1]), ops.asarray(points.v[:, :1])


def test_predictive_probabilities_add_up_to_one(ops: Ops, likelihood: Likelihood) -> None:
    for _, p in distributions(ops, likelihood):
        assert p.sum() == pytest.approx(1.0, abs=1e-6), (
            f"the predictive density of {likelihood.name!r} adds up to {p.sum():.6g} over "
            f"{OVER[likelihood.support]}, as support = {likelihood.support!r} says: is y something else?"
        )


def test_predictions_are_moments_of_the_predictive_distribution(
    ops: Ops, likelihood: Likelihood
) -> None:
    """The mean of y, the probability of class 1, or of each class; the variance, if p(y) is Gaussian."""
    conditional = bound_to(ops, likelihood)
    for points, p in distributions(ops, likelihood):
        predicted = conditional.predicted(ops, *map(ops.asarray, points))
        mean = np.asarray(ops.to_numpy(predicted.mean))[..., 0]
        expected_mean = {
            "real": p @ points.y,
            "counts": p @ points.y,
            "positive": p @ points.y,
            "binary": p[-1],
            "classes": p,
        }[likelihood.support]
        agree(mean, expected_mean, 1e-5)
        if likelihood.task == "regression":
            sd = np.asarray(ops.to_numpy(conditional.predictive_sd(ops, *mu_and_v(ops, points))))
            if np.isfinite(sd[0]) and likelihood.name != "student-t":  # whose tails leave the grid
                agree(sd[0] ** 2, p @ (points.y - p @ points.y) ** 2, 1e-3)
        if not isinstance(predicted.variance, tuple):
            variance = np.asarray(ops.to_numpy(predicted.variance))[0]
            agree(variance, p @ (points.y - p @ points.y) ** 2, 1e-5)


def test_a_log_concave_likelihood_has_no_negative_beta(ops: Ops, likelihood: Likelihood) -> None:
    if not likelihood.log_concave:
        pytest.skip("it says that it is not log-concave")
    if likelihood.samples:
        pytest.skip("it samples: an estimate of β may be negative")
    points, conditional = points_of(likelihood), bound_to(ops, likelihood)
    for shift in (-3.0, 0.0, 3.0):
        shifted = points._replace(mu=points.mu + shift)
        _, beta = conditional.gradients(ops, *map(ops.asarray, shifted))
        assert np.all(np.asarray(ops.to_numpy(beta)) >= -1e-9)


def test_numbers_are_those_of_the_reference(ops: Ops, likelihood: Likelihood) -> None:
    if ops.name == REFERENCE:
        pytest.skip("it is the reference")
    points, reference = points_of(likelihood), load_backend(REFERENCE)
    unit = 1e-10 if ops.dtype == "float64" else 1e-4

    def numbers(ops: Ops) -> list[Floats]:
        conditional = bound_to(ops, likelihood)
        arrays = tuple(map(ops.asarray, points))
        predicted = conditional.predicted(ops, *arrays)
        values = [*conditional.gradients(ops, *arrays), predicted.log_density, predicted.mean]
        return [expected(ops, conditional, points), *(np.asarray(ops.to_numpy(x)) for x in values)]

    for value, other in zip(numbers(ops), numbers(reference), strict=True):
        agree(value, other, unit)
