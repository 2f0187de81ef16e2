"""New rows in a posterior: their sites are added, and those of the old rows stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from built_posteriors import Table, built, table

from svgpbench.api import Posterior, UserError, load_posterior, save_posterior
from svgpbench.backends import load_backend
from svgpbench.posterior import update as update_module
from svgpbench.tree import named_leaves

OLD, NEW = slice(60), slice(60, None)
GAUSSIAN = [
    ("t-svgp", {}),
    ("t-svgp", {"tying": "untied"}),
    ("t-svgp", {"residual_variance": "scalar"}),
    ("t-svgp", {"residual_variance": "diagonal"}),
    ("sgpr", {}),
]
# robust-max is left out: with 20 nodes at its jumps, sites move for ever while the bound has settled
EVERY = ["bernoulli-probit", "bernoulli-logit", "poisson", "student-t", "softmax"]


def parts(likelihood: str = "gaussian") -> tuple[Table, Table, Table]:
    whole = table(likelihood, 100)
    return whole, Table(whole.X[OLD], whole.y[OLD]), Table(whole.X[NEW], whole.y[NEW])


def equal(one: Posterior, other: Posterior, tolerance: float) -> None:
    found, wanted = (dict(named_leaves(x.state, "state")) for x in (one, other))
    assert found.keys() == wanted.keys()
    for name, x in wanted.items():
        np.testing.assert_allclose(found[name], x, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize(("method", "options"), GAUSSIAN)
def test_with_gaussian_noise_all_rows_at_once_are_the_same(
    method: str, options: dict[str, Any]
) -> None:
    whole, old, new = parts()
    at_once, first = (built(method, rows=x, options=options, steps=1) for x in (whole, old))
    before = [x.copy() for _, x in named_leaves(first.state, "state")]
    grown = first.update(*new)
    equal(grown, at_once, 1e-11)
    assert (grown.facts.n, first.facts.n) == (100, 60)
    for x, (_, now) in zip(before, named_leaves(first.state, "state"), strict=True):
        np.testing.assert_array_equal(x, now)  # the old posterior stays what it was
    np.testing.assert_allclose(grown.latent(whole.X), at_once.latent(whole.X), rtol=1e-11)


def test_the_order_of_rows_does_not_matter() -> None:
    _, old, (X, y) = parts()
    first = built("t-svgp", rows=old, steps=1)
    one = first.update(X[:15], y[:15]).update(X[15:], y[15:])
    other = first.update(X[15:], y[15:]).update(X[:15], y[:15])
    equal(one, other, 1e-11)
    equal(one, first.update(X, y), 1e-11)


@pytest.mark.parametrize("likelihood", EVERY)
def test_the_new_sites_are_those_of_the_new_posterior(likelihood: str) -> None:
    """A fixed point, by the definition of a site: λ = βμ + α and β at the marginals of the sum of all."""
    _, old, new = parts(likelihood)
    first = built("t-svgp", likelihood, rows=old, options={"tying": "untied"}, steps=8, rate=0.5)
    grown = first.update(*new)
    for mine, kept in zip(grown.state.sites, first.state.sites, strict=True):
        np.testing.assert_array_equal(mine[:, OLD], kept)
    ops, (prior, _) = load_backend("numpy"), grown.factors
    f, v = grown.latent(new.X)
    conditional = grown.model.conditional(grown.theta, grown.noise())
    mu = f - grown.theta.mean[:, None]
    targets = grown.standardised_targets(new.y, len(new.y))
    alpha, beta = conditional.gradients(ops, targets, mu, v)
    np.testing.assert_allclose(grown.state.sites.beta[:, NEW], beta, rtol=1e-10, atol=1e-10)
    lambda1 = beta * mu + alpha
    np.testing.assert_allclose(grown.state.sites.lambda1[:, NEW], lambda1, rtol=1e-10, atol=1e-10)
    # the dual parameters are the sums over all sites
    x = np.concatenate(grown.standardised_inputs(np.concatenate([old.X, new.X])))
    k = grown.model.covariance(ops, grown.theta)
    W = np.linalg.solve(prior.L, k.cross(grown.theta.inducing, x))[0]
    for p, (l1, b) in enumerate(zip(*grown.state.sites, strict=True)):
        np.testing.assert_allclose(grown.state.c[p], W @ l1, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(grown.state.C[p], (W * b) @ W.T, rtol=1e-12, atol=1e-12)
    assert first.score(*new)["nlpd"] > grown.score(*new)["nlpd"]


@pytest.mark.parametrize("likelihood", ["bernoulli-probit", "poisson"])
def test_an_update_is_near_a_posterior_of_all_rows(likelihood: str) -> None:
    """Old sites were found without the new rows, so it is near and not the same."""
    whole, old, new = parts(likelihood)
    first, at_once = (built("t-svgp", likelihood, rows=x, steps=12) for x in (old, whole))
    (mean, v), (wanted, spread) = (x.latent(whole.X) for x in (first.update(*new), at_once))
    stale, old_v = first.latent(whole.X)
    assert np.abs(mean - wanted).max() < 0.2 * np.abs(stale - wanted).max()
    assert np.abs(np.log(v / spread)).max() < 0.25 * np.abs(np.log(old_v / spread)).max()


def test_it_is_kept_and_read_back(tmp_path: Any) -> None:
    _, old, new = parts()
    grown = built("t-svgp", rows=old, options={"tying": "untied"}, steps=1).update(*new)
    again = load_posterior(save_posterior(grown, tmp_path / "grown.npz"))
    assert again.facts.n == 100
    equal(again, grown, 0.0)


def test_it_has_no_bound_of_a_training() -> None:
    _, old, new = parts()
    grown = built("t-svgp", rows=old, steps=1).update(*new)
    assert "n=100" in repr(grown) and "ELBO" not in repr(grown)
    with pytest.raises(UserError, match="`update` added rows after it"):
        _ = grown.elbo


@pytest.mark.parametrize("method", ["q-svgp", "t-vgp", "orth", "diagonal-precision"])
def test_other_methods_are_refused_by_the_names_of_those_that_can(method: str) -> None:
    _, old, new = parts()
    with pytest.raises(UserError, match=f"{method!r} has no dual parameters.*; sgpr, t-svgp have"):
        built(method, rows=old, steps=1, rate=0.1).update(*new)


def test_wrong_rows_are_refused() -> None:
    _, old, (X, _) = parts("poisson")
    counted = built("t-svgp", "poisson", rows=old)
    with pytest.raises(UserError, match=r"takes counts 0, 1, 2.*y\[0\] holds -1"):
        counted.update(X[:1], [-1.0])
    with pytest.raises(UserError, match="y has shape"):
        counted.update(X, [1.0])
    with pytest.raises(UserError, match="row 1 of X is too far"):
        counted.update([X[0], [1e200, 0.0]], [1.0, 2.0])
    scalar = built("t-svgp", "poisson", rows=old, options={"residual_variance": "scalar"})
    with pytest.raises(UserError, match="one number for all rows"):
        scalar.update(X[:1], [1.0])
    labelled = built("t-svgp", "bernoulli-probit", rows=parts("bernoulli-probit")[1])
    with pytest.raises(UserError, match="none of"):
        labelled.update(X[:1], ["maybe"])


def test_so_many_steps_that_no_further_one_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    _, old, new = parts("poisson")
    first = built("t-svgp", "poisson", rows=old)
    grown = first.update(*new)
    monkeypatch.setattr(update_module, "E_STEPS", 2 * update_module.E_STEPS)
    equal(first.update(*new), grown, 1e-8)


def test_steps_that_have_not_settled_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    _, old, new = parts("poisson")
    monkeypatch.setattr(update_module, "E_STEPS", update_module.LAST)
    with pytest.raises(UserError, match="10 E-steps on the new rows did not settle: the last 10"):
        built("t-svgp", "poisson", rows=old, steps=0).update(*new)
