"""A failed Cholesky factorization in torch's compiled mode, where `torch.linalg.cholesky` once gave numbers.

See https://github.com/pytorch/pytorch/issues/182965.
"""

from __future__ import annotations

import numpy as np
import pytest

from svgpbench.backends import framework_missing, load_backend
from svgpbench.checks.kit.numbers import positive_definite
from svgpbench.checks.kit.test_linear_algebra import (
    test_cholesky_of_a_matrix_that_is_not_positive_definite_is_nan as test_it_is_nan,
)
from svgpbench.ops import Array, Ops

__all__ = ["test_it_is_nan"]

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(framework_missing("torch") is not None, reason="torch is not installed"),
]


@pytest.fixture(scope="module", params=["float64", "float32"])
def typed(request: pytest.FixtureRequest) -> Ops:
    return load_backend("torch", "compile", request.param)


def test_the_value_and_gradient_of_its_log_determinant_are_nan(typed: Ops) -> None:
    def log_determinant(A: Array) -> Array:
        return typed.sum(typed.log(typed.diagonal(typed.cholesky(A))))

    step = typed.jit(typed.value_and_grad(log_determinant))
    good = positive_definite(4, 4)
    value, gradient = map(typed.to_numpy, step(typed.asarray(good)))
    assert np.isfinite(value) and np.all(np.isfinite(gradient))
    value, gradient = map(typed.to_numpy, step(typed.asarray(good - 10.0 * np.eye(4))))
    assert np.isnan(value) and np.all(np.isnan(gradient[np.tril_indices(4)]))
