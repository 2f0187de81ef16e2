"""Loops and compilation of `Ops`, on every backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from svgpbench.checks.kit.numbers import Parts, assert_same, numbers, positive_definite
from svgpbench.ops import Array, Ops


def as_it_is(f: Any) -> Any:
    """Return the function unchanged, as `jit` of a backend without compilation does."""
    return f


def test_scan_equals_a_loop_with_and_without_xs(typed: Ops) -> None:
    start = (typed.asarray(np.array([1.0, 2.0])), (typed.zeros(()), ()))
    rows, shifts = numbers(5, 2), numbers(5)

    def with_xs(carry: Any, x: Any) -> Any:
        a, (total, empty) = carry
        row, shift = x
        return 0.5 * a + row, (total + shift * typed.sum(a), empty)

    def without(carry: Any, _: Any) -> Any:
        a, (total, empty) = carry
        return 0.5 * a, (total + typed.sum(a), empty)

    a, total, b, plain = np.array([1.0, 2.0]), 0.0, np.array([1.0, 2.0]), 0.0
    for row, shift in zip(rows, shifts, strict=True):
        a, total = 0.5 * a + row, total + shift * a.sum()
        b, plain = 0.5 * b, plain + b.sum()
    xs = (typed.asarray(rows), typed.asarray(shifts))
    for wrap in (typed.jit, as_it_is):
        got, (got_total, empty) = wrap(lambda c, x: typed.scan(with_xs, c, x, length=5))(start, xs)
        assert_same(typed, got, a, units=64)
        assert_same(typed, got_total, total, units=64)
        assert empty == ()
        got, (got_total, _) = wrap(lambda c: typed.scan(without, c, (), length=5))(start)
        assert_same(typed, got, b, units=64)
        assert_same(typed, got_total, plain, units=64)


def test_compiled_and_plain_functions_agree(typed: Ops) -> None:
    A = typed.asarray(positive_definite(2, 4, 4))

    def f(a: Array) -> tuple[Array, Array]:
        L = typed.cholesky(a)
        return L, typed.solve_triangular(L, a)

    for plain, compiled in zip(f(A), typed.jit(f)(A), strict=True):
        assert_same(typed, compiled, typed.to_numpy(plain).astype(np.float64), units=64)


# --- while_loop ------------------------------------------------------------------------------------


def below(ops: Ops, limit: float) -> Any:
    """Return a loop that doubles `used` and counts its turns while the sum is below a limit."""

    def condition(carry: Parts) -> Array:
        return ops.sum(carry.used) < limit

    def step(carry: Parts) -> Parts:
        return Parts(2.0 * carry.used, carry.unused, (carry.nested[0] + 1.0, ()))

    return lambda carry: ops.while_loop(condition, step, carry)


@pytest.mark.parametrize(("limit", "turns"), [(0.0, 0), (3.0, 0), (3.5, 1), (90.0, 5)])
def test_while_loop_turns_as_often_as_its_condition_holds(
    moded: Ops, limit: float, turns: int
) -> None:
    start = Parts(moded.asarray(np.array([1.0, 2.0])), (), (moded.zeros(()), ()))
    for wrap in (moded.jit, as_it_is):
        got = wrap(below(moded, limit))(start)
        assert isinstance(got, Parts)
        assert_same(moded, got.used, 2.0**turns * np.array([1.0, 2.0]))
        assert_same(moded, got.nested[0], float(turns))
        assert got.unused == got.nested[1] == ()


def test_while_loop_inside_scan_starts_anew_in_each_turn(moded: Ops) -> None:
    """Each turn adds a number, then halves the sum until it is below 1."""

    def settle(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        return moded.while_loop(lambda c: c[0] >= 1.0, lambda c: (0.5 * c[0], c[1] + 1.0), carry)

    def step(carry: tuple[Array, Array], x: Array) -> tuple[Array, Array]:
        return settle((carry[0] + x, carry[1]))

    xs = np.array([0.3, 5.0, 0.1, 0.7, 9.0])
    total, count = 0.0, 0
    for x in xs:
        total += x
        while total >= 1.0:
            total, count = 0.5 * total, count + 1
    start = (moded.zeros(()), moded.zeros(()))
    for wrap in (moded.jit, as_it_is):
        got = wrap(lambda c, xs: moded.scan(step, c, xs, length=5))(start, moded.asarray(xs))
        assert_same(moded, got[0], total)
        assert_same(moded, got[1], float(count))
    assert count == 8


def test_while_loop_keeps_the_dtype(typed: Ops) -> None:
    start = Parts(typed.asarray(np.array([1.0, 2.0])), (), (typed.zeros(()), ()))
    got = typed.jit(below(typed, 90.0))(start)
    assert_same(typed, got.used, [32.0, 64.0])
    assert_same(typed, got.nested[0], 5.0)
