"""Standard deviations and quantiles of y, against SciPy's distributions and against draws of f and y."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats
from densities_by_mpmath import Exponential, Laplace, NegativeBinomial

from svgpbench.backends import load_backend
from svgpbench.errors import UserError
from svgpbench.likelihoods import (
    BernoulliLogit,
    GaussianLikelihood,
    GaussianParameters,
    Likelihood,
    NoParameters,
    Poisson,
    StudentT,
    StudentTParameters,
)
from svgpbench.likelihoods.likelihood import ROWS_AT_ONCE
from svgpbench.ops import Tree

OPS = load_backend("numpy")
LEVELS = (0.025, 0.3, 0.5, 0.975)
MU, VAR = np.array([[0.3, 2.0, -1.0]]), np.array([[0.5, 1e-9, 1.3]])
CERTAIN = np.full_like(MU, 1e-12)

WHERE_F_IS_KNOWN = {
    "gaussian": (
        GaussianLikelihood(),
        GaussianParameters(0.3),
        lambda f: scipy.stats.norm(f, 0.3**0.5),
    ),
    "student-t": (StudentT(df=3.0), StudentTParameters(0.2), lambda f: scipy.stats.t(3.0, f, 0.2)),
    "poisson": (Poisson(), NoParameters(), lambda f: scipy.stats.poisson(np.exp(f))),
    "exponential": (Exponential(), NoParameters(), lambda f: scipy.stats.expon(scale=np.exp(f))),
    "laplace": (Laplace(), NoParameters(), lambda f: scipy.stats.laplace(f, 0.1)),
    "negative binomial": (
        NegativeBinomial(),
        NoParameters(),
        lambda f: scipy.stats.nbinom(2.5, 2.5 / (2.5 + np.exp(f))),
    ),
}


@pytest.mark.parametrize("name", WHERE_F_IS_KNOWN)
def test_where_f_is_known_they_are_those_of_the_noise(name: str) -> None:
    likelihood, p, noise = WHERE_F_IS_KNOWN[name]
    quantiles = likelihood.predictive_quantiles(OPS, p, LEVELS, MU, CERTAIN)
    expected = np.stack([noise(MU[0]).ppf(level) for level in LEVELS])
    tolerance = 1e-3 if name == "laplace" else 2e-5  # the grid steps over a kink
    np.testing.assert_allclose(quantiles, expected, rtol=tolerance, atol=2e-5)
    sd = likelihood.predictive_sd(OPS, p, MU, CERTAIN)
    np.testing.assert_allclose(sd, noise(MU[0]).std(), rtol=tolerance)


@pytest.mark.parametrize("name", WHERE_F_IS_KNOWN)
def test_they_are_those_of_draws(name: str) -> None:
    likelihood, p, noise = WHERE_F_IS_KNOWN[name]
    rng = np.random.default_rng(0)
    f = MU[0] + np.sqrt(VAR[0]) * rng.standard_normal((200_000, 1))
    y = noise(f).rvs(random_state=rng)
    quantiles = likelihood.predictive_quantiles(OPS, p, LEVELS, MU, VAR)
    shares = np.mean(y[None] <= quantiles[:, None, :] + 1e-9, axis=1)
    if likelihood.support == "counts":  # the least count that reaches the level
        below = np.mean(y[None] <= quantiles[:, None, :] - 1.0, axis=1)
        levels = np.array(LEVELS)[:, None]
        assert np.all(below < levels + 4e-3) and np.all(shares > levels - 4e-3)
    else:
        np.testing.assert_allclose(shares, np.tile(LEVELS, (3, 1)).T, atol=4e-3)
    if name != "student-t":  # whose fourth moment is infinite: draws do not tell its variance
        sd = likelihood.predictive_sd(OPS, p, MU, VAR)
        # the largest of 200,000 draws of exp(f) move theirs by 2 %
        np.testing.assert_allclose(sd, y.std(axis=0), rtol=0.03)


def default_sd(likelihood: Likelihood, p: Tree) -> np.ndarray:
    return Likelihood.predictive_sd(likelihood, OPS, p, MU, VAR)


def test_closed_forms_are_what_the_default_integrates() -> None:
    for likelihood, p in (
        (GaussianLikelihood(), GaussianParameters(0.3)),
        (StudentT(df=7.0), StudentTParameters(0.2)),
        (Poisson(), NoParameters()),
    ):
        sd = likelihood.predictive_sd(OPS, p, MU, VAR)
        np.testing.assert_allclose(default_sd(likelihood, p), sd, rtol=1e-5)


def test_a_student_t_of_two_degrees_of_freedom_has_no_variance() -> None:
    sd = StudentT(df=2.0).predictive_sd(OPS, StudentTParameters(1.0), MU, VAR)
    assert np.all(np.isinf(sd))


def test_labels_and_impossible_levels_are_refused() -> None:
    with pytest.raises(UserError, match="'bernoulli-logit' predicts labels, which have no spread"):
        BernoulliLogit().predictive_sd(OPS, NoParameters(), MU, VAR)
    for likelihood, p in (
        (Poisson(), NoParameters()),
        (GaussianLikelihood(), GaussianParameters(1.0)),
    ):
        with pytest.raises(UserError, match=r"\[0.5, 1.0\]; give numbers between 0 and 1"):
            likelihood.predictive_quantiles(OPS, p, [0.5, 1.0], MU, VAR)


def test_many_rows_take_no_more_memory_than_a_block_of_them() -> None:
    columns = []

    class Watched(StudentT):
        def log_predictive_density(self, ops: Any, p: Any, y: Any, mu: Any, v: Any) -> Any:
            columns.append(len(set(mu[0].tolist())))
            return super().log_predictive_density(ops, p, y, mu, v)

    mu, v, p = np.linspace(-2.0, 2.0, 70)[None], np.full((1, 70), 0.5), StudentTParameters(0.2)
    found = Watched(df=3.0).predictive_quantiles(OPS, p, LEVELS, mu, v)
    assert max(columns) == ROWS_AT_ONCE < 70
    one_by_one = [
        StudentT(df=3.0).predictive_quantiles(OPS, p, LEVELS, mu[:, [at]], v[:, [at]])
        for at in (0, 63, 64, 69)
    ]
    np.testing.assert_allclose(found[:, [0, 63, 64, 69]], np.hstack(one_by_one), rtol=1e-12)


def test_counts_that_are_too_large_to_sum_are_refused() -> None:
    wide = np.full_like(MU, 50.0)
    with pytest.raises(UserError, match="beyond 32768 counts: the likelihood must override"):
        NegativeBinomial().predictive_quantiles(OPS, NoParameters(), [0.999], MU, wide)
