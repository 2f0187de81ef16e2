"""Numbers cannot change without a new method version: records of two versions are never mixed.

Where a test here fails and the change is meant, raise the method's `version` and pin the new figure.
"""

from __future__ import annotations

import pytest

from svgpbench.checks.cases import METHODS, build_model, small_problem
from svgpbench.checks.evaluate import evaluate
from svgpbench.likelihoods import LIKELIHOODS
from svgpbench.methods import build_method
from svgpbench.plugins import load_backend

PINNED: dict[str, tuple[int, float, float]] = {
    "t-svgp tied-projected": (1, -47.378998394377305, -40.98675371642937),
    "t-svgp tied": (1, -47.378998394377305, -41.21135973229973),
    "t-svgp untied": (1, -47.378998394377305, -40.10995611569764),
    "t-svgp standard": (1, -47.378998394377305, -40.99822526634498),
    "t-svgp whitened": (1, -47.378998394377305, -41.07082515537089),
    "q-svgp natgrad": (1, -47.378998394377305, -41.07082515537089),
    "q-svgp natgrad autodiff": (1, -47.378998394377305, -41.07082515537089),
    "q-svgp natgrad unwhitened": (1, -47.378998394377305, -40.99822526634498),
    "q-svgp natgrad unwhitened autodiff": (1, -47.378998394377305, -40.99822526634498),
    "q-svgp adam": (1, -46.533844143729176, -53.00086289214998),
    "q-svgp adam autodiff": (1, -46.533844143729176, -53.00086289214998),
    "q-svgp adam unwhitened": (1, -46.558412094416255, -54.6052467860689),
}
"""Version, bound estimate after 50 E-steps, and M-step objective at another θ (probit, Matérn-3/2)."""


@pytest.mark.parametrize("method", METHODS)
def test_numbers_are_those_of_the_version(method: str) -> None:
    name, options = METHODS[method]
    built = build_method(name, options)
    model = build_model("bernoulli-probit", "matern32")
    arrays = evaluate(load_backend("numpy"), model, built, small_problem())
    found = (float(arrays["e_trajectory/elbo"]), float(arrays["gradients/objective"]))
    version, *pinned = PINNED[method]
    assert built.version == version
    assert found == pytest.approx(pinned, rel=1e-11)


LIKELIHOODS_PINNED: dict[str, tuple[float, float, float]] = {
    "gaussian": (-164.64437236465304, -121.31184596746883, -20.49945351673005),
    "bernoulli-probit": (-47.378998394377305, -40.98675371642937, -8.888681199157146),
    "bernoulli-logit": (-38.846881048262325, -36.24996611253386, -9.666241071915005),
    "softmax": (-72.59064122778688, -60.6074884090896, -16.818057134599684),
    "robust-max": (-79.4290065704059, -75.19523313087133, -15.706185199612644),
    "student-t": (-115.35777628080402, -97.49311296017608, -21.350614064518812),
    "poisson": (-99.7587285202224, -101.45006410616392, -22.462659200171007),
}
"""The same two of t-SVGP with every likelihood, and the log predictive density of a batch."""


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_numbers_of_a_likelihood_do_not_change_unnoticed(likelihood: str) -> None:
    model, method = build_model(likelihood, "matern32"), build_method("t-svgp", {})
    arrays = evaluate(load_backend("numpy"), model, method, small_problem())
    found = (
        float(arrays["e_trajectory/elbo"]),
        float(arrays["gradients/objective"]),
        float(arrays["values/log_density"].sum()),
    )
    assert found == pytest.approx(LIKELIHOODS_PINNED[likelihood], rel=1e-11)
