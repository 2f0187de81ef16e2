"""Posteriors of real trainings, made once, by what crosses with them."""

import numpy as np
import pandas as pd
import pytest
from trained_here import trained

from svgpbench.api import Posterior

DATA = {"latent_mean": "data"}


def inputs(n=60):
    rng = np.random.default_rng(0)
    return pd.DataFrame({"left": rng.normal(3.0, 2.0, n), "right": rng.uniform(0.0, 9.0, n)})


def label(X, names):
    edges = np.quantile(X["left"], np.linspace(0.0, 1.0, len(names) + 1)[1:-1])
    return np.array(names)[np.digitize(X["left"], edges)]


@pytest.fixture(scope="session", name="X")
def _inputs() -> pd.DataFrame:
    return inputs()


@pytest.fixture(scope="session")
def posteriors(X) -> dict[str, Posterior]:
    """One of each likelihood, kernel and squash that cross, and of methods that keep q differently."""
    squashed = {"name": "bernoulli-probit", "squash": 1e-3}
    exact, softmax = {"name": "bernoulli-probit"}, {"name": "softmax", "samples": 20}
    isotropic, matern32 = {"name": "se", "ard": False}, {"name": "matern32"}
    rare = np.where(np.arange(len(X)) < 6, "no", "yes")
    two, three = label(X, ["no", "yes"]), label(X, ["ash", "elm", "oak"])
    return {
        "gaussian": trained(X),
        "isotropic": trained(X, kernel=isotropic, method={"name": "q-svgp"}),
        "squashed": trained(X, two, likelihood=squashed, kernel=matern32),
        "probit": trained(X, two, likelihood=exact, kernel=matern32),
        "softmax": trained(X, three, likelihood=softmax),
        "probit with a mean": trained(X, rare, likelihood=exact | DATA, kernel=matern32),
        "softmax with a mean": trained(X, three, likelihood=softmax | DATA),
    }
