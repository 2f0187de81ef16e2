"""Grids and ladders decide each way that their rules allow."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from planted_frames import Values, around, planted, reversed_around, together
from planted_grades import MIXED, NO, OPEN, YES, judged
from planted_traces import NOT_REACHED, converging
from pydantic import ValidationError
from scipy import stats

from svgpbench.papers.grades import Grade


def ended(*cells: tuple[Values, Values]) -> pd.DataFrame:
    """The bound of A and of B, on 80 rows, in some cells of a grid: it matters beyond 0.08."""
    return together(
        *(
            planted({"A": a, "B": b}, "elbo", units="seed", data=f"cell {at}")
            for at, (a, b) in enumerate(cells)
        )
    )


HIGHER, LOWER, LEVEL = ([1.0], [0.0]), ([0.0], [1.0]), ([0.0], [0.05])
EITHER, DEAD = ([1.0, 0.0], [0.0, 1.0]), ([None], [0.0])


@pytest.mark.parametrize(
    ("cells", "better", "equal", "worse", "no_worse"),
    [
        ((HIGHER,), YES, NO, NO, YES),
        ((LOWER,), NO, NO, YES, NO),
        ((LEVEL,), NO, YES, NO, YES),
        ((EITHER,), OPEN, OPEN, OPEN, OPEN),
        ((DEAD,), NO, NO, YES, NO),
        ((HIGHER, HIGHER, LOWER), MIXED, NO, NO, MIXED),
        ((HIGHER, LEVEL), MIXED, MIXED, NO, YES),
        ((LEVEL, LEVEL, EITHER), NO, YES, NO, YES),
        ((LEVEL, LEVEL, HIGHER), NO, MIXED, NO, YES),
    ],
)
def test_every_run(
    cells: tuple[tuple[Values, Values], ...],
    better: Grade,
    equal: Grade,
    worse: Grade,
    no_worse: Grade,
) -> None:
    asked = {"better": better, "equal": equal, "worse": worse, "no worse": no_worse}
    for wanted, verdict in asked.items():
        keys = {"metric": "elbo", "methods": ["A", "B"], "wanted": wanted}
        assert judged(ended(*cells), "every-run", **keys).grade == verdict, wanted


def test_one_draw_decides_without_an_interval() -> None:
    (effect,) = judged(ended(HIGHER), "every-run", metric="elbo", methods=["A", "B"]).effects
    assert (effect.outcome, effect.low, effect.value, effect.high) == ("better", 1.0, 1.0, 1.0)


def test_of_several_runs_the_median_is_shown_between_the_least_and_the_most() -> None:
    frame = ended(([1.0, 2.0, 9.0], [0.0, 0.0, 0.0]))
    (effect,) = judged(frame, "every-run", metric="elbo", methods=["A", "B"]).effects
    assert (effect.low, effect.value, effect.high) == (1.0, 2.0, 9.0)


LADDER = {"M = 10": ("A 10", "B 10"), "M = 20": ("A 20", "B 20"), "M = 50": ("A 50", "B 50")}


def climbed(*losses: float, spread: float = 1e-4, data: str = "a") -> pd.DataFrame:
    """How far A's NLPD lies above B's on each rung, on five splits."""
    values: dict[str, Values] = {}
    for (a, b), loss in zip(LADDER.values(), losses, strict=True):
        values |= {a: around(1.0 + loss, spread), b: reversed_around(1.0, spread)}
    return planted(values, "nlpd")


@pytest.mark.parametrize(
    ("losses", "verdict", "note"),
    [
        ((0.5, 0.2, 0.001), YES, "from M = 50 on"),
        ((0.5, 0.001, 0.001), YES, "from M = 20 on"),
        ((0.001, 0.5, 0.001), YES, "from M = 50 on"),  # what held below does not count
        ((0.001, 0.001, -0.5), YES, "from M = 10 on"),
        ((0.001, 0.001, 0.5), NO, "at M = 50"),
    ],
)
def test_suffices(losses: tuple[float, ...], verdict: Grade, note: str) -> None:
    finding = judged(climbed(*losses), "suffices", metric="nlpd", ladder=LADDER)
    assert finding.grade == verdict
    assert finding.effects[0].note == note


def test_a_ladder_whose_last_rung_is_open_is_open() -> None:
    frame = climbed(0.0, 0.0, 0.02, spread=0.05)
    assert judged(frame, "suffices", metric="nlpd", ladder=LADDER).grade == OPEN


def test_a_ladder_that_holds_on_one_data_set_and_not_on_another_is_partly() -> None:
    sets = [climbed(0.5, 0.1, loss).assign(data=f"set {at}") for at, loss in enumerate((0, 0.5))]
    assert judged(together(*sets), "suffices", metric="nlpd", ladder=LADDER).grade == MIXED


FACTORS = ("N", "M", "minibatch")
OF_M: dict[str, Any] = {"methods": ["A", "B"], "factor": "M", "factors": FACTORS}
Times = Callable[[Mapping[str, float]], tuple[float, float]]


def grid(times: Times, budget: int = 10_000) -> pd.DataFrame:
    """T of A and of B in every cell of a grid of three factors, with a little that no factor explains."""
    cells = []
    levels = itertools.product((100, 1000, 10_000), (10, 100), (0, 1))
    for at, cell in enumerate(dict(zip(FACTORS, level, strict=True)) for level in levels):
        a, b = times(cell)
        wobble = 1.0 + 0.01 * (at % 3 - 1)
        found = converging({"A": [a], "B": [b * wobble]}, f"cell {at}", iterations=budget, **cell)
        cells.append(found)
    return together(*cells)


def by_points(cell: Mapping[str, float]) -> tuple[float, float]:
    return 100.0, 100.0 * cell["M"] / 10  # a tenfold of M, a tenfold of T


def by_batch(cell: Mapping[str, float]) -> tuple[float, float]:
    return (200.0, 100.0) if cell["minibatch"] else (100.0, 100.0)


@pytest.mark.parametrize(
    ("times", "driving"),
    [(by_points, {"M"}), (by_batch, {"minibatch"}), (lambda _: (1.0, 1.0), set())],
)
def test_drives(times: Times, driving: set[str]) -> None:
    for factor, drives in itertools.product(FACTORS, (True, False)):
        keys = OF_M | {"factor": factor, "drives": drives}
        verdict = YES if (factor in driving) == drives else NO
        assert judged(grid(times), "drives", **keys).grade == verdict, factor


def test_the_interval_of_a_coefficient_is_that_of_least_squares() -> None:
    frame = grid(by_points)
    (effect,) = judged(frame, "drives", **OF_M).effects
    cells = frame[frame["method"] == "A"]
    times = [
        math.log(b.iterations[-2] / 100.0) for b in frame.loc[frame["method"] == "B", "bound_trace"]
    ]
    columns = [np.log10(cells["N"]), np.log10(cells["M"]), cells["minibatch"]]
    design = np.column_stack([np.ones(12), *columns])
    found, (rest,), *_ = np.linalg.lstsq(design, np.array(times), rcond=None)
    error = math.sqrt(rest / (12 - 4) * np.linalg.inv(design.T @ design)[2, 2])
    half = stats.t.ppf(0.975, 12 - 4) * error
    np.testing.assert_allclose(
        [effect.value, effect.low, effect.high],
        [found[2], found[2] - half, found[2] + half],
        rtol=1e-9,
    )


def test_a_run_that_never_converges_stands_at_its_own_budget() -> None:
    def censored(cell: Mapping[str, float]) -> tuple[float, float]:
        return (100.0, NOT_REACHED) if cell["M"] == 100 else (100.0, 100.0)

    (effect,) = judged(grid(censored, budget=10_000), "drives", **OF_M).effects
    assert effect.value == pytest.approx(math.log(100), abs=0.011)  # the wobble is of 1 %


def test_a_factor_whose_interval_crosses_the_region_is_undecided() -> None:
    def erratic(cell: Mapping[str, float]) -> tuple[float, float]:
        return 100.0, 100.0 * (1 + (cell["N"] * cell["M"] / 1000) % 7)

    assert judged(grid(erratic), "drives", **OF_M | {"factor": "N"}).grade == OPEN


def test_a_run_that_never_settles_stands_at_its_budget_and_two_tell_nothing() -> None:
    def censored(cell: Mapping[str, float]) -> tuple[float, float]:
        return (NOT_REACHED, NOT_REACHED) if cell["N"] == 100 else (100.0, NOT_REACHED)

    (effect,) = judged(grid(censored, budget=1000), "drives", **OF_M, drives=False).effects
    assert effect.outcome == "leaves alone"
    assert effect.note.startswith("8 cells")


def test_cells_that_do_not_tell_factors_apart_are_undecided() -> None:
    same = grid(by_points)
    same = same[same["N"] == 1000]
    (effect,) = judged(same, "drives", **OF_M).effects
    assert effect.note == "4 cells do not tell the factors apart"


def test_a_failed_cell_is_left_out() -> None:
    frame = grid(by_points)
    frame.loc[0, "status"] = "diverged"
    assert judged(frame, "drives", **OF_M).effects[0].note.startswith("11 cells")


def test_a_factor_is_one_of_its_factors() -> None:
    with pytest.raises(ValidationError, match="factor 'b' is not among its factors"):
        judged(grid(by_points), "drives", **OF_M | {"factor": "b"})
