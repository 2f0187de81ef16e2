"""Kernels against their formulas, and their derivatives where points coincide."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from finite_differences import gradient

from svgpbench.kernels.kernels import KernelParameters, kernel, kernels, lengthscale_count
from svgpbench.ops import Array, Ops

Floats = npt.NDArray[np.float64]

# k as a function of the distance in units of the lengthscale
FORMULAS: dict[str, Callable[[Floats], Floats]] = {
    "se": lambda d: np.exp(-0.5 * d**2),
    "matern32": lambda d: (1 + np.sqrt(3) * d) * np.exp(-np.sqrt(3) * d),
    "matern52": lambda d: (1 + np.sqrt(5) * d + 5 * d**2 / 3) * np.exp(-np.sqrt(5) * d),
}
RNG = np.random.default_rng(7)
A, B = RNG.standard_normal((6, 3)), RNG.standard_normal((5, 3))
LENGTHSCALES = np.array([0.8, 1.3, 1.1])
VARIANCE = 1.7


def parameters(
    ops: Ops, lengthscales: npt.ArrayLike, variance: float = VARIANCE
) -> KernelParameters:
    return KernelParameters(
        ops.asarray(np.array([variance])), ops.asarray(np.atleast_2d(np.float64(lengthscales)))
    )


def covariance(ops: Ops, name: str, lengthscales: npt.ArrayLike) -> Floats:
    p = parameters(ops, lengthscales)
    return ops.to_numpy(kernel(name).cross(ops, p, ops.asarray(A), ops.asarray(B)))


def test_every_kernel_has_a_formula_here() -> None:
    assert set(FORMULAS) == set(kernels())


@pytest.mark.parametrize("name", kernels())
def test_kernel_equals_its_formula(ops: Ops, name: str) -> None:
    distance = np.linalg.norm((A[:, None] - B[None]) / LENGTHSCALES, axis=-1)
    wanted = VARIANCE * FORMULAS[name](distance)[None]
    np.testing.assert_allclose(covariance(ops, name, LENGTHSCALES), wanted, rtol=1e-12)


@pytest.mark.parametrize("ops", ["numpy"], indirect=True)
@pytest.mark.parametrize("name", kernels())
def test_equal_lengthscales_are_an_isotropic_kernel(ops: Ops, name: str) -> None:
    got = covariance(ops, name, [0.9, 0.9, 0.9])
    np.testing.assert_allclose(got, covariance(ops, name, [0.9]), rtol=1e-14)


@pytest.mark.parametrize("ops", ["numpy"], indirect=True)
@pytest.mark.parametrize("name", kernels())
def test_rows_of_hyperparameters_are_separate_kernels(ops: Ops, name: str) -> None:
    p = KernelParameters(
        ops.asarray(np.array([1.7, 0.4])), ops.asarray(np.stack([LENGTHSCALES, 2 * LENGTHSCALES]))
    )
    got = ops.to_numpy(kernel(name).cross(ops, p, ops.asarray(A), ops.asarray(B)))
    second = 0.4 / 1.7 * covariance(ops, name, 2 * LENGTHSCALES)
    wanted = np.concatenate([covariance(ops, name, LENGTHSCALES), second])
    np.testing.assert_allclose(got, wanted, rtol=1e-12)


@pytest.mark.parametrize("ops", ["numpy"], indirect=True)
@pytest.mark.parametrize("name", kernels())
def test_diagonal_is_the_kernel_of_a_point_with_itself(ops: Ops, name: str) -> None:
    p, X = parameters(ops, LENGTHSCALES), ops.asarray(A)
    diagonal = ops.to_numpy(kernel(name).diagonal(ops, p, X))
    square = ops.to_numpy(kernel(name).cross(ops, p, X, X))
    np.testing.assert_allclose(diagonal, np.diagonal(square, axis1=-2, axis2=-1), rtol=1e-12)


def coincident() -> tuple[Floats, Floats]:
    """Inducing inputs of which two are equal and one is a datum; data."""
    Z = np.array(B)
    Z[1] = Z[0]
    Z[2] = A[3]
    return Z, A


WZZ = np.cos(np.arange(25.0)).reshape(5, 5)
WZX = np.sin(1.0 + np.arange(30.0)).reshape(5, 6)


def total(ops: Ops, name: str) -> Callable[..., Array]:
    """A weighted sum over K(Z, Z) and K(Z, X)."""

    def f(tree: tuple[KernelParameters, Array], X: Array) -> Array:
        p, Z = tree
        k = kernel(name)
        inducing = ops.sum(ops.asarray(WZZ) * k.cross(ops, p, Z, Z))
        return inducing + ops.sum(ops.asarray(WZX) * k.cross(ops, p, Z, X))

    return f


def plain_total(name: str, variance: Floats, lengthscales: Floats, Z: Floats, X: Floats) -> float:
    """The same sum by the kernel's formula."""
    inducing, cross = (
        np.linalg.norm((Z[:, None] - x[None]) / lengthscales, axis=-1) for x in (Z, X)
    )
    k = FORMULAS[name]
    return float(variance[0] * (np.sum(WZZ * k(inducing)) + np.sum(WZX * k(cross))))


@pytest.mark.parametrize("name", kernels())
def test_gradient_where_points_coincide(ops: Ops, name: str) -> None:
    """Finite, and for the hyperparameters right, with two equal Z and one on a datum."""
    Z, X = coincident()
    tree = (parameters(ops, LENGTHSCALES), ops.asarray(Z))
    _, (g, g_Z) = ops.value_and_grad(total(ops, name))(tree, ops.asarray(X))
    assert np.all(np.isfinite(ops.to_numpy(g_Z)))
    variance, lengthscales = gradient(
        lambda v, scales: plain_total(name, v, scales, Z, X), [np.array([VARIANCE]), LENGTHSCALES]
    )
    np.testing.assert_allclose(ops.to_numpy(g.variance), variance, rtol=1e-9)
    np.testing.assert_allclose(ops.to_numpy(g.lengthscales)[0], lengthscales, rtol=1e-8)


@pytest.mark.parametrize("name", kernels())
def test_gradient_in_the_inputs_equals_differences(ops: Ops, name: str) -> None:
    tree = (parameters(ops, LENGTHSCALES), ops.asarray(B))
    _, (_, g) = ops.value_and_grad(total(ops, name))(tree, ops.asarray(A))
    variance = np.array([VARIANCE])
    (wanted,) = gradient(lambda Z: plain_total(name, variance, LENGTHSCALES, Z, A), [B])
    np.testing.assert_allclose(ops.to_numpy(g), wanted, rtol=1e-8, atol=1e-9)


def test_lengthscale_count() -> None:
    assert lengthscale_count(True, 5) == 5
    assert lengthscale_count(False, 5) == 1
