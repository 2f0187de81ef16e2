"""An ONNX graph predicts what its posterior predicts, in a runtime that knows nothing of svgpbench."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from built_posteriors import X_MEAN, X_SCALE, built

from svgpbench.api import Posterior, UserError
from svgpbench.backends import load_backend
from svgpbench.posterior import onnx as onnx_module
from svgpbench.posterior.onnx import weights

pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

Floats = npt.NDArray[np.float64]
ROWS = X_MEAN + X_SCALE * np.random.default_rng(4).uniform(-2.0, 2.0, (30, 2))
PARTS = [{"name": "se"}, {"name": "matern32", "ard": False}, {"name": "matern52"}]


def run(posterior: Posterior, file: Path, X: Floats) -> dict[str, Floats]:
    session = runtime.InferenceSession(
        str(posterior.to_onnx(file)), providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": X}), strict=True))


@pytest.mark.parametrize(
    ("method", "likelihood", "kernel"),
    [
        ("t-svgp", "gaussian", "se"),
        ("sgpr", "gaussian", "matern32"),
        ("q-svgp", "gaussian", "matern52"),
        ("q-svgp", "bernoulli-probit", "se"),
        ("q-vgp", "gaussian", "matern52"),
        ("diagonal-precision", "gaussian", {"name": "se", "ard": False}),
        ("t-svgp", "softmax", "matern52"),
        ("t-svgp", "student-t", "matern32"),
        ("t-svgp", "gaussian", {"name": "sum", "parts": PARTS}),
        ("t-svgp", "gaussian", {"name": "product", "parts": PARTS}),
    ],
)
def test_the_graph_predicts_as_the_posterior(
    method: str, likelihood: str, kernel: Any, tmp_path: Path
) -> None:
    posterior = built(method, likelihood, kernel=kernel, rate=0.5, of_likelihood={})
    found = run(posterior, tmp_path / "one.onnx", ROWS)
    mean, variance = posterior.latent(ROWS)
    np.testing.assert_allclose(found["latent_mean"], mean.T, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(found["latent_variance"], variance.T, rtol=0.0, atol=1e-12)
    assert np.ptp(mean) > 0.3 and np.ptp(variance) > 1e-3
    assert ("mean" in found) == (likelihood == "gaussian")
    if likelihood == "gaussian":
        y = posterior.predict(ROWS)
        np.testing.assert_allclose(found["mean"], y["mean"], rtol=1e-12)
        np.testing.assert_allclose(found["variance"], y["variance"], rtol=1e-12)
    one = run(posterior, tmp_path / "one.onnx", ROWS[:1])
    np.testing.assert_allclose(one["latent_mean"], found["latent_mean"][:1], rtol=1e-12)


def test_the_file_says_which_columns_it_takes(tmp_path: Path) -> None:
    import onnx

    model = onnx.load(str(built().to_onnx(tmp_path / "one.onnx")))
    properties = {x.key: x.value for x in model.metadata_props}
    assert properties["inputs"] == '["left", "right"]'
    assert (properties["y_mean"], properties["y_scale"]) == ("40.0", "5.0")


@pytest.mark.parametrize("method", ["t-vgp", "orth", "decoupled"])
def test_what_has_no_graph_is_refused(method: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"{method!r} on points has no q.u. of function values"):
        built(method, steps=1, rate=0.1).to_onnx(tmp_path / "one.onnx")
    with pytest.raises(UserError, match="on features has no q"):
        built(kernel="se", functions="features").to_onnx(tmp_path / "one.onnx")
    with pytest.raises(UserError, match=r"ends in .onnx"):
        built().to_onnx(tmp_path / "one.npz")
    assert list(tmp_path.iterdir()) == []


def test_without_the_package_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(UserError, match=r"pip install 'svgpbench\[onnx\]'"):
        built().to_onnx(tmp_path / "one.onnx")


# 24 inducing inputs on a line: their K has a condition of 1e10 by the jitter below
LINE = np.stack([np.linspace(-1.5, 1.5, 24), np.zeros(24)], axis=-1)
STIFF: dict[str, Any] = {"kernel": "se", "Z": LINE, "jitter": 1.8e-9}


def test_digits_of_the_graph_beside_an_exact_computation() -> None:
    """At a condition of 1e10 the graph's products are judged by 60 digits, beside the triangular solves.

    The figures of docs/from-python.md are printed here: `pytest -s -k digits tests/posterior/test_onnx.py`.
    """
    mpmath = pytest.importorskip("mpmath")
    posterior = built(**STIFF)
    (prior, _), state, w = posterior.factors, posterior.state, weights(posterior)
    K, Z = prior.Kuu[0], posterior.theta.inducing
    between = 0.5 * (Z[1:] + Z[:-1])
    k = posterior.model.covariance(load_backend("numpy"), posterior.theta)
    Kx, kappa = k.cross(Z, between)[0], onnx_module._prior_variance(posterior)
    condition = np.linalg.cond(K)
    assert 5e9 < condition < 2e10
    # the same float64 numbers K, K(Z, X), c and C, exactly
    mpmath.mp.dps = 60
    exact = mpmath.matrix
    W = mpmath.inverse(mpmath.cholesky(exact(K.tolist()))) * exact(Kx.tolist())
    S = mpmath.inverse(mpmath.eye(len(Z)) + exact(state.C[0].tolist()))
    means = W.T * S * exact(state.c[0].tolist())
    explained = W.T * (mpmath.eye(len(Z)) - S) * W
    mean = np.array([float(posterior.theta.mean[0] + x) for x in means])
    variance = np.array([float(kappa - explained[j, j]) for j in range(len(between))])
    X = X_MEAN + X_SCALE * between
    by_solve = posterior.latent(X)
    KG = Kx.T @ w.G[0]
    by_products = (
        posterior.theta.mean[0] + Kx.T @ w.alpha[0],
        kappa - (KG * KG) @ w.a[0],
    )
    units = np.sqrt(kappa), kappa

    def off(found: tuple[Floats, Floats]) -> Floats:
        triples = zip(found, (mean, variance), units, strict=True)
        return np.array([np.abs(x - y).max() / unit for x, y, unit in triples])

    solve, products = off((by_solve[0][0], by_solve[1][0])), off(by_products)
    print(f"condition {condition:.1e}: mean and variance by solves {solve}, by products {products}")
    assert solve.max() < 1e-8  # the BLAS of a machine makes it 4e-10 to 1.9e-9
    # the Cholesky factor of K(Z, Z), which both have, loses more than either form
    assert (products < 1.01 * solve).all()


def test_a_graph_that_loses_digits_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    posterior = built(**STIFF)
    monkeypatch.setattr(onnx_module, "MOST_ERROR", 1e-17)
    with pytest.raises(UserError, match=r"K.Z, Z. is too ill-conditioned for products"):
        posterior.to_onnx(tmp_path / "one.onnx")
    assert list(tmp_path.iterdir()) == []
