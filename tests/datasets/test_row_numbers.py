"""Row numbers and ids among the inputs are found in any order, unit and offset; genuine inputs are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from planted import raised, table

from svgpbench_datasets.audit.facts import Flag

Numbers = np.ndarray[Any, Any]
Random = np.random.Generator
Column = Callable[[Random, int], Numbers]

N = 300


def numbered(X: Numbers, y: Numbers) -> list[Flag]:
    return [flag for flag in raised(table(X, y)) if flag.kind == "row-number-input"]


def drifting(random: Random, n: int, x: Numbers) -> Numbers:
    """A target that depends on an input and drifts from row to row."""
    return np.asarray(np.sin(x) + 0.3 * np.cumsum(random.standard_normal(n)))


def beside_inputs(
    column: Column, *, seed: int, shuffled: bool, drifts: bool, n: int = N
) -> list[Flag]:
    """Flags of a column that is made beside two genuine inputs."""
    random = np.random.default_rng(seed)
    inputs = np.column_stack([random.uniform(0, 10, n), random.standard_normal(n)])
    y = drifting(random, n, inputs[:, 0]) if drifts else np.sin(inputs[:, 0]) + inputs[:, 1]
    X = np.column_stack([inputs, column(random, n)])
    rows = random.permutation(n) if shuffled else np.arange(n)
    return numbered(X[rows], y[rows])


def with_gaps(random: Random, n: int) -> Numbers:
    return np.cumsum(random.integers(1, 5, n)).astype(float)


def filtered(random: Random, n: int) -> Numbers:
    return np.sort(random.choice(int(1.2 * n), n, replace=False)).astype(float)


ROW_NUMBERS: dict[str, Column] = {
    "from 0": lambda random, n: np.arange(n, dtype=float),
    "from 1": lambda random, n: np.arange(1.0, n + 1),
    "scaled and shifted": lambda random, n: 0.37 * np.arange(n) - 12.5,
    "standardised and rounded": lambda random, n: np.round((np.arange(n) - n / 2) / 86.6, 6),
    "falling": lambda random, n: -np.arange(n, dtype=float),
}
IDS: dict[str, Column] = {
    "gaps": with_gaps,
    "filtered": filtered,
    "gaps, scaled": lambda random, n: 0.37 * with_gaps(random, n) + 5,
    "gaps, rounded": lambda random, n: np.round(with_gaps(random, n) / 217.0, 5),
    "gaps, falling": lambda random, n: 1e6 - with_gaps(random, n),
    "codes": lambda random, n: 7_000_000 + 10 * with_gaps(random, n),
    "two rows repeated": lambda random, n: np.append(with_gaps(random, n - 2), [3.0, 40.0]),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("drifts", [True, False])
@pytest.mark.parametrize("shuffled", [True, False])
@pytest.mark.parametrize("column", ROW_NUMBERS)
def test_a_row_number_is_a_leak_in_any_order(
    column: str, shuffled: bool, drifts: bool, seed: int
) -> None:
    (flag,) = beside_inputs(ROW_NUMBERS[column], seed=seed, shuffled=shuffled, drifts=drifts)
    assert flag.leak
    words = "numbers the rows in another order" if shuffled else "counts the rows"
    assert flag.text.startswith(f"x2 {words}")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("column", IDS)
def test_an_id_with_gaps_is_a_leak_in_order_and_where_the_target_follows_it(
    column: str, seed: int
) -> None:
    (flag,) = beside_inputs(IDS[column], seed=seed, shuffled=False, drifts=False)
    assert (flag.leak, "rises or falls with every row" in flag.text) == (True, True)
    (flag,) = beside_inputs(IDS[column], seed=seed, shuffled=True, drifts=True)
    assert (flag.leak, "is different in each row, as an id is" in flag.text) == (True, True)
    (flag,) = beside_inputs(IDS[column], seed=seed, shuffled=True, drifts=False)
    assert (flag.leak, "an id is no input" in flag.text) == (False, True)


@pytest.mark.parametrize("n", [20, 40, 60])
def test_few_rows_are_enough_for_an_id_in_order(n: int) -> None:
    (flag,) = beside_inputs(with_gaps, seed=0, shuffled=False, drifts=False, n=n)
    assert flag.leak
    assert beside_inputs(with_gaps, seed=0, shuffled=True, drifts=False, n=12) == []


def test_ids_with_wide_gaps_are_a_question_until_the_target_is_sorted_by_them() -> None:
    def sparse(random: Random, n: int) -> Numbers:
        return np.sort(random.choice(10**6, n, replace=False)).astype(float)

    (flag,) = beside_inputs(sparse, seed=0, shuffled=False, drifts=True)
    assert (flag.leak, flag.text.endswith("is it an id? an id is no input")) == (False, True)
    random = np.random.default_rng(1)
    inputs = random.standard_normal((N, 2))
    y = np.sort(random.standard_normal(N)) + 0.02 * random.standard_normal(N)
    ids = sparse(random, N)
    (flag,) = numbered(np.column_stack([inputs, ids]), y)
    assert (flag.leak, "(the target is sorted by it)" in flag.text) == (True, True)
    # shuffled, they may be a measurement with a strong effect
    rows = random.permutation(N)
    (flag,) = numbered(np.column_stack([inputs, ids])[rows], y[rows])
    assert (flag.leak, "(the target is sorted by it)" in flag.text) == (False, True)
    assert beside_inputs(sparse, seed=0, shuffled=True, drifts=False) == []


@pytest.mark.parametrize("seed", range(3))
def test_a_target_that_is_sorted_by_a_shuffled_id_is_a_leak(seed: int) -> None:
    random = np.random.default_rng(seed)
    y = np.sort(random.gamma(2.0, 50.0, N)) * (1 + 0.02 * random.standard_normal(N))
    rows = random.permutation(N)
    X = np.column_stack([random.standard_normal(N), with_gaps(random, N)])
    (flag,) = numbered(X[rows], y[rows])
    assert (flag.leak, "(the target is sorted by it)" in flag.text) == (True, True)


GENUINE: dict[str, Column] = {
    "counts": lambda random, n: random.poisson(30, n).astype(float),
    "small integers": lambda random, n: random.integers(0, 100, n).astype(float),
    "integers with few repeats": lambda random, n: random.integers(0, 10 * n, n).astype(float),
    "large integers": lambda random, n: random.integers(1000, 900_000, n).astype(float),
    "populations": lambda random, n: np.rint(np.exp(random.normal(12, 2, n))),
    "years": lambda random, n: 1990.0 + np.arange(n) // 12,
    "months": lambda random, n: np.arange(n) % 12.0,
    "cents": lambda random, n: np.round(random.uniform(0, 10, n), 2),
    "real": lambda random, n: random.standard_normal(n),
    "real, in order": lambda random, n: np.sort(random.standard_normal(n)),
    "irregular times": lambda random, n: np.cumsum(random.exponential(1.0, n)),
    "one-hot": lambda random, n: (random.uniform(size=n) < 0.3).astype(float),
    "constant": lambda random, n: np.full(n, 3.0),
    "groups in order": lambda random, n: np.repeat(np.arange(n // 5), 5).astype(float),
}


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("column", GENUINE)
def test_a_genuine_input_is_not_flagged(column: str, seed: int) -> None:
    for shuffled in (True, False):
        assert beside_inputs(GENUINE[column], seed=seed, shuffled=shuffled, drifts=True) == []


INPUTS: dict[str, Callable[[Random], Numbers]] = {
    "time": lambda random: np.arange(N)[:, None],
    "time with a constant": lambda random: np.column_stack([np.arange(N), np.ones(N)]),
    "time with gaps": lambda random: with_gaps(random, N)[:, None],
    "hours in seconds, shuffled": lambda random: 1.7e9 + 3600.0 * random.permutation(N)[:, None],
    "a line of places": lambda random: np.linspace(0, 1, N)[:, None],
    "a Latin hypercube": lambda random: np.column_stack([random.permutation(N) for _ in range(3)]),
}


@pytest.mark.parametrize("inputs", INPUTS)
def test_inputs_that_all_number_the_rows_are_a_question(inputs: str) -> None:
    random = np.random.default_rng(0)
    X = np.asarray(INPUTS[inputs](random), float)
    (flag,) = numbered(X, np.sin(np.arange(N) / 9.0))
    assert not flag.leak
    assert "is it a time or a place? a row number or an id is no input" in flag.text


def test_a_grid_is_neither_a_row_number_nor_an_id() -> None:
    random = np.random.default_rng(0)
    axes = np.meshgrid(np.arange(20.0), np.linspace(0, 1, 15), indexing="ij")
    X = np.column_stack([axis.ravel() for axis in axes])
    assert numbered(X, random.standard_normal(N)) == []


def test_rows_that_are_sorted_by_a_target_with_a_heavy_tail_are_noted() -> None:
    random = np.random.default_rng(0)
    y = np.sort(np.exp(4.0 * random.standard_normal(N)))
    assert abs(np.corrcoef(np.arange(N), y)[0, 1]) < 0.3
    flags = {flag.kind: flag.text for flag in raised(table(random.standard_normal((N, 2)), y))}
    assert "row number and target go together (1.00)" in flags["ordered-by-target"]
