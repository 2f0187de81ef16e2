"""Cholesky factors and triangular solves of `Ops`: residuals, failure, and which triangle is read."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import scipy.linalg

from svgpbench.checks.kit.numbers import assert_same, numbers, positive_definite
from svgpbench.ops import Ops, eps

Floats = npt.NDArray[np.float64]
RNG = np.random.default_rng(3)


@pytest.mark.parametrize("shape", [(5, 5), (3, 5, 5), (2, 3, 5, 5)], ids=str)
def test_cholesky_residual(typed: Ops, shape: tuple[int, ...]) -> None:
    A = positive_definite(*shape)
    A = A.astype(typed.dtype).astype(np.float64)
    L = typed.to_numpy(typed.cholesky(typed.asarray(A)))
    assert L.dtype == np.dtype(typed.dtype)
    assert not np.any(np.triu(L, 1))
    L = L.astype(np.float64)
    residual = np.linalg.norm(L @ np.swapaxes(L, -1, -2) - A, axis=(-2, -1))
    # |LLᵀ − A| ≤ (n + 1)ε|L||Lᵀ| whatever the condition (Higham 2002, Thm 10.3)
    bound = 2 * shape[-1] * eps(typed.dtype) * np.linalg.norm(A, axis=(-2, -1))
    assert np.all(residual <= bound)


def test_cholesky_reads_the_lower_triangle_only(typed: Ops) -> None:
    A = positive_definite(3, 5, 5)
    # 1e3 shows a factor of (A + Aᵀ)/2, JAX's default; the NaN further down, a triangle times 0
    spoiled = np.tril(A) + np.triu(np.full((5, 5), 1e3), 1)
    expected = typed.to_numpy(typed.cholesky(typed.asarray(A)))
    np.testing.assert_array_equal(typed.to_numpy(typed.cholesky(typed.asarray(spoiled))), expected)
    spoiled = np.where(np.triu(np.ones((5, 5), dtype=bool), 1), np.nan, A)
    np.testing.assert_array_equal(typed.to_numpy(typed.cholesky(typed.asarray(spoiled))), expected)


@pytest.mark.parametrize("bad", ["indefinite", "first pivot", "last pivot", "singular"])
def test_cholesky_of_a_matrix_that_is_not_positive_definite_is_nan(typed: Ops, bad: str) -> None:
    A = positive_definite(3, 4, 4)
    expected = typed.to_numpy(typed.cholesky(typed.asarray(A)))
    A[1] = {
        "indefinite": np.eye(4) - 0.9 * np.ones((4, 4)),
        "first pivot": np.diag([-1.0, 1.0, 1.0, 1.0]),
        "last pivot": np.diag([1.0, 1.0, 1.0, -1.0]),
        "singular": np.diag([1.0, 0.0, 1.0, 1.0]),
    }[bad]
    got = typed.to_numpy(typed.cholesky(typed.asarray(A)))
    # after a failure TensorFlow leaves uninitialised memory above the diagonal
    assert np.all(np.isnan(got[1][np.tril_indices(4)]))
    np.testing.assert_array_equal(got[[0, 2]], expected[[0, 2]])
    compiled = typed.to_numpy(typed.jit(typed.cholesky)(typed.asarray(A)))
    np.testing.assert_array_equal(np.isnan(np.tril(compiled)), np.isnan(np.tril(got)))


def test_cholesky_of_nan_is_not_finite_and_does_not_raise(typed: Ops) -> None:
    A = positive_definite(3, 4, 4)
    A[1, 3, 2] = A[1, 2, 3] = np.nan
    got = typed.to_numpy(typed.cholesky(typed.asarray(A)))
    assert np.any(np.isnan(got[1]))
    assert np.all(np.isfinite(got[[0, 2]]))


def test_solve_against_a_failed_factor_is_nan_and_does_not_raise(typed: Ops) -> None:
    L = np.stack([np.eye(3), np.tril(np.full((3, 3), np.nan))])
    got = typed.to_numpy(
        typed.solve_triangular(typed.asarray(L), typed.asarray(np.ones((2, 3, 1))))
    )
    assert np.all(np.isnan(got[1]))
    np.testing.assert_array_equal(got[0], np.ones((3, 1)))


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("lower", [True, False])
def test_solve_triangular_residual_and_triangle(typed: Ops, lower: bool, transpose: bool) -> None:
    """Leading axes broadcast, and the other triangle may hold anything."""
    mask = np.tri(4, dtype=bool) if lower else np.tri(4, dtype=bool).T
    for a_shape, b_shape in (((4, 4), (4, 2)), ((3, 4, 4), (4, 2)), ((1, 4, 4), (3, 4, 2))):
        A = (numbers(*a_shape) + 4.0 * np.eye(4)).astype(typed.dtype).astype(np.float64)
        b = numbers(*b_shape).astype(typed.dtype).astype(np.float64)
        for filler in (0.0, np.nan):
            x = typed.solve_triangular(
                typed.asarray(np.where(mask, A, filler)),
                typed.asarray(b),
                lower=lower,
                transpose=transpose,
            )
            T = np.where(mask, A, 0.0)
            T = np.swapaxes(T, -1, -2) if transpose else T
            value = typed.to_numpy(x)
            assert value.dtype == np.dtype(typed.dtype)
            assert value.shape == (*np.broadcast_shapes(a_shape[:-2], b_shape[:-2]), 4, 2)
            bound = 16 * eps(typed.dtype) * np.linalg.norm(T) * np.linalg.norm(value)
            assert np.linalg.norm(T @ value.astype(np.float64) - b) <= bound


def test_solve_triangular_equals_scipy(ops: Ops) -> None:
    A, b = np.tril(numbers(4, 4)) + 4.0 * np.eye(4), numbers(4, 3)
    got = ops.solve_triangular(ops.asarray(A), ops.asarray(b), transpose=True)
    expected = scipy.linalg.solve_triangular(A, b, lower=True, trans=1)
    assert_same(ops, got, expected, units=32)


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
