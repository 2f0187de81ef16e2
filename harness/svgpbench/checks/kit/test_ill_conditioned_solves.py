"""Triangular solves against factors of ill-conditioned kernel matrices."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from svgpbench.ops import Ops, eps

Floats = npt.NDArray[np.float64]
RNG = np.random.default_rng(3)


def factor(n: int, jitter: float) -> Floats:
    """Return the Cholesky factor of a smooth kernel matrix, whose condition the jitter limits."""
    x = np.linspace(0.0, 8.0, n)
    K = np.exp(-0.5 * (x[:, None] - x) ** 2) + jitter * np.eye(n)
    return np.asarray(np.linalg.cholesky(K), dtype=np.float64)


@pytest.mark.parametrize("transpose", [True, False])
def test_the_residual_of_an_ill_conditioned_solve_is_rounding(ops: Ops, transpose: bool) -> None:
    L, b = factor(300, 1e-10), RNG.standard_normal((300, 64))
    assert np.linalg.cond(L @ L.T) > 1e10
    L, b = (x.astype(ops.dtype).astype(np.float64) for x in (L, b))  # what the backend solves
    x = ops.to_numpy(ops.solve_triangular(ops.asarray(L), ops.asarray(b), transpose=transpose))
    a = L.T if transpose else L
    # substitution is backward stable row by row, |ax − b| ≤ nε|a||x|, at any condition
    # (Higham 2002, Thm 8.5); a product with the inverse is not
    scale = np.abs(a) @ np.abs(x) + np.abs(b)
    assert np.max(np.abs(a @ x - b) / scale) < 300 * eps(ops.dtype)
