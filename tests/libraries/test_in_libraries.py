"""A posterior in the libraries themselves, each in its own environment: the same numbers there and back."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import svgpbench
from svgpbench.api import export_posterior, import_posterior
from svgpbench.benchmarks.timing.peers import peer_python

HERE = Path(__file__).parent
HARNESS = Path(svgpbench.__file__).parents[1]
PLAIN = {
    "PYTHONPATH": str(HARNESS),
    "CUDA_VISIBLE_DEVICES": "",
    "XLA_FLAGS": "--xla_backend_optimization_level=0",  # half of JAX's time here is compiling
}
CLOSE = {"rtol": 0.0, "atol": 1e-8}

ALL = {"gaussian", "isotropic", "squashed", "probit", "softmax"}
ALL |= {"probit with a mean", "softmax with a mean"}
THERE = {"gpflow": ALL, "gpytorch": ALL, "gpjax": ALL - {"softmax", "softmax with a mean"}}
BACK = {
    "gpflow": ALL | {"unwhitened", "diagonal"},
    "gpytorch": ALL | {"own"},
    "gpjax": {"gaussian", "squashed", "own"},
}
"""What each library predicted with and what it trained, models of its own making among them."""

REFUSED = {
    "gpflow": ["kernel Linear", "mean function Linear", "kernel Matern52", "GPR: only an SVGP"],
    "gpytorch": ["kernel LinearKernel", "mean LinearMean"],
    "gpjax": ["JAX has no float64", "3 latent functions", "mean "],
}


@pytest.fixture(scope="module", params=sorted(THERE))
def crossed(request, posteriors, X, tmp_path_factory):
    """A library, and the folder where it met every posterior."""
    library = request.param
    python = peer_python(library)
    if python is None:
        pytest.skip(f"no environment of peer {library!r}: make peers makes it")
    folder = tmp_path_factory.mktemp(library)
    for name, posterior in posteriors.items():
        export_posterior(posterior, folder / f"{name}.ours.npz")
        rng = np.random.default_rng(7)
        classes = len(posterior.facts.class_labels or ())
        y = rng.integers(classes, size=len(X)) if classes else np.sin(X["left"])
        np.save(folder / f"{name}.y.npy", np.asarray(y, dtype=np.float64))
    one = posteriors["gaussian"]
    np.save(folder / "X.npy", (X.to_numpy() - one.x_mean) / one.x_scale)
    done = subprocess.run(
        [python, str(HERE / f"in_{library}.py"), str(folder)],
        env={**os.environ, **PLAIN},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return library, folder


def arrays(path):
    with np.load(path) as found:
        return dict(found)


def predicted(posterior, X):
    """Mean and variance of f, and the mean of y or the last class's probability, as libraries have it."""
    mean, variance = posterior.latent(X)
    shown = posterior.predict(X)
    if posterior.facts.class_labels is None:
        y = (shown["mean"] - posterior.facts.y_mean) / posterior.facts.y_scale
    else:
        y = shown.iloc[:, -1]
    return mean, variance, y


def test_a_posterior_predicts_the_same_there(crossed, posteriors, X) -> None:
    library, folder = crossed
    met = {path.name.removesuffix(".there.npz") for path in folder.glob("*.there.npz")}
    assert met == THERE[library]
    for name in met:
        there = arrays(folder / f"{name}.there.npz")
        mean, variance, y = predicted(posteriors[name], X)
        np.testing.assert_allclose(there["mean"], mean, err_msg=name, **CLOSE)
        np.testing.assert_allclose(there["variance"], variance, err_msg=name, **CLOSE)
        if not name.startswith("softmax"):  # whose draws are each library's own
            np.testing.assert_allclose(there["y"], y, err_msg=name, **CLOSE)


def test_what_the_library_trained_predicts_the_same_here(crossed, posteriors, X) -> None:
    library, folder = crossed
    back = {path.name.removesuffix(".back.npz") for path in folder.glob("*.back.npz")}
    assert back == BACK[library]
    for name in back:
        posterior = import_posterior(folder / f"{name}.back.npz")
        trained = arrays(folder / f"{name}.trained.npz")
        rows = X if name in posteriors else pd.DataFrame(np.load(folder / "X.npy")).to_numpy()
        mean, variance, y = predicted(posterior, rows)
        np.testing.assert_allclose(mean, trained["mean"], err_msg=name, **CLOSE)
        np.testing.assert_allclose(variance, trained["variance"], err_msg=name, **CLOSE)
        if not name.startswith("softmax"):
            np.testing.assert_allclose(y, trained["y"], err_msg=name, **CLOSE)
        if name in posteriors:
            assert np.abs(mean - posteriors[name].latent(X)[0]).max() > 1e-3  # it did train
            assert posterior.facts.features == ("left", "right")
            assert posterior.facts.class_labels == posteriors[name].facts.class_labels


def test_what_svgpbench_has_not_is_refused(crossed) -> None:
    library, folder = crossed
    refusals = json.loads((folder / "refusals.json").read_text())
    for text, start in zip(refusals, REFUSED[library], strict=True):
        assert start in text and "\n" not in text
    assert not (folder / "none.npz").exists()
