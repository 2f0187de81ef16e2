"""Seeded arrays, a tree and an equality assertion for the tests of the `Ops` contract."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from svgpbench.ops import Array, Ops, eps

Floats = npt.NDArray[np.float64]


class Parts(NamedTuple):
    """A tree with a leaf that a function uses, one that it ignores, and a nested tree."""

    used: Any
    unused: Any
    nested: Any


def numbers(*shape: int, seed: int = 0) -> Floats:
    """Draw standard normal numbers of a shape."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def positive_definite(*shape: int) -> Floats:
    """Return matrices whose eigenvalues are at least 1/2."""
    x = numbers(*shape)
    return x @ np.swapaxes(x, -1, -2) + 0.5 * np.eye(shape[-1])


def assert_same(ops: Ops, got: Array, expected: npt.ArrayLike, units: float = 8.0) -> None:
    """Assert equal shapes, the dtype of `ops`, and equal values.

    The tolerance is `units` machine epsilons of 1 or of the largest entry, if that is larger.
    """
    value, expected = ops.to_numpy(got), np.asarray(expected)
    assert value.dtype == np.dtype(ops.dtype)
    assert value.shape == expected.shape
    scale = max(1.0, float(np.max(np.abs(expected[np.isfinite(expected)]), initial=0.0)))
    np.testing.assert_allclose(value, expected, rtol=0, atol=units * eps(ops.dtype) * scale)
