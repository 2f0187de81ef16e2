"""log p(y | f) of Student-t noise and its slope, by SciPy, at any degrees of freedom and scale."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from finite_differences import derivative

from svgpbench.likelihoods import StudentT, StudentTParameters
from svgpbench.ops import Ops


@pytest.mark.parametrize("scale", [1e-3, 0.7, 10.0])
@pytest.mark.parametrize("df", [1.5, 3.0, 4.5, 30.0])
def test_log_density_and_slope(ops: Ops, df: float, scale: float) -> None:
    """A learned scale is that of the parameters, whatever scale the likelihood starts from."""
    error = scale * np.array([-50.0, -(df**0.5), -0.3, 0.0, 2.0, 7.0])
    likelihood, p = StudentT(scale=2.5, df=df), StudentTParameters(ops.asarray(np.float64(scale)))
    value, slope = likelihood.log_density(
        ops, p, ops.asarray(error + 0.2), ops.asarray(np.full(6, 0.2))
    )

    def by_scipy(h: float) -> np.ndarray:
        return np.asarray(scipy.stats.t.logpdf(error - h * scale, df, scale=scale))

    np.testing.assert_allclose(ops.to_numpy(value), by_scipy(0.0), rtol=1e-12, atol=1e-12)
    expected = derivative(by_scipy, 1e-3) / scale
    np.testing.assert_allclose(ops.to_numpy(slope) * scale, expected * scale, rtol=1e-8, atol=1e-9)
    assert not likelihood.log_concave
