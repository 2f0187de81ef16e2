"""Predictions of a fit are integrals of p(y | f) over its latent functions, whatever the likelihood."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import scipy.special as sc
from scipy.stats import norm, qmc
from small_fits import QUICK

from svgpbench.api import Posterior, UserError, fit
from svgpbench.backends import load_backend
from svgpbench.likelihoods import likelihoods
from svgpbench.posterior import posterior as posterior_module

Floats = npt.NDArray[np.float64]
GUARDED = QUICK | {"steps": "guarded"}


def one_of_largest(f: Floats) -> Floats:
    """Robust-max with ε = 1e-3."""
    largest = f == f.max(axis=0)
    return np.where(largest, 1 - 1e-3, 1e-3 / (len(f) - 1))


GIVEN_F: dict[str, Callable[[Floats], Floats]] = {
    "gaussian": lambda f: f,
    "student-t": lambda f: f,
    "heteroskedastic": lambda f: f[:1],
    "poisson": np.exp,
    "bernoulli-probit": lambda f: np.concatenate([sc.ndtr(-f), sc.ndtr(f)]),
    "bernoulli-logit": lambda f: np.concatenate([sc.expit(-f), sc.expit(f)]),
    "softmax": lambda f: np.asarray(sc.softmax(f, axis=0)),
    "robust-max": one_of_largest,
}
"""Mean of y, or probability of each class, at latent functions f [P, ...]."""

TREES = {2: ["ash", "oak"], 3: ["ash", "elm", "oak"]}
OPTIONS: dict[str, dict[str, Any]] = {"softmax": {"samples": 4000}}
every_likelihood = pytest.mark.parametrize("name", GIVEN_F)
every_classifier = pytest.mark.parametrize(
    "name", [name for name, of in likelihoods().items() if of.support in ("binary", "classes")]
)


class Fitted(NamedTuple):
    X: Floats
    y: npt.NDArray[Any]
    posterior: Posterior


@cache
def fitted(name: str) -> Fitted:
    """A fit to targets of the kind that a likelihood takes."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(70, 2))
    f = np.sin(2.0 * X[:, 0]) + 0.4
    y = {
        "real": 40.0 + 5.0 * f,
        "counts": rng.poisson(3.0 * np.exp(f)).astype(float),
        "binary": np.array(TREES[2])[(f > 0.0).astype(int)],
        "classes": np.array(TREES[3])[np.digitize(f, [-0.2, 0.6])],
    }[likelihoods()[name].support]
    likelihood = {"name": name} | OPTIONS.get(name, {})
    return Fitted(X, y, fit(X, y, likelihood=likelihood, inducing=10, training=GUARDED))


def integrated(name: str, posterior: Posterior, X: Floats) -> Floats:
    """E p(y | f) under q(f) [..., t]: by the trapezium rule, or 2¹⁴ Sobol points of several latents."""
    mu, v = posterior.latent(X)
    if len(mu) == 1:
        points = np.linspace(-12.0, 12.0, 6001)[None]
        weights = norm.pdf(points[0]) * (points[0, 1] - points[0, 0])
    else:
        points = norm.ppf(qmc.Sobol(len(mu), seed=0).random_base2(14)).T  # [P, S]
        weights = np.full(points.shape[1], 1.0 / points.shape[1])
    f = mu[..., None] + np.sqrt(v)[..., None] * points[:, None, :]
    return np.asarray(GIVEN_F[name](f) @ weights)


ERRORS = {"softmax": 0.01, "robust-max": 2e-3, "heteroskedastic": 1e-5}
"""Of 4000 draws, of 20 nodes at jumps, and of Sobol points; other integrals are exact."""


def test_every_likelihood_is_tested_here() -> None:
    assert set(GIVEN_F) == set(likelihoods())


@every_likelihood
def test_means_and_probabilities_are_integrals_over_the_latent_functions(name: str) -> None:
    X, _, posterior = fitted(name)
    found, wanted = posterior.predict(X), integrated(name, posterior, X)
    facts = posterior.facts
    if facts.class_labels is None:
        scaled = facts.y_mean + facts.y_scale * wanted[0]
        assert found["mean"].to_numpy() == pytest.approx(scaled, rel=ERRORS.get(name, 1e-10))
    else:
        assert list(found)[1:] == [f"p({tree})" for tree in TREES[len(wanted)]]
        shown = found.iloc[:, 1:].to_numpy().T
        assert shown == pytest.approx(wanted, abs=ERRORS.get(name, 1e-9))


