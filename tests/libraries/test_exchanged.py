"""A posterior in the form that crosses, from our side: its numbers are q(u)'s."""

import numpy as np
import pytest
from trained_here import trained

from svgpbench.api import (
    UserError,
    export_posterior,
    import_posterior,
    load_posterior,
    save_posterior,
)
from svgpbench.libraries.whitened import load_whitened
from svgpbench.posterior.exchanged import whitened


def correlation(name, r):
    """Of each kernel, from the distance in lengthscales."""
    if name == "se":
        return np.exp(-0.5 * r**2)
    if name == "matern32":
        return (1.0 + np.sqrt(3.0) * r) * np.exp(-np.sqrt(3.0) * r)
    return (1.0 + np.sqrt(5.0) * r + 5.0 * r**2 / 3.0) * np.exp(-np.sqrt(5.0) * r)


def test_the_file_says_q_of_u(posteriors, tmp_path) -> None:
    """L·mean and L·chol·cholᵀ·Lᵀ are q(u), by dense algebra that knows nothing of the harness."""
    for name, posterior in posteriors.items():
        w = load_whitened(export_posterior(posterior, tmp_path / f"{name}.npz"))
        scaled = (w.Z[:, None] - w.Z[None]) / w.lengthscales
        K = w.variance * correlation(w.kernel, np.sqrt(np.sum(scaled**2, axis=-1)))
        L = np.linalg.cholesky(K + w.jitter * np.eye(len(w.Z)))
        Z, mean, covariance = posterior.inducing()
        root = L @ w.chol
        np.testing.assert_array_equal(w.Z, Z)
        m0 = np.reshape(w.latent_mean, (-1, 1)) if len(w.latent_mean) else 0.0
        np.testing.assert_allclose(m0 + w.mean @ L.T, mean, atol=1e-9, err_msg=name)
        np.testing.assert_allclose(root @ root.mT, covariance, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("method", ["t-svgp", "q-svgp", "diagonal-precision", "sgpr", "q-vgp"])
def test_predictions_come_back_whatever_the_method(method, X, tmp_path) -> None:
    one = trained(X, method={"name": method})
    back = import_posterior(export_posterior(one, tmp_path / "one.npz"))
    again = load_posterior(save_posterior(back, tmp_path / "kept.npz"))
    for found in (back, again):
        assert found.method.name == "q-svgp"
        for ours, theirs in zip(one.latent(X), found.latent(X), strict=True):
            np.testing.assert_allclose(theirs, ours, atol=1e-9)
        np.testing.assert_allclose(found.predict(X), one.predict(X), rtol=1e-9)
    with pytest.raises(UserError, match="another library trained"):
        _ = back.elbo


def test_classes_and_columns_come_back(posteriors, X, tmp_path) -> None:
    for name, posterior in posteriors.items():
        back = import_posterior(export_posterior(posterior, tmp_path / f"{name}.npz"))
        assert back.facts.features == ("left", "right") and back.facts.n == len(X)
        assert back.facts.class_labels == posterior.facts.class_labels
        assert back.model.likelihood == posterior.model.likelihood or name in (
            "gaussian",
            "isotropic",
        )
        turned = X[["right", "left"]]
        assert list(back.predict(turned)) == list(posterior.predict(X))
        assert whitened(back).parameters == whitened(posterior).parameters
    assert whitened(posteriors["isotropic"]).lengthscales.shape == (1,)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"method": {"name": "orth"}, "inducing": {"count": 5, "gamma": 6}}, "has two bases"),
        ({"method": {"name": "gpr"}}, "keeps a site a datum"),
        ({"method": {"name": "sgpr", "options": {"residual_variance": "diagonal"}}}, "a residual"),
        (
            {"kernel": {"name": "se"}, "inducing": {"count": 5, "functions": "features"}},
            "its basis is functions",
        ),
        (
            {"kernel": {"name": "sum", "parts": [{"name": "se"}, {"name": "matern32"}]}},
            "its kernel is a sum",
        ),
        ({"likelihood": {"name": "student-t"}}, "'student-t' is none of gaussian"),
    ],
)
def test_what_cannot_cross_is_refused(change, why, X, tmp_path) -> None:
    one = trained(X, **change)
    with pytest.raises(UserError, match=f"does not cross to another library: .*{why}") as error:
        export_posterior(one, tmp_path / "one.npz")
    assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())
