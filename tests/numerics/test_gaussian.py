"""Products of triangular matrices that leave their zeros out."""

from __future__ import annotations

import numpy as np
import pytest

from svgpbench.numerics import gaussian
from svgpbench.numerics.gaussian import lower_congruence, lower_gram, symmetric_product
from svgpbench.ops import Ops


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_products_of_a_triangular_matrix_are_those_of_the_whole(ops: Ops, n: int) -> None:
    rng = np.random.default_rng(n)
    R = np.tril(rng.standard_normal((3, n, n)))
    C = rng.standard_normal((3, n, n))
    C = C + np.swapaxes(C, -1, -2)
    Rt = np.swapaxes(R, -1, -2)
    on = [ops.asarray(x) for x in (R, C)]
    gram = ops.to_numpy(ops.jit(lambda r: lower_gram(ops, r))(on[0]))
    moved = ops.to_numpy(ops.jit(lambda r, c: lower_congruence(ops, r, c))(*on))
    np.testing.assert_allclose(gram, Rt @ R, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(moved, Rt @ C @ R, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("n", [2, 5, 8])
def test_a_symmetric_product_is_that_of_the_whole(
    ops: Ops, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gaussian, "WORTH_SPLITTING", 2)
    rng = np.random.default_rng(n)
    y, d = rng.standard_normal((3, n, 7)), rng.standard_normal((3, 1, 7))
    on = [ops.asarray(x) for x in (y * d, y)]
    found = ops.to_numpy(ops.jit(lambda x, y: symmetric_product(ops, x, y))(*on))
    np.testing.assert_allclose(found, (y * d) @ np.swapaxes(y, -1, -2), rtol=1e-13, atol=1e-13)
