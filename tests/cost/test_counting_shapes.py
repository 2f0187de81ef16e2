"""The counting backend keeps the `Ops` contract on shapes: same shapes and dtypes as NumPy, no numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from svgpbench.backends import check_backend, computes, load_backend, new_backend
from svgpbench.checks.kit.functions import DIFFERENTIABLE, FORWARD
from svgpbench.checks.kit.numbers import numbers
from svgpbench.errors import UserError
from svgpbench.ops import Array, Ops


@pytest.fixture(params=["float64", "float32"])
def counting(request: pytest.FixtureRequest) -> Any:
    return new_backend("counting", dtype=request.param)


class Carry(NamedTuple):
    x: Any
    nested: Any


def test_it_is_an_ops_that_does_not_compute(counting: Ops) -> None:
    assert isinstance(counting, Ops)
    assert (counting.name, counting.mode) == ("counting", "shapes")
    assert not computes("counting")
    assert all(map(computes, ("numpy", "jax", "torch", "tensorflow")))
    with pytest.raises(UserError, match="computes shapes only"):
        check_backend("counting")


@pytest.mark.parametrize("name", FORWARD)
def test_shape_and_dtype_are_those_of_numpy(counting: Ops, name: str) -> None:
    function, reference, x = FORWARD[name]
    got = function(counting, counting.asarray(x))
    assert got.shape == reference(x).shape
    assert got.dtype == np.dtype(counting.dtype)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_have_the_shapes_of_the_arguments(counting: Ops, name: str) -> None:
    function, arguments = DIFFERENTIABLE[name]
    reference = load_backend("numpy")
    inputs = tuple(counting.asarray(x) for x in arguments)
    assert function(counting, *inputs).shape == function(reference, *arguments).shape

    def total(tree: Any, factor: Array) -> Array:
        return factor * counting.sum(function(counting, *tree))

    value, got = counting.value_and_grad(total)(inputs, counting.asarray(2.0))
    assert value.shape == ()
    assert [g.shape for g in got] == [np.shape(x) for x in arguments]
    assert all(g.dtype == np.dtype(counting.dtype) for g in got)


def test_comparisons_are_boolean_and_join(counting: Ops) -> None:
    x = counting.asarray(numbers(2, 3))
    both = (x > 0.0) & (x[:1] <= x) | ~(x == 1.0)
    assert both.shape == (2, 3)
    assert both.dtype == bool
    integers = counting.asarray(np.arange(4))
    assert integers.dtype.kind == "i"
    assert counting.index_add(x[0], integers[:2], x[0, :2]).shape == (3,)


@pytest.mark.parametrize(
    "read",
    [
        lambda ops, x: ops.to_numpy(x),
        lambda ops, x: float(x),
        lambda ops, x: np.asarray(x),
        lambda ops, x: 1 if x > 0.0 else 0,
        lambda ops, x: 2.0 if x else 3.0,
    ],
    ids=["to_numpy", "float", "numpy.asarray", "if of a comparison", "if"],
)
def test_reading_a_number_is_refused_in_one_line(
    counting: Ops, read: Callable[[Ops, Array], Any]
) -> None:
    with pytest.raises(UserError, match="backend 'counting' computes shapes only") as caught:
        read(counting, counting.zeros(()))
    assert "\n" not in str(caught.value)


MISFITS: dict[str, tuple[Callable[[Ops, Array], Any], type[Exception]]] = {
    "sum of other shapes": (lambda ops, x: x + x[:, :2], ValueError),
    "product of other shapes": (lambda ops, x: x @ x, ValueError),
    "product with a vector": (lambda ops, x: x @ x[0], ValueError),
    "Cholesky of a rectangle": (lambda ops, x: ops.cholesky(x), ValueError),
    "solve with too many rows": (
        lambda ops, x: ops.solve_triangular(ops.eye(4), x),
        ValueError,
    ),
    "reshape to another size": (lambda ops, x: ops.reshape(x, (4, 2)), ValueError),
    "broadcast that shrinks": (lambda ops, x: ops.broadcast_to(x, (1, 3)), ValueError),
    "concat of other widths": (lambda ops, x: ops.concat([x, x[:, :2]], axis=0), ValueError),
    "index too many": (lambda ops, x: x[0, 0, 0], IndexError),
    "index outside": (lambda ops, x: x[5], IndexError),
    "index by a list": (lambda ops, x: x[[0, 1]], TypeError),
    "an array of another framework": (lambda ops, x: x + np.ones((2, 3)), TypeError),
    "that array on the left": (lambda ops, x: np.ones((2, 3)) * x, TypeError),
    "iteration": (lambda ops, x: list(x), TypeError),
    "axis outside": (lambda ops, x: ops.sum(x, axis=2), IndexError),
    "scan that changes its carry": (
        lambda ops, x: ops.scan(lambda c, _: c[:1], x, (), length=2),
        ValueError,
    ),
    "gradient of an array": (lambda ops, x: ops.value_and_grad(lambda t: t)(x), ValueError),
    "gradient of a gradient": (
        lambda ops, x: ops.value_and_grad(
            lambda t: ops.sum(ops.value_and_grad(lambda s: ops.sum(s * s))(t)[1])
        )(x),
        NotImplementedError,
    ),
    "gradient through a scan": (
        lambda ops, x: ops.value_and_grad(
            lambda t: ops.sum(ops.scan(lambda c, _: 2.0 * c, t, (), length=3))
        )(x),
        NotImplementedError,
    ),
    "gradient through a loop's start": (
        lambda ops, x: ops.value_and_grad(
            lambda t: ops.sum(ops.while_loop(lambda c: ops.sum(c) > 0.0, lambda c: 0.5 * c, t))
        )(x),
        NotImplementedError,
    ),
}


@pytest.mark.parametrize("name", MISFITS)
def test_what_frameworks_refuse_is_refused(counting: Ops, name: str) -> None:
    function, error = MISFITS[name]
    with pytest.raises(error):
        function(counting, counting.asarray(numbers(2, 3)))


def test_a_refused_gradient_leaves_the_backend_usable(counting: Ops) -> None:
    with pytest.raises(NotImplementedError):
        MISFITS["gradient of a gradient"][0](counting, counting.asarray(numbers(2, 3)))
    _, g = counting.value_and_grad(lambda x: counting.sum(x * x))(counting.zeros((4,)))
    assert g.shape == (4,)


def test_trees_keep_their_structure(counting: Ops) -> None:
    tree = Carry(counting.zeros((2,)), (counting.zeros((3, 4)), ()))

    def step(c: Carry, x: tuple[Array, Array]) -> Carry:
        return Carry(c.x * x[0] + x[1], (c.nested[0] + 1.0, ()))

    xs = (counting.zeros((5,)), counting.zeros((5, 2)))
    found = [
        counting.scan(step, tree, xs, length=5),
        counting.scan(step, tree, xs, length=1),
        counting.while_loop(
            lambda c: counting.sum(c.x) > 0.0, lambda c: Carry(c.x, c.nested), tree
        ),
        counting.stop_gradient(tree),
        counting.value_and_grad(lambda t: counting.sum(t.x * t.x))(tree)[1],
    ]
    for got in found:
        assert isinstance(got, Carry)
        assert got.x.shape == (2,)
        assert got.nested[0].shape == (3, 4)
        assert got.nested[1] == ()
    assert counting.scan(step, tree, xs, length=0) is tree
