"""The best prediction that ignores the inputs, against SciPy's densities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm, poisson

from svgpbench.config import LikelihoodConfig
from svgpbench.likelihoods import build_likelihood
from svgpbench.training.trace_point import constant_scores

RNG = np.random.default_rng(0)
REAL, REAL_TEST = 3.0 + 2.0 * RNG.normal(size=30), 3.0 + 4.0 * RNG.normal(size=11)


def likelihood(name: str, **options: Any) -> Any:
    return build_likelihood(LikelihoodConfig.model_validate({"name": name, **options}))


@pytest.mark.parametrize("name", ["gaussian", "student-t"])
def test_real_targets_have_their_mean_and_variance(name: str) -> None:
    """The variance of maximum likelihood: no other N(m, s²) gives the training targets more density."""
    found = constant_scores(likelihood(name), REAL, REAL_TEST)
    density = norm(REAL.mean(), REAL.std(ddof=0))
    assert found["nlpd"] == pytest.approx(-density.logpdf(REAL_TEST).mean(), rel=1e-12)
    assert found["elbo"] == pytest.approx(density.logpdf(REAL).sum(), rel=1e-12)
    for other in (norm(REAL.mean() + 0.01, REAL.std()), norm(REAL.mean(), 1.01 * REAL.std())):
        assert other.logpdf(REAL).sum() < found["elbo"]


def test_counts_are_poisson() -> None:
    y, y_test = RNG.poisson(2.5, 40).astype(float), RNG.poisson(2.5, 9).astype(float)
    found = constant_scores(likelihood("poisson"), y, y_test)
    density = poisson((y.sum() + 0.5) / 40)
    assert found["nlpd"] == pytest.approx(-density.logpmf(y_test).mean(), rel=1e-12)
    assert found["elbo"] == pytest.approx(density.logpmf(y).sum(), rel=1e-12)
    none = constant_scores(likelihood("poisson"), np.zeros(4), np.array([0.0, 3.0]))
    assert np.isfinite(none["nlpd"])


@pytest.mark.parametrize("name", ["bernoulli-probit", "bernoulli-logit"])
def test_labels_have_their_frequencies(name: str) -> None:
    y, y_test = np.repeat([0.0, 1.0], [6, 3]), np.array([1.0, 1.0, 0.0, 1.0])
    found = constant_scores(likelihood(name), y, y_test)
    p = 3.5 / 10.0  # of ones, with half a row in each class
    assert found["nlpd"] == pytest.approx(-(3 * np.log(p) + np.log(1 - p)) / 4, rel=1e-12)
    assert found["elbo"] == pytest.approx(3 * np.log(p) + 6 * np.log(1 - p), rel=1e-12)
    # a part of the rows that has ones alone
    ones = constant_scores(likelihood(name), np.ones(4), np.array([0.0]))
    assert ones["nlpd"] == pytest.approx(-np.log(0.5 / 5), rel=1e-12)


@pytest.mark.parametrize("name", ["softmax", "robust-max"])
def test_classes_have_their_frequencies(name: str) -> None:
    y, y_test = np.repeat([0.0, 1.0, 3.0], [5, 3, 1]), np.array([2.0, 0.0, 3.0])
    found = constant_scores(likelihood(name, classes=4), y, y_test)
    p = np.array([5.5, 3.5, 0.5, 1.5]) / 11.0
    assert found["nlpd"] == pytest.approx(-np.log(p[[2, 0, 3]]).mean(), rel=1e-12)
    assert found["elbo"] == pytest.approx(np.log(p[y.astype(int)]).sum(), rel=1e-12)
