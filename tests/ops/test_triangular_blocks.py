"""Triangular matrices that are halved until their blocks are small: JAX's solves."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from scipy.linalg import solve_triangular

from svgpbench.ops import Ops
from svgpbench.plugins import load_backend

Floats = npt.NDArray[np.float64]
RNG = np.random.default_rng(3)
EPS = float(np.finfo(np.float64).eps)


def factor(n: int, jitter: float) -> Floats:
    """The Cholesky factor of a smooth kernel's matrix, as ill-conditioned as the jitter lets it be."""
    x = np.linspace(0.0, 8.0, n)
    K = np.exp(-0.5 * (x[:, None] - x) ** 2) + jitter * np.eye(n)
    L: Floats = np.linalg.cholesky(K)
    return L


@pytest.mark.parametrize("n", [20, 129, 200, 300])
@pytest.mark.parametrize("k", [1, 40])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_jax_solves_as_lapack_does(n: int, k: int, lower: bool, transpose: bool) -> None:
    ops = load_backend("jax")
    L = factor(n, 1e-2)
    a, b = (L if lower else L.T), RNG.standard_normal((2, n, k))
    poisoned = a + 1e9 * (np.triu(np.ones((n, n)), 1) if lower else np.tril(np.ones((n, n)), -1))
    x = ops.solve_triangular(
        ops.asarray(poisoned[None]), ops.asarray(b), lower=lower, transpose=transpose
    )
    wanted = [solve_triangular(a, one, lower=lower, trans=int(transpose)) for one in b]
    np.testing.assert_allclose(ops.to_numpy(x), np.stack(wanted), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("transpose", [True, False])
def test_the_residual_of_an_ill_conditioned_solve_is_rounding(ops: Ops, transpose: bool) -> None:
    L, b = factor(300, 1e-10), RNG.standard_normal((300, 64))
    assert np.linalg.cond(L @ L.T) > 1e10
    x = ops.to_numpy(ops.solve_triangular(ops.asarray(L), ops.asarray(b), transpose=transpose))
    a = L.T if transpose else L
    scale = np.abs(a) @ np.abs(x) + np.abs(b)
    assert np.max(np.abs(a @ x - b) / scale) < 300 * EPS


def test_jax_s_gradient_of_a_blocked_solve_is_that_of_the_others() -> None:
    a, b, c = factor(200, 1e-2), RNG.standard_normal((200, 40)), RNG.standard_normal((200, 40))
    found = []
    for name in ("numpy", "jax"):
        ops = load_backend(name)
        weights = ops.asarray(c)

        def paired(at: tuple[Floats, Floats], ops: Ops = ops, weights: Floats = weights) -> Floats:
            x: Floats = ops.sum(weights * ops.solve_triangular(at[0], at[1]))
            return x

        _, gradient = ops.value_and_grad(paired)((ops.asarray(a), ops.asarray(b)))
        found.append([ops.to_numpy(x) for x in gradient])
    np.testing.assert_allclose(np.tril(found[1][0]), np.tril(found[0][0]), rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-10, atol=1e-10)
