"""Derivatives of the kit, and the reference's own against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from finite_differences import gradient

from svgpbench.backends import load_backend
from svgpbench.checks.kit.functions import DIFFERENTIABLE
from svgpbench.checks.kit.test_derivatives import *  # noqa: F403 - its tests, on every backend
from svgpbench.checks.kit.test_derivatives import scalar


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_numpy_gradient_equals_finite_differences(name: str) -> None:
    ops = load_backend("numpy")
    _, arguments = DIFFERENTIABLE[name]
    f = scalar(ops, name)
    _, got = ops.value_and_grad(f)(tuple(arguments))
    wanted = gradient(lambda *xs: float(f(xs)), arguments)
    for g, w in zip(got, wanted, strict=True):
        assert g.shape == w.shape
        # fourth order with h = 1e-3: truncation and rounding both near 1e-11
        np.testing.assert_allclose(g, w, rtol=1e-8, atol=1e-9)