@every_classifier
def test_the_label_is_the_likeliest_class_and_the_error_counts_the_others(name: str) -> None:
    X, y, posterior = fitted(name)
    p = integrated(name, posterior, X)
    first, second = np.sort(p, axis=0)[::-1][:2]
    clear = first - second > 0.05
    labels = posterior.predict(X)["label"].to_numpy()
    assert list(labels[clear]) == list(np.array(TREES[len(p)])[p.argmax(axis=0)][clear])
    assert np.mean(labels == y) > 0.6
    assert posterior.score(X, y)["error_rate"] == pytest.approx(np.mean(labels != y))


@every_likelihood
def test_only_targets_that_are_real_numbers_are_standardised(name: str) -> None:
    _, y, posterior = fitted(name)
    real = likelihoods()[name].support == "real"
    units = (y.mean(), y.std()) if real else (0.0, 1.0)
    assert (posterior.facts.y_mean, posterior.facts.y_scale) == pytest.approx(units)


def test_columns_go_by_their_names_and_not_by_the_alphabet() -> None:
    X, y, _ = fitted("gaussian")
    three = np.column_stack([X, X[:, 0] ** 2])
    frame = pd.DataFrame(three, columns=["width", "age", "height"])
    posterior = fit(frame, y, inducing=10, training=QUICK)
    wanted = posterior.predict(three)["mean"].to_list()
    assert posterior.facts.features == ("width", "age", "height")
    assert posterior.predict(frame)["mean"].to_list() == wanted
    assert posterior.predict(frame[["height", "width", "age"]])["mean"].to_list() == wanted


LEVELS = (0.05, 0.5, 0.95)


def drawn(name: str, posterior: Posterior, X: Floats) -> Floats:
    """Draws of y [S, t] in the units of y, through draws of f."""
    rng, (mu, v) = np.random.default_rng(0), posterior.latent(X)
    f = mu[0] + np.sqrt(v[0]) * rng.standard_normal((200_000, mu.shape[1]))
    if name == "poisson":
        return rng.poisson(np.exp(f)).astype(float)
    parameters = posterior.theta.likelihood
    if name == "gaussian":
        f = f + np.sqrt(parameters.noise_variance) * rng.standard_normal(f.shape)
    elif name == "heteroskedastic":
        g = mu[1] + np.sqrt(v[1]) * rng.standard_normal(f.shape)
        f = f + np.sqrt(parameters.noise_variance * np.exp(g)) * rng.standard_normal(f.shape)
    else:
        f = f + parameters.scale * rng.standard_t(posterior.model.likelihood.df, f.shape)
    return posterior.facts.y_mean + posterior.facts.y_scale * f


@pytest.mark.parametrize("name", ["gaussian", "heteroskedastic", "student-t", "poisson"])
def test_quantiles_and_deviations_are_of_y_in_its_units(name: str) -> None:
    X, _, posterior = fitted(name)
    found = posterior.predict(X[:4], quantiles=LEVELS, std=True)
    plain = posterior.predict(X[:4])
    assert list(found) == [*plain, "std", "0.05", "0.5", "0.95"]
    assert found[list(plain)].equals(plain)
    y = drawn(name, posterior, X[:4])
    shown = found[["0.05", "0.5", "0.95"]].to_numpy().T
    if name == "poisson":  # the least whole number with at least the level below or at it
        for level, values in zip(LEVELS, shown, strict=True):
            assert (values % 1 == 0).all()
            assert ((y <= values).mean(axis=0) > level - 0.005).all()
            assert ((y < values).mean(axis=0) < level + 0.005).all()
    else:
        assert shown == pytest.approx(np.quantile(y, LEVELS, axis=0), abs=0.03 * y.std())
    # 200,000 draws give a deviation to 1 %, but that of t with 3 degrees of freedom to 10 %
    tolerance = 0.1 if name == "student-t" else 0.01
    assert found["std"].to_numpy() == pytest.approx(y.std(axis=0), rel=tolerance)
    if name == "gaussian":
        assert found["std"].to_numpy() ** 2 == pytest.approx(found["variance"].to_numpy())


def test_levels_that_are_near_have_columns_of_their_own() -> None:
    X, _, posterior = fitted("gaussian")
    found = posterior.predict(X[:2], quantiles=(0.1 + 0.2, 0.1234561, 0.1234562, 0.9999999))
    assert list(found)[2:] == ["0.3", "0.1234561", "0.1234562", "0.9999999"]


