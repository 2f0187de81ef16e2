"""Posteriors of real fits, made once."""

import pytest
from small_fits import QUICK, classes, regression

from svgpbench.api import Posterior, fit


@pytest.fixture(scope="session")
def regressed() -> Posterior:
    return fit(*regression(), method="t-svgp", inducing=12, training=QUICK)


@pytest.fixture(scope="session")
def classified() -> Posterior:
    old = {"latent_mean": "zero", "integrals": "fixed"}  # as the training loop beside it
    likelihood = {"name": "softmax", "samples": 20} | old
    return fit(*classes(), likelihood=likelihood, inducing=10, training=QUICK)
