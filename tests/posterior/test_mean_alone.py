"""The mean of f alone is that of `latent`, without its variances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from built_posteriors import X_MEAN, X_SCALE, built, table

from svgpbench.api import Posterior, UserError
from svgpbench.methods import build_method
from svgpbench.methods.method import Method
from svgpbench.plugins import METHODS, load_all, plugins
from svgpbench.sklearn import SVGPRegressor

VARIANTS = [
    (name, variant)
    for name, of in load_all(METHODS).items()
    if name in plugins(METHODS)
    for variant in of.info.variants
]
ROWS = X_MEAN + X_SCALE * np.random.default_rng(4).uniform(-2.0, 2.0, (30, 2))


def agrees(posterior: Posterior) -> None:
    wanted = posterior.latent(ROWS)[0]
    assert np.abs(wanted).max() > 0.3
    assert len(posterior.mean_terms) > 0
    np.testing.assert_allclose(posterior.latent_mean(ROWS), wanted, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_the_mean_of_every_method_is_that_of_latent(name: str, variant: str) -> None:
    options = dict(load_all(METHODS)[name].info.variants[variant])
    first_order = build_method(name, options).first_order
    agrees(built(name, options=options, steps=4, rate=0.1 if first_order else 0.7))


def test_the_union_of_two_bases_has_the_mean() -> None:
    agrees(built("decoupled", options={"union": True}, steps=4, rate=0.1))


def test_inducing_functions_have_the_mean() -> None:
    agrees(built("t-svgp", kernel="se", functions="features"))


@pytest.mark.parametrize("name", ["t-svgp", "q-svgp", "orth", "hybrid", "t-vgp"])
def test_several_latent_functions_have_their_means(name: str) -> None:
    posterior = built(name, "softmax", rate=0.5)
    assert posterior.latent_mean(ROWS).shape == (3, 30)
    agrees(posterior)


def test_a_method_without_terms_has_the_mean_of_its_marginals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    posterior = built("t-svgp")
    monkeypatch.setattr(type(posterior.method), "mean_terms", Method.mean_terms)
    np.testing.assert_array_equal(posterior.latent_mean(ROWS), posterior.latent(ROWS)[0])


def test_a_row_too_far_for_float64_is_named() -> None:
    far = ROWS.copy()
    far[3] = 1e200
    with pytest.raises(UserError, match="row 3 of X is too far"):
        built("t-svgp").latent_mean(far)


@pytest.mark.parametrize(
    ("likelihood", "variances"), [("gaussian", 0), ("student-t", 0), ("poisson", 1)]
)
def test_an_estimator_computes_variances_only_where_the_mean_of_y_needs_them(
    likelihood: str, variances: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, _ = table()
    estimator = SVGPRegressor(likelihood=likelihood)
    posterior = built("t-svgp", likelihood, rate=0.3)
    estimator.posterior_, estimator.n_features_in_ = posterior, 2
    both, _sd = estimator.predict(X, return_std=True)
    assert len(posterior.mean_terms) == 1  # found before the calls are counted
    calls: list[Any] = []
    of = type(posterior.method)
    original = of.marginals
    monkeypatch.setattr(of, "marginals", lambda *a: (calls.append(a), original(*a))[1])
    mean = estimator.predict(X)
    assert len(calls) == variances
    np.testing.assert_allclose(mean, both, rtol=1e-12)