def test_what_has_no_quantiles_is_refused() -> None:
    X, _, posterior = fitted("softmax")
    for more in ({"quantiles": [0.5]}, {"std": True}):
        with pytest.raises(UserError, match="labels have no quantiles and no standard deviation"):
            posterior.predict(X, **more)
    X, _, posterior = fitted("gaussian")
    for level in (0.0, 1.0, -0.1, np.nan):
        with pytest.raises(UserError, match="level"):
            posterior.predict(X, quantiles=[0.5, level])
    for levels in (0.5, "0.5", ["low"]):
        with pytest.raises(UserError, match="give a list of levels"):
            posterior.predict(X, quantiles=levels)


@pytest.mark.parametrize(
    "name", ["t-svgp", "q-svgp", "orth", "decoupled", "diagonal-precision", "t-vgp"]
)
def test_what_no_input_changes_is_factorised_once(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    bases = {"count": 4, "gamma": 6} if name in ("orth", "decoupled") else {"count": 6}
    posterior = fit(X, X[:, 0], method=name, inducing=bases, training=QUICK)
    rows = rng.normal(size=(5, 2))
    marginals = [posterior.latent(row[None]) for row in rows]
    calls: list[str] = []
    for where, of in (("prior_at", posterior_module), ("factorise", type(posterior.method))):
        original = getattr(of, where)
        monkeypatch.setattr(of, where, lambda *a, w=where, o=original: (calls.append(w), o(*a))[1])
    mean, variance = posterior.latent(rows)
    assert calls == []
    np.testing.assert_allclose(mean, np.hstack([x for x, _ in marginals]), rtol=1e-12)
    np.testing.assert_allclose(variance, np.hstack([x for _, x in marginals]), rtol=1e-10)
    copy = pickle.loads(pickle.dumps(posterior))  # noqa: S301
    assert "factors" in vars(posterior) and "factors" not in vars(copy)
    np.testing.assert_array_equal(copy.latent(rows), [mean, variance])
    assert sorted(set(calls)) == ["factorise", "prior_at"]


@pytest.mark.parametrize("name", ["t-svgp", "q-svgp", "diagonal-precision", "sgpr"])
def test_the_covariance_between_inputs_is_that_of_the_joint_normal(name: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    posterior = fit(X, np.sin(2.0 * X[:, 0]), method=name, inducing=6, training=QUICK)
    rows = rng.normal(size=(7, 2))
    found, (mean, variance) = posterior.latent_covariance(rows), posterior.latent(rows)
    np.testing.assert_allclose(np.diagonal(found[0]), variance[0], rtol=1e-7)
    # the dense formula, with an inverse, from what `inducing` returns
    Z, _, S = posterior.inducing()
    k = posterior.model.covariance(load_backend("numpy"), posterior.theta)
    at = (rows - posterior.x_mean) / posterior.x_scale
    A = k.cross(at, Z)[0] @ np.linalg.inv(k.square(Z)[0])
    wanted = k.cross(at, at)[0] - A @ (k.square(Z)[0] - S[0]) @ A.T
    np.testing.assert_allclose(found[0], wanted, rtol=1e-5, atol=1e-8)
    assert np.abs(found[0] - np.diag(variance[0])).max() > 1e-3
    draws = posterior.samples(rows, N := 20_000)
    assert draws.shape == (N, 1, 7)
    # five standard errors of a mean and of a covariance of N normal draws
    v = np.diagonal(found[0])
    off = np.abs(draws[:, 0].mean(axis=0) - mean[0])
    assert (off <= 5.0 * np.sqrt(v / N)).all()
    off = np.abs(np.cov(draws[:, 0].T) - found[0])
    assert (off <= 5.0 * np.sqrt((np.outer(v, v) + found[0] ** 2) / N)).all()
    np.testing.assert_array_equal(posterior.samples(rows, 2), posterior.samples(rows, 2))
    assert (posterior.samples(rows, 2) != posterior.samples(rows, 2, seed=1)).all()


def test_draws_at_one_input_twice_are_equal_there() -> None:
    X, _, posterior = fitted("gaussian")
    first, second = posterior.samples(np.repeat(X[:1], 2, axis=0), 5)[:, 0].T
    np.testing.assert_allclose(first, second, atol=1e-6)


@pytest.mark.parametrize("name", ["orth", "decoupled", "t-vgp"])
def test_without_one_q_of_u_there_is_no_covariance_between_inputs(name: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    bases = {"count": 4, "gamma": 6} if name in ("orth", "decoupled") else {"count": 6}
    posterior = fit(X, X[:, 0], method=name, inducing=bases, training=QUICK)
    with pytest.raises(UserError, match=f"{name!r} has no q.u. of one set"):
        posterior.samples(X)
