"""What the counting backend counts: FLOPs, bytes and memory against counts by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from svgpbench.backends import new_backend
from svgpbench.ops import Array, Ops

m, k, n, P = 5, 7, 11, 3
NUMBER = 8  # bytes


def counted(f: Callable[..., Any], *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The fields of `Tally` of f(ops, *arrays), arrays of those shapes included."""
    ops: Any = new_backend("counting")
    arrays = [ops.zeros(shape) for shape in shapes]
    _, found = ops.count(lambda: f(ops, *arrays))
    return tuple(found)


def gradient(f: Callable[..., Array]) -> Callable[..., Any]:
    """(ops, *arrays) ↦ the gradient of Σ f(ops, *arrays) in every array."""

    def g(ops: Ops, *arrays: Array) -> Any:
        return ops.value_and_grad(lambda xs: ops.sum(f(ops, *xs)))(tuple(arrays))

    return g


# --- forward ---------------------------------------------------------------------------------------

BY_HAND: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], int, int]] = {
    "product": (
        lambda ops, a, b: a @ b,
        [(m, k), (k, n)],
        2 * m * k * n,
        m * k + k * n + m * n,
    ),
    "product, left factor shared": (
        lambda ops, a, b: a @ b,
        [(1, m, k), (P, k, n)],
        P * 2 * m * k * n,
        m * k + P * (k * n + m * n),
    ),
    "Cholesky": (lambda ops, a: ops.cholesky(a), [(P, 12, 12)], P * 12**3 // 3, 2 * P * 144),
    "triangular solve": (
        lambda ops, a, b: ops.solve_triangular(a, b),
        [(m, m), (P, m, n)],
        P * m * m * n,
        m * m + 2 * P * m * n,
    ),
    "elementwise": (lambda ops, x: ops.exp(x), [(m, n)], m * n, 2 * m * n),
    "elementwise, broadcast": (
        lambda ops, x, y: x * y,
        [(m, 1), (1, n)],
        m * n,
        m + n + m * n,
    ),
    "an array with itself": (lambda ops, x: x * x, [(n,)], n, 2 * n),
    "sum": (lambda ops, x: ops.sum(x), [(m, n)], m * n - 1, m * n + 1),
    "sum over an axis": (lambda ops, x: ops.sum(x, axis=0), [(m, n)], (m - 1) * n, m * n + n),
    "views": (
        lambda ops, x: ops.diagonal(ops.matrix_transpose(ops.reshape(x, (n, m)))[None, 1:]),
        [(m, n)],
        0,
        0,
    ),
    "a broadcast number read": (
        lambda ops, x: ops.exp(ops.broadcast_to(x, (m, n))),
        [()],
        m * n,
        1 + m * n,
    ),
    "a slice read": (lambda ops, x: ops.exp(x[:, :2]), [(m, n)], 2 * m, 4 * m),
    "copies": (lambda ops, x: ops.tril(ops.flip(x, axis=(0,))), [(m, n)], 0, 4 * m * n),
    "concat": (lambda ops, x, y: ops.concat([x, y], axis=0), [(m, n), (k, n)], 0, 2 * (m + k) * n),
    "take": (
        lambda ops, x: ops.take(x, ops.asarray(np.array([0, 2])), axis=0),
        [(m, n)],
        0,
        2 + 2 + 2 * n + 2 * n,  # the indices are written and read too
    ),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_forward_count_equals_the_count_by_hand(name: str) -> None:
    function, shapes, flops, moved = BY_HAND[name]
    assert counted(function, *shapes)[:2] == (flops, NUMBER * moved)


KINDS = {"product": 4, "Cholesky": 5, "triangular solve": 6}
"""Where `Tally` has the FLOPs of a kind."""


@pytest.mark.parametrize("name", BY_HAND)
def test_flops_are_told_by_kind(name: str) -> None:
    function, shapes, flops, _ = BY_HAND[name]
    kind = KINDS.get(name.partition(",")[0])
    found = counted(function, *shapes)
    assert {place: found[place] for place in KINDS.values()} == {
        place: flops if place == kind else 0 for place in KINDS.values()
    }


def test_a_loop_multiplies_the_flops_of_every_kind() -> None:
    def turn(ops: Ops, c: Array) -> Array:
        return ops.solve_triangular(ops.cholesky(c), c @ c)

    once = counted(turn, (n, n))
    looped = counted(lambda ops, c: ops.scan(lambda c, _: turn(ops, c), c, (), length=7), (n, n))
    assert looped[3:] == tuple(7 * count for count in once[3:])
    assert once[3:] == (1, 2 * n**3, n**3 // 3, n**3)


def test_float32_moves_half_the_bytes() -> None:
    double: Any = new_backend("counting")
    single: Any = new_backend("counting", dtype="float32")
    found = []
    for ops in (double, single):
        a = ops.zeros((m, k))
        found.append(ops.count(lambda ops=ops, a=a: a @ ops.matrix_transpose(a))[1])
    single_bytes = {"bytes": 2 * found[1].bytes, "peak_bytes": 2 * found[1].peak_bytes}
    assert found[0] == found[1]._replace(**single_bytes)


# --- reverse ---------------------------------------------------------------------------------------

ADJOINTS: dict[str, tuple[Callable[..., Array], list[tuple[int, ...]], int]] = {
    "product": (lambda ops, a, b: a @ b, [(m, k), (k, n)], 2 * (2 * m * k * n)),
    "product, left factor shared": (
        lambda ops, a, b: a @ b,
        [(1, m, k), (P, k, n)],
        2 * P * (2 * m * k * n) + (P - 1) * m * k,
    ),
    "Cholesky": (lambda ops, a: ops.cholesky(a), [(n, n)], 4 * n**3 + 2 * n * n),
    "triangular solve": (
        lambda ops, a, b: ops.solve_triangular(a, b),
        [(n, n), (n, k)],
        n * n * k + 2 * n * n * k + n * n,
    ),
    "sum": (lambda ops, x: ops.sum(x, axis=0), [(m, n)], 0),
    "x + y": (lambda ops, x, y: x + y, [(m, n), (n,)], (m - 1) * n),
    "x · y": (lambda ops, x, y: x * y, [(n,), (n,)], 2 * n),
    "x · x": (lambda ops, x: x * x, [(n,)], 3 * n),
    "x / y": (lambda ops, x, y: x / y, [(n,), (n,)], 4 * n),
    "exp": (lambda ops, x: ops.exp(x), [(n,)], n),
    "sqrt": (lambda ops, x: ops.sqrt(x), [(n,)], 2 * n),
    "slice": (lambda ops, x: x[1:], [(n,)], 0),
    "of a function that does not use it": (lambda ops, x: ops.zeros((n,)), [(k,)], 0),
}


@pytest.mark.parametrize("name", ADJOINTS)
def test_adjoint_costs_what_its_formula_says(name: str) -> None:
    function, shapes, wanted = ADJOINTS[name]
    forward = counted(lambda ops, *xs: ops.sum(function(ops, *xs)), *shapes)[0]
    assert counted(gradient(function), *shapes)[0] - forward == wanted


def test_no_adjoint_is_computed_for_a_constant() -> None:
    def in_the_left_factor(ops: Ops, a: Array, b: Array) -> Any:
        return ops.value_and_grad(lambda a: ops.sum(a @ ops.exp(b)))(a)

    assert counted(in_the_left_factor, (m, k), (k, n))[0] == 2 * 2 * m * k * n + k * n + m * n - 1


# --- memory ----------------------------------------------------------------------------------------


def chain(ops: Ops, x: Array) -> Array:
    for _ in range(20):
        x = ops.exp(x)
    return x


def test_memory_is_given_back_when_nothing_refers_to_it() -> None:
    assert counted(chain, (1000,))[2] == NUMBER * 3 * 1000  # the start, and two at a time


def test_a_view_keeps_its_array() -> None:
    def first(ops: Ops) -> Array:
        row = ops.zeros((1000, 10))[0]
        return row + ops.zeros((10,))

    assert counted(first)[2] == NUMBER * (1000 * 10 + 10 + 10)


def test_reverse_mode_keeps_what_its_adjoints_need_and_frees_it_on_the_way() -> None:
    def shifts(ops: Ops, x: Array) -> Array:
        for _ in range(20):
            x = x + 1.0
        return x

    kept = counted(gradient(chain), (1000,))[2] / (NUMBER * 1000)
    assert 22 <= kept <= 23.01  # the start, 20 values, and a cotangent with its successor
    nothing = counted(gradient(shifts), (1000,))[2] / (NUMBER * 1000)
    assert nothing <= 3.01


@pytest.mark.parametrize("name", ADJOINTS)
def test_a_gradient_leaves_no_memory_behind(name: str) -> None:
    function, shapes, _ = ADJOINTS[name]
    ops: Any = new_backend("counting")
    gradient(function)(ops, *[ops.zeros(shape) for shape in shapes])
    assert not any(ops.count(lambda: None)[1])


# --- loops -----------------------------------------------------------------------------------------


def advance(ops: Ops, c: tuple[Array, Array], x: Array) -> tuple[Array, Array]:
    mean, total = c
    mean = 0.5 * mean + x
    return mean, total + ops.sum(mean * mean)


@pytest.mark.parametrize("length", [1, 2, 3, 50])
def test_scan_counts_what_a_loop_in_python_does(length: int) -> None:
    def looped(ops: Ops, xs: Array) -> Any:
        carry = (ops.zeros((1000,)), ops.zeros(()))
        for i in range(length):
            carry = advance(ops, carry, xs[i])
        return carry

    def scanned(ops: Ops, xs: Array) -> Any:
        start = (ops.zeros((1000,)), ops.zeros(()))
        return ops.scan(lambda c, x: advance(ops, c, x), start, xs, length=length)

    one, other = counted(looped, (length, 1000)), counted(scanned, (length, 1000))
    assert one[:2] == other[:2]
    # the caller of `scan` keeps the start while the loop runs
    assert one[2] <= other[2] <= one[2] + NUMBER * 1001


def test_scans_within_scans_multiply() -> None:
    def inner(ops: Ops, c: Array) -> Array:
        return ops.scan(lambda c, _: ops.exp(c), c, (), length=7)

    def outer(ops: Ops, c: Array) -> Array:
        return ops.scan(lambda c, _: inner(ops, c), c, (), length=5)

    assert counted(outer, (n,))[0] == 5 * 7 * n
    assert counted(lambda ops, c: ops.scan(lambda c, _: ops.exp(c), c, (), length=0), (n,))[0] == 0


def test_while_loop_counts_its_condition_once_and_no_turn() -> None:
    def loop(ops: Ops, x: Array) -> Array:
        return ops.while_loop(lambda c: ops.sum(c) > 0.0, ops.exp, x)

    assert counted(loop, (n,))[0] == (n - 1) + 1
