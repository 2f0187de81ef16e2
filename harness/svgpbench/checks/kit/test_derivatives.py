"""`value_and_grad` of `Ops` against the numpy reference, and the structure of its gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from svgpbench.backends import load_backend
from svgpbench.checks.kit.functions import DIFFERENTIABLE
from svgpbench.checks.kit.numbers import Parts, assert_same
from svgpbench.errors import NoAutodiffError
from svgpbench.ops import Array, Ops


def needs_autodiff(ops: Ops) -> None:
    """Skip a test that differentiates if the backend declares no autodiff."""
    if not type(ops).capabilities.autodiff:
        pytest.skip(f"backend {ops.name!r} has no autodiff")


def test_without_autodiff_value_and_grad_says_so(ops: Ops) -> None:
    if type(ops).capabilities.autodiff:
        return
    with pytest.raises(NoAutodiffError, match=f"backend '{ops.name}' has no autodiff"):
        ops.value_and_grad(ops.sum)(ops.zeros((2,)))


def scalar(ops: Ops, name: str) -> Callable[[Any], Array]:
    """Return a weighted sum of the function's entries, so that symmetry hides no wrong entry."""
    function, arguments = DIFFERENTIABLE[name]
    shape = ops.to_numpy(function(ops, *[ops.asarray(x) for x in arguments])).shape
    weights = ops.asarray(np.cos(1.0 + np.arange(np.prod(shape))).reshape(shape))
    return lambda tree: ops.sum(weights * function(ops, *tree))


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradient_equals_the_numpy_reference(typed: Ops, name: str) -> None:
    needs_autodiff(typed)
    reference = load_backend("numpy")
    _, arguments = DIFFERENTIABLE[name]
    f, units = scalar(reference, name), 512.0
    _, gradients = reference.value_and_grad(f)(tuple(arguments))
    inputs = tuple(typed.asarray(x) for x in arguments)
    value, got = typed.jit(typed.value_and_grad(scalar(typed, name)))(inputs)
    assert_same(typed, value, f(tuple(arguments)), units=256)
    for g, expected in zip(got, gradients, strict=True):
        assert_same(typed, g, expected, units=units)


def test_gradient_has_the_trees_structure_and_zeros_for_an_unused_leaf(typed: Ops) -> None:
    needs_autodiff(typed)
    x = typed.asarray(np.array([1.0, 2.0]))
    tree = Parts(x, typed.zeros((2, 2)) + 1.0, (x * 3.0, ()))

    def f(t: Parts, factor: Array) -> Array:
        return factor * (typed.sum(t.used * t.used) + typed.sum(t.nested[0]))

    value, g = typed.value_and_grad(f)(tree, typed.asarray(2.0))
    assert_same(typed, value, 2.0 * (5.0 + 9.0))
    assert isinstance(g, Parts)
    assert_same(typed, g.used, [4.0, 8.0])
    assert_same(typed, g.unused, np.zeros((2, 2)))
    assert_same(typed, g.nested[0], [2.0, 2.0])
    assert g.nested[1] == ()


def test_gradient_of_a_function_that_uses_nothing_is_zero(ops: Ops) -> None:
    needs_autodiff(ops)
    x, constant = ops.asarray(np.ones(2)), ops.asarray(3.0)
    value, (g, empty) = ops.value_and_grad(lambda t: constant * 2.0)((x, ()))
    assert_same(ops, value, 6.0)
    assert_same(ops, g, np.zeros(2))
    assert empty == ()
    value, g = ops.value_and_grad(lambda t: constant * 2.0)(((),))
    assert_same(ops, value, 6.0)
    assert g == ((),)


def test_stop_gradient_keeps_the_value_of_a_tree_and_hides_it(typed: Ops) -> None:
    needs_autodiff(typed)
    x = typed.asarray(np.array([1.0, 2.0]))

    def f(t: Any) -> Array:
        constants = typed.stop_gradient(Parts(t, t, (t, ())))
        return typed.sum(t * constants.used * constants.nested[0])

    value, g = typed.value_and_grad(f)(x)
    assert_same(typed, value, 9.0)
    assert_same(typed, g, [1.0, 4.0])


def test_gradient_of_a_failed_cholesky_is_not_finite(ops: Ops) -> None:
    needs_autodiff(ops)
    bad = ops.asarray(np.array([[1.0, 2.0], [2.0, 1.0]]))
    value, g = ops.value_and_grad(lambda a: ops.sum(ops.tril(ops.cholesky(a))))(bad)
    assert np.isnan(ops.to_numpy(value))
    assert not np.all(np.isfinite(ops.to_numpy(g)))
