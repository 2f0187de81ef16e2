"""Exact GP regression on the pseudo-data of a dual posterior is that posterior."""

from __future__ import annotations

import numpy as np
import pytest
from built_posteriors import M, Table, built, table

from svgpbench.api import Posterior, UserError
from svgpbench.backends import load_backend
from svgpbench.tree import tree_map


def prior_of(posterior: Posterior) -> np.ndarray:
    k = posterior.model.covariance(load_backend("numpy"), posterior.theta)
    return np.asarray(k.square(posterior.theta.inducing))[0]


@pytest.mark.parametrize(
    ("method", "likelihood"),
    [
        ("t-svgp", "gaussian"),
        ("sgpr", "gaussian"),
        ("t-svgp", "bernoulli-probit"),
        ("t-svgp", "poisson"),
        ("t-svgp", "softmax"),
    ],
)
def test_regression_on_the_pseudo_data_is_the_posterior(method: str, likelihood: str) -> None:
    posterior = built(method, likelihood, rate=0.5)
    Z, targets, precision = posterior.pseudo_data()
    wanted, K = posterior.inducing(), prior_of(posterior)
    np.testing.assert_array_equal(Z, wanted.Z)
    for p, mean in enumerate(np.ravel(posterior.theta.mean)):
        # Rasmussen and Williams 2006, Eqs. 2.25 and 2.26, with correlated noise
        gain = np.linalg.solve(K + np.linalg.inv(precision[p]), K).T
        found = mean + gain @ (targets[p] - mean)
        np.testing.assert_allclose(found, wanted.mean[p], rtol=0.0, atol=1e-12)
        np.testing.assert_allclose(K - gain @ K, wanted.covariance[p], rtol=0.0, atol=1e-12)


def test_directions_that_no_row_observes_have_no_precision() -> None:
    """Four rows leave the precision of nine inducing inputs with rank four."""
    rows = Table(*(x[:4] for x in table()))
    posterior = built("t-svgp", rows=rows)
    _, targets, precision = posterior.pseudo_data()
    wanted, K = posterior.inducing(), prior_of(posterior)
    eigenvalues = np.linalg.eigvalsh(precision[0])
    assert (eigenvalues > 1e-9 * eigenvalues.max()).sum() == 4 < M
    S = np.linalg.inv(np.linalg.inv(K) + precision[0])
    np.testing.assert_allclose(S, wanted.covariance[0], rtol=0.0, atol=1e-12)
    mean = posterior.theta.mean[0]
    found = mean + S @ (precision[0] @ (targets[0] - mean))
    np.testing.assert_allclose(found, wanted.mean[0], rtol=0.0, atol=1e-12)
    assert np.abs(targets).max() < 100.0  # those of directions without precision are 0


def test_a_mean_without_precision_is_refused() -> None:
    posterior = built("t-svgp")
    state = posterior.state._replace(C=0.0 * posterior.state.C)
    bent = Posterior(posterior.facts, posterior.theta, state, posterior.x_mean, posterior.x_scale)
    with pytest.raises(UserError, match="no Gaussian pseudo-data give this q"):
        bent.pseudo_data()


def test_without_rows_the_pseudo_data_say_nothing() -> None:
    posterior = built("t-svgp", steps=0)
    assert posterior.pseudo_data().precision.max() == 0.0
    np.testing.assert_array_equal(
        posterior.pseudo_data().targets, posterior.theta.mean[:, None] + np.zeros((1, M))
    )


@pytest.mark.parametrize("method", ["q-svgp", "t-vgp", "orth", "decoupled", "diagonal-precision"])
def test_other_methods_have_none(method: str) -> None:
    with pytest.raises(UserError, match=f"{method}.* no dual parameters.*sgpr, t-svgp on points"):
        built(method, steps=1, rate=0.1).pseudo_data()


def test_functions_have_none() -> None:
    with pytest.raises(UserError, match="on features has no dual parameters"):
        built("t-svgp", kernel="se", functions="features").pseudo_data()


def test_the_text_shows_shapes() -> None:
    assert repr(built("t-svgp").pseudo_data()) == (
        "<PseudoData Z [9, 2], targets [1, 9], precision [1, 9, 9]>"
    )
    assert tree_map(np.shape, tuple(built("t-svgp").pseudo_data())) == ((9, 2), (1, 9), (1, 9, 9))
