"""What lies above the diagonal of a Cholesky factor is 0 or NaN, also where the factorization fails."""

from __future__ import annotations

import numpy as np
import pytest

from svgpbench.ops import Ops


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("size", [3, 40])
def test_no_memory_of_others_shows_in_the_upper_triangle(
    typed: Ops, size: int, compiled: bool
) -> None:
    """TensorFlow leaves it as it found it: here, full of sevens."""
    bad = np.eye(size)
    bad[0, 0] = -1.0
    matrix = typed.asarray(np.stack([np.eye(size), bad]))
    cholesky = typed.jit(typed.cholesky) if compiled else typed.cholesky
    upper = np.triu(np.ones((size, size), dtype=bool), 1)
    for _ in range(20):
        sevens = [typed.asarray(np.full((2, size, size), 7.0)) + 0.0 for _ in range(4)]
        del sevens
        good, failed = typed.to_numpy(cholesky(matrix))
        assert np.all(good[upper] == 0.0)
        assert np.all(np.isnan(failed[upper]) | (failed[upper] == 0.0))
        assert np.all(np.isnan(failed[~upper]))
