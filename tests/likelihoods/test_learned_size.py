"""The negative binomial of docs/add-a-likelihood.md, whose size is learned, on every backend."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

from svgpbench.backends import load_backend
from svgpbench.ops import Ops

PAGE = Path(__file__).parents[2] / "docs" / "add-a-likelihood.md"
BLOCK = re.search(r"```python\n# rivers/counts.py\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
Y, MU, VAR = np.array([0.0, 3.0, 40.0]), np.array([[0.2, 1.0, 2.5]]), np.array([[0.5, 0.1, 1.0]])


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    """Names that the page's block defines."""
    assert BLOCK
    names: dict[str, Any] = {"__name__": "svgpbench.likelihoods"}  # dataclasses look it up
    exec(compile(BLOCK[1], str(PAGE), "exec"), names)  # noqa: S102
    return names


@pytest.mark.parametrize("integrals", ["fixed", "adaptive"])
def test_the_gradient_in_the_size_is_that_of_differences(
    ops: Ops, page: dict[str, Any], integrals: str
) -> None:
    likelihood, size = page["NegativeBinomial"](integrals=integrals), page["Size"]
    arrays = [ops.asarray(x) for x in (Y, MU, VAR)]
    found = likelihood.expectations(ops, size(ops.asarray(np.float64(2.5))), *arrays)
    numpy = load_backend("numpy")

    def total(r: float) -> float:
        return float(likelihood.variational_expectations(numpy, size(r), Y, MU, VAR).sum())

    h = 1e-4
    assert float(ops.to_numpy(found.value)) == pytest.approx(total(2.5), rel=1e-10)
    slope = (8 * (total(2.5 + h) - total(2.5 - h)) - total(2.5 + 2 * h) + total(2.5 - 2 * h)) / (
        12 * h
    )
    assert float(ops.to_numpy(found.parameters.size)) == pytest.approx(slope, rel=1e-7)


def test_it_is_scipy_s_where_f_is_known(page: dict[str, Any]) -> None:
    numpy, f = load_backend("numpy"), MU[..., None]
    value, _ = page["NegativeBinomial"]().log_density(numpy, page["Size"](2.5), Y[:, None], f)
    expected = scipy.stats.nbinom(2.5, 2.5 / (2.5 + np.exp(MU[0]))).logpmf(Y)
    np.testing.assert_allclose(value[0, :, 0], expected, rtol=1e-12)


def test_its_bend_is_where_its_expectations_need_nodes(page: dict[str, Any]) -> None:
    numpy, likelihood = load_backend("numpy"), page["NegativeBinomial"](integrals="adaptive")
    v, t = np.array([[1e-4, 0.3, 9.0]]), np.linspace(-12.0, 12.0, 400_001)
    weights = np.exp(-0.5 * t * t) * (t[1] - t[0]) / np.sqrt(2.0 * np.pi)
    for size in (0.05, 2.5, 300.0):
        p = page["Size"](size)
        for mu in (MU, np.log(size) + np.array([[-6.0, 0.5, 8.0]])):
            f = mu[..., None] + np.sqrt(v)[..., None] * t
            expected = (likelihood.log_density(numpy, p, Y[:, None], f)[0] @ weights)[0]
            found = likelihood.variational_expectations(numpy, p, Y, mu, v)
            np.testing.assert_allclose(found, expected, rtol=1e-9)
