"""Elementwise functions, shapes and sums of `Ops`, on every backend and dtype, against NumPy and SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import digamma, erfc, gammaln

from svgpbench.checks.kit.functions import FORWARD
from svgpbench.checks.kit.numbers import assert_same, numbers
from svgpbench.ops import Ops, eps


@pytest.mark.parametrize("name", FORWARD)
def test_function_equals_numpy_and_keeps_the_dtype(typed: Ops, name: str) -> None:
    function, reference, x = FORWARD[name]
    x = x.astype(typed.dtype).astype(np.float64)  # the values that the backend sees
    assert_same(typed, function(typed, typed.asarray(x)), reference(x), units=32)


def test_softplus_and_log1p_are_accurate_where_they_are_small(typed: Ops) -> None:
    x = np.array([-80.0, -40.0, -20.0]).astype(typed.dtype)
    got = typed.to_numpy(typed.softplus(typed.asarray(x)))
    # log(1 + eˣ) = eˣ(1 − ½eˣ + …), and ½e⁻²⁰ = 1e-9
    np.testing.assert_allclose(got, np.exp(np.float64(x)), rtol=1e-8 + 16 * eps(typed.dtype))
    small = np.array([1e-20, -1e-15])
    got = typed.to_numpy(typed.log1p(typed.asarray(small)))
    np.testing.assert_allclose(got, small, rtol=16 * eps(typed.dtype))


def test_erfc_keeps_its_digits_in_the_tail(typed: Ops) -> None:
    x = np.linspace(-6.0, 26.0 if typed.dtype == "float64" else 9.0, 400).astype(typed.dtype)
    got = typed.to_numpy(typed.erfc(typed.asarray(x)))
    # erfc(x) shrinks like exp(−x²): an ulp of x is 2x² ulps of it
    tolerance = (8 + 2 * x.astype(np.float64) ** 2) * eps(typed.dtype)
    assert np.all(np.abs(got / erfc(np.float64(x)) - 1.0) <= tolerance)


@pytest.mark.parametrize(("name", "reference"), [("lgamma", gammaln), ("digamma", digamma)])
def test_gamma_functions_equal_scipy_where_they_are_small_and_where_they_are_large(
    typed: Ops, name: str, reference: Callable[[Any], Any]
) -> None:
    x = np.array([1e-6, 0.03, 0.5, 1.0, 1.2, 1.4616, 2.0, 2.5, 7.3, 41.0, 171.0, 1e4, 1e6])
    x = x.astype(typed.dtype)
    got, expected = typed.to_numpy(getattr(typed, name)(typed.asarray(x))), reference(np.float64(x))
    assert got.dtype == np.dtype(typed.dtype)
    # relative error for large values; absolute error near their zeros, which lie between 1 and 2
    assert np.all(
        np.abs(got - expected) <= 16 * eps(typed.dtype) * np.maximum(1.0, np.abs(expected))
    )


def test_log_and_sqrt_outside_their_domain(typed: Ops) -> None:
    x = typed.asarray(np.array([-1.0, 0.0]))
    np.testing.assert_array_equal(typed.to_numpy(typed.log(x)), [np.nan, -np.inf])
    np.testing.assert_array_equal(typed.to_numpy(typed.sqrt(x)), [np.nan, 0.0])


def test_index_add_adds_a_copy(typed: Ops) -> None:
    index = typed.asarray(np.array([3, 1]))
    for shape in ((5,), (2, 5), (2, 3, 5)):
        x, values = numbers(*shape), numbers(*shape[:-1], 2)
        expected = np.array(x)
        expected[..., [3, 1]] += values
        array = typed.asarray(x)
        assert_same(typed, typed.index_add(array, index, typed.asarray(values)), expected)
        assert_same(typed, array, x)
