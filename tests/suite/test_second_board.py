"""The board's numbers against a second implementation, on random tables and on the shipped outcomes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from outcome_tables import random_outcomes
from second_board import SecondBoard, pairs_of

from svgpbench.suite.board import FACTORS, Board
from svgpbench.suite.outcomes import SHIPPED, Outcomes
from svgpbench.suite.schema import load_suite

REL = 1e-9
TABLES = 12


def close(one: float, other: float) -> bool:
    """Return True for numbers that differ by rounding; NaN is as NaN."""
    return (math.isnan(one) and math.isnan(other)) or one == pytest.approx(other, rel=REL, abs=REL)


def as_dict(column: pd.Series[float]) -> dict[str, float]:
    return {str(k): float(v) for k, v in column.items() if not math.isnan(v)}


def assert_agree(
    outcomes: Outcomes, candidates: Sequence[str], references: tuple[str, ...]
) -> None:
    """Compare every number of both boards."""
    board = Board(outcomes, candidates)
    second = SecondBoard(outcomes.runs, outcomes.trials, references)
    assert board.problems == second.problems
    assert sorted(board.silent) == sorted(second.silent)
    assert set(board.entrants) == set(second.entrants)
    ranks, shares, early = board.ranks(), board.shares(), board.shares("nlpd_tenth")
    losses, defaults = board.losses(), board.default_rates()
    prices = board.default_prices()
    in_order = board.rows()
    rows = {row.entrant: row for row in in_order}
    assert [x.rank.mean for x in in_order] == sorted(x.rank.mean for x in in_order)
    for name in board.entrants:
        assert as_dict(ranks[name]) == second.ranks(name)
        taken = second.taken(name)
        assert rows[name].problems == len(taken)
        assert as_dict(losses[name]) == pytest.approx(
            {p: second.mean_nlpd(name, p) for p in taken}, rel=REL
        )
        assert as_dict(shares[name]) == pytest.approx(second.shares(name), rel=REL, abs=REL)
        tenth = second.shares(name, "nlpd_tenth")
        assert as_dict(early[name]) == pytest.approx(tenth, rel=REL, abs=REL)
        for found, values in (
            (rows[name].rank, second.ranks(name)),
            (rows[name].share, second.shares(name)),
            (rows[name].share_tenth, tenth),
        ):
            wanted = second.estimate(values)
            assert all(close(a, b) for a, b in zip(found, wanted, strict=True)), (found, wanted)
        for factor in FACTORS:
            assert close(rows[name].within[factor], second.fast(name, factor))
        assert close(rows[name].finished_90, second.finished(name, "seconds_90"))
        assert close(rows[name].finished_99, second.finished(name, "seconds_99"))
        assert defaults.get(name) == second.default_rates(name, None)
        assert close(rows[name].default_price, second.untuned(name))
        if name in prices:
            assert as_dict(prices[name]) == pytest.approx(second.prices(name), rel=REL, abs=REL)
    for one, other in pairs_of(second):
        pair = board.pair(one, other)
        assert (pair.better, pair.level, pair.worse) == second.pair(one, other)
        wanted = second.probability(one, other)
        assert all(close(a, b) for a, b in zip(pair.probability, wanted, strict=True))


@pytest.mark.parametrize("seed", range(TABLES))
def test_random_tables_have_the_same_board(seed: int) -> None:
    outcomes, candidates = random_outcomes(seed)
    if seed % 2:  # as tables that were put together may be
        outcomes = Outcomes(*(x.set_axis(x.index // 2) for x in outcomes))
    assert_agree(outcomes, candidates, ("R",))


def test_a_board_of_one_fold_has_no_intervals_over_folds() -> None:
    outcomes, candidates = random_outcomes(3, folds=1)
    assert_agree(outcomes, candidates, ("R",))


def test_random_tables_have_everything_that_goes_wrong() -> None:
    """So that the comparison above sees it."""
    tables = [random_outcomes(seed) for seed in range(TABLES)]
    runs = pd.concat([x.runs.assign(table=i) for i, (x, _) in enumerate(tables)])
    assert {"ok", "diverged", "timeout", "no trial finished"} == set(runs["status"])
    assert np.isinf(runs["seconds_90"]).any() and (runs["entrant"] == "R").any()
    assert ((runs["status"] == "ok") & runs["nlpd"].isna()).any()
    boards = [Board(*table) for table in tables]
    assert all(board.silent for board in boards)
    assert any(len(board.problems) < 5 for board in boards)
    assert any((board.ranks() % 1 == 0.5).to_numpy().any() for board in boards)
    assert any(board.ranks().isna().to_numpy().any() for board in boards)
    counts = [board.pair(a, b) for board in boards for a, b in [board.entrants[:2]]]
    assert any(x.better for x in counts) and any(x.worse for x in counts)
    assert any(x.level for x in counts)
    assert any(len(set(board.default_rates().values())) > 1 for board in boards)


def test_the_shipped_outcomes_have_the_same_board() -> None:
    if SHIPPED.is_dir():
        outcomes, suite = Outcomes.read(), load_suite()
        references = tuple(x.label for x in suite.entrants if x.reference)
        assert_agree(outcomes, [x.label for x in suite.entrants if not x.reference], references)
