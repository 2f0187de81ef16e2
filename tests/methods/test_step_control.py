"""Halving a rate until the precision is positive definite, on every backend, compiled and in loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from svgpbench.checks.kit.numbers import Floats, assert_same, positive_definite
from svgpbench.methods.step_control import MOST_HALVINGS, halve_until_positive
from svgpbench.ops import Array, Ops


class State(NamedTuple):
    rate: Array  # []
    precision: Array  # [P, 3, 3]


START = positive_definite(2, 3, 3)
PULL = 50.0 * np.stack([np.eye(3), np.diag([0.0, 0.0, 1.0])])


def towards(ops: Ops, pull: Floats) -> Callable[[Array], tuple[State, Array]]:
    """A step from `START` along −pull, whose precision is positive definite at small rates only."""
    start, direction = ops.asarray(START), ops.asarray(pull)

    def trial(rate: Array) -> tuple[State, Array]:
        precision = start - rate * direction
        return State(rate, precision), ops.cholesky(precision)

    return trial


def halvings_by_eigenvalues(pull: Floats, rate: float) -> int:
    count = 0
    while np.min(np.linalg.eigvalsh(START - rate * pull)) <= 0.0:
        rate, count = 0.5 * rate, count + 1
    return count


@pytest.mark.parametrize(
    ("pull", "turns"),
    [(0.001 * PULL, 0), (PULL * [[[0.0]], [[1.0]]], 6), (PULL * [[[1.0]], [[0.0]]], 7), (PULL, 7)],
    ids=["not at all", "for the second latent", "for the first latent", "for both"],
)
def test_the_first_rate_that_every_latent_can_take(ops: Ops, pull: Floats, turns: int) -> None:
    assert halvings_by_eigenvalues(pull, 1.0) == turns
    for wrap in (ops.jit, lambda f: f):
        run = wrap(lambda rate: halve_until_positive(ops, towards(ops, pull), rate))
        state, count = run(ops.asarray(1.0))
        assert isinstance(state, State)
        assert_same(ops, count, float(turns))
        assert_same(ops, state.rate, 0.5**turns)
        assert_same(ops, state.precision, START - 0.5**turns * pull)


@pytest.mark.parametrize(
    ("pull", "turns"), [(0.001 * PULL, 0), (PULL, 8)], ids=["none", "one more"]
)
def test_a_retreat_halves_once_more_where_there_was_a_halving(
    ops: Ops, pull: Floats, turns: int
) -> None:
    def run(rate: Array) -> tuple[State, Array]:
        return halve_until_positive(ops, towards(ops, pull), rate, extra_halving=True)

    state, count = ops.jit(run)(ops.asarray(1.0))
    assert_same(ops, count, float(turns))
    assert_same(ops, state.precision, START - 0.5**turns * pull)


def test_a_precision_that_no_rate_mends_ends_the_halvings(ops: Ops) -> None:
    def trial(rate: Array) -> tuple[State, Array]:
        precision = ops.asarray(-START) - 0.0 * rate
        return State(rate, precision), ops.cholesky(precision)

    state, count = ops.jit(lambda rate: halve_until_positive(ops, trial, rate))(ops.asarray(1.0))
    assert_same(ops, count, float(MOST_HALVINGS))
    assert_same(ops, state.rate, 0.5**MOST_HALVINGS)


def test_each_step_of_a_loop_has_its_own_halvings(ops: Ops) -> None:
    """An E-phase is a scan over steps: rates start anew, and the counts add up."""
    rates = np.array([1.0, 1e-4, 0.25])

    def step(total: Array, rate: Array) -> Array:
        return total + halve_until_positive(ops, towards(ops, PULL), rate)[1]

    run = ops.jit(lambda xs: ops.scan(step, ops.zeros(()), xs, length=3))
    wanted = [halvings_by_eigenvalues(PULL, rate) for rate in rates]
    assert wanted == [7, 0, 5]
    assert_same(ops, run(ops.asarray(rates)), float(sum(wanted)))
