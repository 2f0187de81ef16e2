"""log Φ and its slope against SciPy, in both tails."""

from __future__ import annotations

import numpy as np
import scipy.special as sc
import scipy.stats

from svgpbench.numerics.normal import log_ndtr, log_ndtr_and_slope, scaled_erfc
from svgpbench.ops import Ops

X = np.concatenate([np.linspace(-60.0, 8.0, 4001), [0.0, -0.0, 1e-300, -1e-300, 1e-9, -1e-9]])


def test_log_ndtr_equals_scipy(ops: Ops) -> None:
    got = ops.to_numpy(log_ndtr(ops, ops.asarray(X)))
    np.testing.assert_allclose(got, sc.log_ndtr(X), rtol=1e-13, atol=0)


def test_slope_is_density_over_distribution(ops: Ops) -> None:
    value, slope = log_ndtr_and_slope(ops, ops.asarray(X))
    np.testing.assert_array_equal(ops.to_numpy(value), ops.to_numpy(log_ndtr(ops, ops.asarray(X))))
    # φ/Φ below 0 through erfcx, where neither φ nor Φ underflows
    left = np.sqrt(2.0 / np.pi) / sc.erfcx(-np.minimum(X, 0.0) / np.sqrt(2.0))
    right = np.maximum(X, 0.0)
    wanted = np.where(X < 0, left, scipy.stats.norm.pdf(right) / sc.ndtr(right))
    np.testing.assert_allclose(ops.to_numpy(slope), wanted, rtol=1e-13, atol=0)


def test_autodiff_of_log_ndtr_equals_its_slope(ops: Ops) -> None:
    x = np.linspace(-60.0, 8.0, 401) + 0.0123  # off 0, where |x| has no derivative
    _, got = ops.value_and_grad(lambda t: ops.sum(log_ndtr(ops, t)))(ops.asarray(x))
    _, slope = log_ndtr_and_slope(ops, ops.asarray(x))
    # the derivative of a polynomial of degree 28 loses two digits; near 8 the slope itself is 1e-14
    np.testing.assert_allclose(ops.to_numpy(got), ops.to_numpy(slope), rtol=1e-11, atol=1e-13)


def test_scaled_erfc_equals_scipy(ops: Ops) -> None:
    z = np.concatenate([np.linspace(0.0, 50.0, 2001), [1e3, 1e6]])
    got = ops.to_numpy(scaled_erfc(ops, ops.asarray(z)))
    np.testing.assert_allclose(got, sc.erfcx(z), rtol=1e-14, atol=0)
