"""The board of three entrants on four problems with two folds, computed by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_rel
from small_suite import small_suite

from svgpbench.config import RatePair
from svgpbench.results.records import Record
from svgpbench.suite.board import Board, Estimate, fold_interval, over_problems
from svgpbench.suite.cells import read_iterations
from svgpbench.suite.figure import draw_board
from svgpbench.suite.findings import _verdict, findings, findings_on
from svgpbench.suite.outcomes import Outcomes, reached
from svgpbench.suite.protocol import best_rates
from svgpbench.suite.schema import SuiteFiles, load_suite
from svgpbench.suite.step_times import (
    iterations_of,
    read_step_times,
    step_times,
    two_digits,
    write_times,
)
from svgpbench.suite.tables import (
    board_table,
    detailed_tables,
    entrant_table,
    legend,
    pairs_table,
)

INF, NAN = math.inf, math.nan

# problem, entrant, fold, NLPD at the end and at a tenth, seconds to 90 % and 99 %. NaN: the run failed.
# The constant prediction has 2 everywhere; the best known is 1 on "tie", 0 on "failed" and "missing".
RUNS = [
    ("tie", "A", 0, 1.0, 1.5, 2.0, 8.0),
    ("tie", "A", 1, 1.0, 2.5, 4.0, INF),
    ("tie", "B", 0, 1.0, 1.0, 1.0, 4.0),
    ("tie", "B", 1, 1.0, 1.0, 1.0, 2.0),
    ("tie", "C", 0, 3.0, 4.0, INF, INF),
    ("tie", "C", 1, 1.5, 4.0, INF, INF),
    ("failed", "A", 0, 0.0, 1.0, 1.0, 1.0),
    ("failed", "A", 1, 0.0, 1.0, INF, INF),
    ("failed", "B", 0, 0.0, 0.0, 1.1, 2.0),
    ("failed", "B", 1, NAN, NAN, NAN, NAN),
    ("failed", "C", 0, 1.0, 2.0, INF, INF),
    ("failed", "C", 1, 1.0, 2.0, INF, INF),
    ("missing", "A", 0, 1.0, 2.0, INF, INF),
    ("missing", "A", 1, 1.1, 2.0, INF, INF),
    ("missing", "C", 0, 0.0, 1.0, 3.0, INF),
    ("missing", "C", 1, 0.0, 1.0, 3.0, INF),
    ("silent", "A", 0, 1.992, 2.0, 1.0, 1.0),
    ("silent", "A", 1, 1.99, 2.0, 1.0, 1.0),
    ("silent", "B", 0, 2.5, 2.0, 1.0, 1.0),
    ("silent", "B", 1, 2.5, 2.0, 1.0, 1.0),
]
BEST = {"tie": 1.0, "failed": 0.0, "missing": 0.0}

# problem, entrant, stage, rates, NLPD of a trial; NaN: it failed
TRIALS = [
    ("tie", "A", 1, 0.1, 0.01, 1.5),  # share 0.5
    ("tie", "A", 1, 0.1, 0.1, 1.0),  # 1
    ("tie", "A", 1, 1.0, 0.01, 3.0),  # 0, as it is below 0
    ("tie", "A", 2, 1.0, 0.01, 0.0),  # of the second round: does not count
    ("failed", "A", 1, 0.1, 0.01, 1.0),  # 0.5
    ("failed", "A", 1, 0.1, 0.1, NAN),  # 0
    ("failed", "A", 1, 1.0, 0.01, 0.5),  # 0.75
    ("missing", "A", 1, 0.1, 0.01, 1.0),  # 0.5
    ("missing", "A", 1, 0.1, 0.1, 1.5),  # 0.25
    ("missing", "A", 1, 1.0, 0.01, 1.0),  # 0.5
    ("silent", "A", 1, 1.0, 0.01, -9.0),  # has no vote
]


def outcomes() -> Outcomes:
    columns = ("problem", "entrant", "fold", "nlpd", "nlpd_tenth", "seconds_90", "seconds_99")
    runs = pd.DataFrame(RUNS, columns=columns)
    runs["status"] = np.where(runs["nlpd"].isna(), "diverged", "ok")
    runs["constant_nlpd"] = 2.0
    least = runs.groupby(["problem", "fold"])["nlpd"].transform("min")
    runs["best_nlpd"] = runs["problem"].map(BEST).fillna(least)
    runs["ms"] = runs["entrant"].map({"A": 2.0, "B": 6.0, "C": 1.0})
    trials = pd.DataFrame(
        TRIALS, columns=("problem", "entrant", "stage", "e_rate", "m_rate", "nlpd")
    )
    trials["status"] = np.where(trials["nlpd"].isna(), "diverged", "ok")
    return Outcomes(runs, trials)


@pytest.fixture(scope="module")
def board() -> Board:
    return Board(outcomes(), ["A", "B", "C", "nobody"])


def table(frame: pd.DataFrame) -> dict[str, list[float]]:
    return {str(name): [float(x) for x in column] for name, column in frame.items()}


def test_a_problem_votes_from_a_hundredth_of_a_nat_on(board: Board) -> None:
    """Gains of 0.008 and 0.01 are 0.009 on average."""
    assert (board.problems, board.silent) == (["tie", "failed", "missing"], ["silent"])
    assert board.entrants == ["A", "B", "C"]
    runs = outcomes().runs
    more = runs.assign(constant_nlpd=runs["constant_nlpd"] + 0.002 * (runs["problem"] == "silent"))
    assert "silent" in Board(Outcomes(more, outcomes().trials), ["A"]).problems


def test_a_fold_with_a_failure_counts_as_much_as_another_in_whether_a_problem_votes() -> None:
    """Gains of 0.03 and −0.012 are 0.009 on average, also if one of two runs on the second has none."""
    runs = outcomes().runs
    runs.loc[runs["problem"] == "silent", "best_nlpd"] = [1.97, 2.012, 1.97, 2.012]
    runs.loc[len(runs) - 1, ["status", "nlpd", "constant_nlpd"]] = ["timeout", NAN, NAN]
    assert Board(Outcomes(runs, outcomes().trials), ["A", "B"]).silent == ["silent"]


def test_losses_ranks_and_shares(board: Board) -> None:
    wanted = {"A": [1.0, 0.0, 1.05], "B": [1.0, INF, NAN], "C": [2.25, 1.0, 0.0]}
    found = table(board.losses())
    assert found == {name: pytest.approx(x, nan_ok=True) for name, x in wanted.items()}
    ranks = {"A": [1.5, 1.0, 2.0], "B": [1.5, 3.0, NAN], "C": [3.0, 2.0, 1.0]}
    assert table(board.ranks()) == {x: pytest.approx(y, nan_ok=True) for x, y in ranks.items()}
    # C is worse than the constant prediction on a fold: −1 counts as 0, before the mean over folds
    shares = {"A": [1.0, 1.0, 0.475], "B": [1.0, 0.5, NAN], "C": [0.25, 0.5, 1.0]}
    assert table(board.shares()) == {x: pytest.approx(y, nan_ok=True) for x, y in shares.items()}
    early = {"A": [0.25, 0.5, 0.0], "B": [1.0, 0.5, NAN], "C": [0.0, 0.0, 0.5]}
    found = table(board.shares("nlpd_tenth"))
    assert found == {x: pytest.approx(y, nan_ok=True) for x, y in early.items()}


def test_a_new_entrant_s_share_may_exceed_one_and_no_gain_is_no_share() -> None:
    runs = outcomes().runs
    better = runs.assign(best_nlpd=runs["best_nlpd"].where(runs["problem"] != "tie", 1.5))
    assert Board(Outcomes(better, outcomes().trials), ["A"]).shares()["A"]["tie"] == 2.0
    # on fold 1 the best known is worse than the constant prediction: nobody gains, however bad
    on = (runs["problem"] == "tie") & (runs["fold"] == 1)
    bad = runs.assign(
        best_nlpd=runs["best_nlpd"].mask(on, 2.1), nlpd=runs["nlpd"].mask(on, [2.1] * len(runs))
    )
    shares = Board(Outcomes(bad, outcomes().trials), ["A", "B", "C"]).shares()
    assert list(shares.loc["tie"]) == [0.5, 0.5, 0.0]


def test_a_profile_is_of_the_tasks_that_somebody_finishes(board: Board) -> None:
    """At 90 %: tie 0 and 1, failed 0, missing 0 and 1. On failed 1 nobody comes there."""
    factors = board.factors("seconds_90")
    assert [(str(p), int(f)) for p, f in factors.index] == [
        ("tie", 0),
        ("tie", 1),
        ("failed", 0),
        ("missing", 0),
        ("missing", 1),
    ]
    wanted = {
        "A": [2.0, 4.0, 1.0, INF, INF],
        "B": [1.0, 1.0, 1.1, NAN, NAN],
        "C": [INF, INF, INF, 1.0, 1.0],
    }
    assert table(factors) == {x: pytest.approx(y, nan_ok=True) for x, y in wanted.items()}
    rows = {row.entrant: row for row in board.rows()}
    assert rows["A"].within == {1.1: 0.2, 1.5: 0.2, 2.0: 0.4, 4.0: 0.6}
    # tasks of a problem in which it took no part are no loss of B
    assert rows["B"].within == {1.1: 1.0, 1.5: 1.0, 2.0: 1.0, 4.0: 1.0}
    assert rows["C"].within == {1.1: 0.4, 1.5: 0.4, 2.0: 0.4, 4.0: 0.4}
    # of all its own tasks, also where nobody else comes there
    assert [rows[x].finished_90 for x in "ABC"] == pytest.approx([3 / 6, 3 / 4, 2 / 6])
    assert [rows[x].finished_99 for x in "ABC"] == pytest.approx([2 / 6, 3 / 4, 0.0])


def test_a_reference_is_no_entrant_and_is_not_the_fastest() -> None:
    """With A as the reference, B is the fastest and there is none but C on the third problem."""
    runs, trials = outcomes()
    searched = pd.concat([trials.assign(entrant=x) for x in "BC"])  # a reference searches no rates
    board = Board(Outcomes(runs, searched), ["B", "C"])
    assert not Board(Outcomes(runs, trials), ["B", "C"]).references().keys() & {"A"}
    assert table(board.ranks()) == {
        "B": pytest.approx([1.0, 2.0, NAN], nan_ok=True),
        "C": [2.0, 1.0, 1.0],
    }
    assert list(board.factors("seconds_90")["B"])[:3] == [1.0, 1.0, 1.0]
    (shares,) = board.references().values()
    assert shares.to_dict() == pytest.approx({"tie": 1.0, "failed": 1.0, "missing": 0.475})
    lost = (runs["entrant"] == "A") & (runs["problem"] == "tie")
    failed = Outcomes(runs.assign(status=runs["status"].mask(lost, "diverged")), searched)
    assert Board(failed, ["B", "C"]).references()["A"]["tie"] == 0.0
    assert board.problems == ["tie", "failed", "missing"]


def test_rows_are_ordered_by_rank_and_count_what_failed(board: Board) -> None:
    rows = board.rows()
    assert [row.entrant for row in rows] == ["A", "C", "B"]
    assert [row.problems for row in rows] == [3, 3, 2]
    assert [row.rank.mean for row in rows] == pytest.approx([1.5, 2.0, 2.25])
    assert [row.failed_runs for row in rows] == pytest.approx([0.0, 0.0, 1 / 4])
    assert rows[0].failed_trials == pytest.approx(1 / 11)  # also of problems without a vote
    assert math.isnan(rows[1].failed_trials)
    # of A, the first, on the problems of both
    assert [row.ms for row in rows] == pytest.approx([1.0, 0.5, 3.0])


def test_pairs_of_entrants(board: Board) -> None:
    """On "tie" both folds of A and B are equal; on "failed" B failed; on "missing" B took no part."""
    pair = board.pair("A", "B")
    assert (pair.better, pair.level, pair.worse) == (1, 1, 0)
    assert board.pair("B", "A")[2:] == (0, 1, 1)
    # A − C: −2 and −0.5; −1 and −1; 1 and 1.1, whose interval contains 0 as folds share training rows:
    # 12.7 · 0.071 · √(1/2 + 1) = 1.1, and 0.64 with √(1/2)
    assert board.pair("A", "C")[2:] == (1, 2, 0)
    assert board.pair("C", "A")[2:] == (0, 2, 1)
    # on "failed", B has a failed fold and C has none
    assert board.pair("C", "B")[2:] == (1, 1, 0)
    two = board.pair("A", "B").probability
    assert two.mean == 0.75
    # Jeffreys' posterior Beta(2, 1) has the distribution function x²
    assert (two.low, two.high) == pytest.approx((math.sqrt(0.025), math.sqrt(0.975)))


def test_where_both_failed_they_are_level_and_a_missing_score_is_a_failure() -> None:
    runs = outcomes().runs
    one = (runs["problem"] == "failed") & (runs["entrant"] == "A") & (runs["fold"] == 0)
    for failure in ({"status": "timeout"}, {"nlpd": NAN}):
        changed = runs.copy()
        for column, value in failure.items():
            changed.loc[one, column] = value
        board = Board(Outcomes(changed, outcomes().trials), ["A", "B", "C"])
        assert board.losses().loc["failed", "A"] == INF
        assert board.pair("A", "B")[2:] == (0, 2, 0)
        assert board.pair("A", "C")[2:] == (0, 2, 1)


def test_entrants_without_a_common_problem_are_not_compared() -> None:
    runs = outcomes().runs
    apart = runs[(runs["entrant"] == "B") != (runs["problem"] == "missing")]
    board = Board(Outcomes(apart[apart["entrant"] != "A"], outcomes().trials), ["B", "C"])
    pair = board.pair("B", "C")
    assert pair[2:] == (0, 0, 0)
    assert pair.probability.mean == 0.5
    assert pair.probability.low < 0.01 and pair.probability.high > 0.99
    assert "problems" in findings(board)[0] and "probability" not in findings(board)[0]


def test_default_rates_and_their_price(board: Board) -> None:
    """Mean shares without a problem, by pair (0.1, 0.01), (0.1, 0.1), (1, 0.01).

    Without "tie": 0.5, 0.125, 0.625; the third has 0 there and the best 1. Without "failed": 0.5, 0.625,
    0.25; the second has 0 there, the best 0.75. Without "missing": 0.5, 0.5, 0.375; of equal ones, the
    first; it has 0.5 there, as much as the best.
    """
    prices = board.default_prices()
    assert list(prices["A"]) == [1.0, 0.75, 0.0]
    assert board.rows()[0].default_price == 0.75
    # over all three: 0.5, 1.25 / 3, 1.25 / 3
    assert board.default_rates() == {"A": (0.1, 0.01)}


def test_how_often_a_chosen_rate_is_an_end_of_the_grid() -> None:
    """Of q, 1 and 0.1 are ends and 0.3 is not; of θ, 0.1 is one. A problem without a vote has no part."""
    chosen = {
        "tie": (0.3, 0.1),
        "failed": (0.1, 0.03),
        "missing": (1.0, 0.03),
        "silent": (0.3, 0.1),
    }
    runs = outcomes().runs
    runs[["e_rate", "m_rate"]] = [chosen[x] for x in runs["problem"]]
    pairs = [(e, m) for e in (0.1, 0.3, 1.0) for m in (0.01, 0.03, 0.1)]
    columns = ("problem", "entrant", "stage", "e_rate", "m_rate", "status", "nlpd")
    trials = [("tie", x, 1, *pair, "ok", 1.0) for x in "AC" for pair in pairs]
    # B has a grid of its own
    trials += [("tie", "B", 1, 10 * e, 10 * m, "ok", 1.0) for e, m in pairs]
    second = ("tie", "A", 2, 9.0, 0.03, "ok", 1.0)
    board = Board(Outcomes(runs, pd.DataFrame([*trials, second], columns=columns)), ["A", "C"])
    assert board.at_edges()["A"] == pytest.approx(RatePair(2 / 3, 1 / 3))


def test_an_interval_over_problems_is_of_bootstrap_means() -> None:
    # so many and so uneven that other draws have other ends
    values = [1.0, 2.03, 4.2, 0.7, 9.1, 3.33, 5.07, 2.6]
    drawn = np.random.default_rng(0).integers(8, size=(10_000, 8))
    low, high = np.percentile([np.mean([values[i] for i in row]) for row in drawn], [2.5, 97.5])
    found = over_problems(pd.Series([*values, NAN]))
    assert found == pytest.approx((np.mean(values), low, high), rel=1e-14)
    assert over_problems(pd.Series([5.0])) == (5.0, 5.0, 5.0)
    assert all(map(math.isnan, over_problems(pd.Series([NAN]))))


def test_an_interval_over_folds_is_student_s_but_wider() -> None:
    a, b = np.array([1.0, 2.0, 4.0, 3.0, 2.5]), np.array([1.5, 2.0, 5.0, 3.5, 4.0])
    plain = ttest_rel(a, b).confidence_interval(0.95)
    low, high = fold_interval(a - b)
    assert (low + high) / 2 == pytest.approx(np.mean(a - b), rel=1e-14)
    # √(1/5 + 1/4) in place of √(1/5)
    assert (high - low) / (plain.high - plain.low) == pytest.approx(1.5, rel=1e-12)
    assert fold_interval(np.full(5, 0.25)) == (0.25, 0.25)
    assert fold_interval(np.array([-0.5])) == (-0.5, -0.5)


def test_estimates_are_written_with_their_intervals() -> None:
    assert Estimate(1.834, 1.5, 2.166).text() == "1.83 [1.50, 2.17]"
    assert Estimate(0.834, 0.75, 0.9).percent() == "83 % [75, 90]"


@pytest.mark.parametrize(
    ("nlpd", "seconds"),
    [
        ([0.5, 0.4, 0.3], 1.0),  # there from the first evaluation on
        ([3.0, 1.0, 0.5], 100.0),  # at an evaluation
        ([2.0, 0.0, 0.0], 10.0),  # half the way between 1 and 100 in log time
        ([5.0, 3.0, 0.0], 100 ** (1 + 2 / 3)),
        ([0.0, 2.0, 0.0], 1000.0),  # it leaves and comes back
        ([3.0, 2.0, 1.5], INF),
        ([0.0, 0.0, 1.5], INF),  # it leaves for good
        ([NAN, NAN, 0.5], 1e4),  # no line from a missing value
        ([INF, 0.5, 0.5], 100.0),
        ([0.5, 0.5, NAN], INF),
        ([1.0, 1.0, 1.0], 1.0),  # at the target is there
    ],
)
def test_a_target_is_reached_where_it_is_kept(nlpd: list[float], seconds: float) -> None:
    found = reached(np.array([1.0, 100.0, 1e4]), np.array(nlpd), 1.0)
    assert found == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize(
    ("value", "rounded"),
    [(0.2, 1), (7.4, 7), (9.6, 10), (12.4, 12), (99.6, 100), (123.0, 120), (9876.0, 9900)],
)
def test_a_budget_has_two_digits(value: float, rounded: int) -> None:
    assert two_digits(value) == rounded


def test_budgets_follow_from_times() -> None:
    suite = load_suite()
    times = step_times(
        [("kin8nm", "t-SVGP", ms) for ms in (2.0, 3.0, 40.0)]
        + [("airfoil", "q-SVGP Adam", 0.7), ("airfoil", "t-SVGP", 1.0)]
    )
    assert list(times.columns) == ["problem", "entrant", "ms", "least", "most"]
    assert times.iloc[0].to_list() == ["kin8nm", "t-SVGP", 3.0, 2.0, 40.0]
    counts = iterations_of(suite, times)  # in the order of the suite, 5 s and 10 s
    assert (list(counts.index), list(counts.columns)) == (
        ["airfoil", "kin8nm"],
        ["t-SVGP", "q-SVGP Adam"],
    )
    assert counts.loc["airfoil"].to_list() == [5000, 7100]
    assert counts.loc["kin8nm", "t-SVGP"] == 3300
    assert pd.isna(counts.loc["kin8nm", "q-SVGP Adam"])


def test_a_second_measurement_keeps_iterations_and_the_times_of_others(tmp_path: Path) -> None:
    suite, files = small_suite(tmp_path), SuiteFiles(tmp_path / "small.toml")
    assert read_step_times(files.step_times) == read_iterations(files.iterations) == {}
    first = [("thesis-sinusoid", "tied", 2.0), ("banana, probit", "tied", 4.0)]
    write_times(suite, step_times(first), files)
    tied = {("thesis-sinusoid", "tied"): 500, ("banana, probit", "tied"): 500}
    assert read_iterations(files.iterations) == tied
    second = [("thesis-sinusoid", "tied", 1.0), ("thesis-sinusoid", "adam", 10.0)]
    write_times(suite, step_times(second), files)
    assert read_iterations(files.iterations) == tied | {("thesis-sinusoid", "adam"): 100}
    assert read_step_times(files.step_times) == {
        ("banana, probit", "tied"): 4.0,
        ("thesis-sinusoid", "tied"): 1.0,
        ("thesis-sinusoid", "adam"): 10.0,
    }


def _record(nlpd: float | None, status: str = "ok") -> Record:
    return Record.model_construct(status=status, metrics={"nlpd": nlpd})


def test_the_best_rates_are_of_those_that_finished() -> None:
    a, b, c, d, e = (RatePair(*x) for x in [(1.0, 1.0), (0.1, 1.0), (0.1, 0.5), (9, 9), (8, 8)])
    records = {
        a: _record(0.5),
        b: _record(0.5),
        c: _record(0.5),
        d: _record(0.1, "diverged"),
        e: _record(None),
    }
    assert best_rates(records) == [c]  # of equal ones, the smaller rate of q, then of θ
    assert best_rates(records, 2) == [c, b]
    assert best_rates(records, 4) == [c, b, a]
    assert best_rates({d: records[d], e: records[e]}, 4) == []
    assert best_rates(records | {a: _record(0.4)}) == [a]


def test_findings_are_filled_in_from_the_numbers() -> None:
    names = {"A": "q-SVGP natural", "B": "q-SVGP Adam", "C": "t-SVGP"}
    renamed = Outcomes(*(x.assign(entrant=x["entrant"].map(names)) for x in outcomes()))
    board = Board(renamed, list(names.values()))
    leader, early, natural, dual, *others = findings(board)
    assert others == []  # prices of one entrant are no comparison
    ranks = over_problems(pd.Series([1.5, 1.0, 2.0])), over_problems(pd.Series([3.0, 2.0, 1.0]))
    assert leader.startswith(
        f"q-SVGP natural has the lowest average rank by test NLPD, {ranks[0].text('.1f')} of 3 "
        f"entrants on 3 problems; then comes t-SVGP, {ranks[1].text('.1f')}."
    )
    assert "q-SVGP Adam has 75 % [50, 100]" in early and "t-SVGP has 17 %" in early
    assert "on 1, level on 1 and worse on 0 of 2 problems." in natural
    assert "new problem" not in natural  # two are too few
    # A's times over B's: 2 and 4 on "tie", 1/1.1 on "failed", where one fold counts
    ratios = pd.Series(np.log([math.sqrt(8.0), 1.0 / 1.1]))
    ratio = Estimate(*np.exp(over_problems(ratios)))
    assert natural.endswith(
        f"Its time to 90 % of the possible gain is {ratio.text()} times that of q-SVGP Adam, on the 2 "
        "problems where both get there."
    )
    assert dual.startswith("Dual parameters") and "Its time" not in dual


def test_what_a_board_says_of_one_entrant() -> None:
    """Over both folds C is worse than A on "failed" alone; on the first it is worse on two, better on one."""
    runs = outcomes().runs
    names = {"A": "mine", "B": "other", "C": "q-SVGP natural"}
    renamed = Outcomes(*(x.assign(entrant=x["entrant"].map(names)) for x in outcomes()))
    place, gain, *compared = findings_on(Board(renamed, list(names.values())), "q-SVGP natural")
    assert place.startswith("q-SVGP natural has place 2 of 3 by average rank, 2.0 [")
    assert place.endswith("on 3 problems (2 folds of each).")
    assert gain.startswith(
        "It has 58 % [25, 100] of the possible gain at the end of the budget, and 17 %"
    )
    # the leader; not itself, though a new entrant is compared with it
    (beside_leader,) = compared
    assert beside_leader.startswith(
        "It is better than mine on 0, level on 2 and worse on 1 of 3 problems."
    )
    one_fold = Outcomes(renamed.runs[runs["fold"] == 0], renamed.trials)
    place, _, *compared = findings_on(Board(one_fold, list(names.values())), "mine")
    assert place.endswith("on 3 problems (one fold of each, signs only).")
    assert [x.partition(".")[0] for x in compared] == [
        "It is ahead of other in NLPD on 0 and behind on 0 of 2 problems",
        "It is ahead of q-SVGP natural in NLPD on 2 and behind on 1 of 3 problems",
    ]
    assert "new problem" not in " ".join(compared)


def test_the_rates_and_iterations_of_one_entrant_by_problem() -> None:
    runs = outcomes().runs.assign(e_rate=0.1, m_rate=0.03)
    runs.loc[runs["problem"] == "failed", ["e_rate", "m_rate"]] = NAN  # every trial failed
    board = Board(Outcomes(runs, outcomes().trials), ["A", "B", "C"])
    budgets = {(name, "B"): 100 + len(name) for name in board.problems}
    table = entrant_table(board, "B", budgets)
    assert table.columns[0].name == "B"
    assert [list(row) for row in table.rows] == [
        ["tie", 103, "0.1, 0.03", 1.0, 1.0, "1.5 of 3"],
        ["failed", 106, "–", INF, 0.0, "3 of 3"],
    ]


@pytest.mark.parametrize(
    ("better", "worse", "words"),
    [
        (9, 0, "probability 100 %"),
        (0, 9, "only 0 %"),
        (3, 3, "cannot tell which of the two is better on a new problem (50 % ["),
    ],
)
def test_a_verdict_needs_an_interval_on_one_side_of_a_half(
    better: int, worse: int, words: str
) -> None:
    rows = [
        (f"p{i}", name, fold, float(nlpd))
        for i in range(better + worse)
        for name, nlpd in (("A", i >= better), ("B", i < better))
        for fold in (0, 1)
    ]
    runs = pd.DataFrame(rows, columns=["problem", "entrant", "fold", "nlpd"]).assign(
        status="ok", constant_nlpd=2.0, best_nlpd=0.0, nlpd_tenth=2.0, ms=1.0
    )
    runs[["seconds_90", "seconds_99"]] = INF
    board = Board(Outcomes(runs, outcomes().trials), ["A", "B"])
    assert board.pair("A", "B")[2:] == (better, 0, worse)
    assert words in _verdict(board.pair("A", "B"))


def test_tables_of_the_board(board: Board) -> None:
    shown = board_table(board)
    assert [str(row[0]) for row in shown.rows] == ["A", "C", "B"]
    assert [row[4] for row in shown.rows] == pytest.approx([0.2, 0.4, 1.0])
    pairs = {str(row[0]): list(row[1:]) for row in pairs_table(board).rows}
    assert pairs == {
        "A": ["", "1-2-0", "1-1-0"],
        "C": ["0-2-1", "", "1-1-0"],
        "B": ["0-1-1", "0-1-1", ""],
    }
    assert any("silent" in line for line in legend(board))


def test_tables_of_a_board_of_one_problem_are_of_this_problem(tmp_path: Path) -> None:
    """No other problem chooses default rates, and a suite of small tables has no group of large ones."""
    names = {"tie": "thesis-sinusoid", "failed": "banana, probit"}
    runs, trials = (x.assign(problem=x["problem"].replace(names)) for x in outcomes())
    measured = ["e_rate", "m_rate", "coverage", "crps", "ece", "error_rate", "drop"]
    runs[measured] = 0.1
    board = Board(Outcomes(runs, trials), ["A", "B", "C"], ["thesis-sinusoid"])
    tables = [table for _, table in detailed_tables(small_suite(tmp_path), board)]
    groups, _, (rates, *_), *_ = (table.rows for table in tables)
    header = ["average rank", "gaussian (1)", "rows<2000 (1)", "rows<10000 (1)", "inputs<10 (1)"]
    assert tables[0].header == [*header, "inputs<30 (1)"]
    assert groups == [(name, *[rank] * 5) for name, rank in (("A", 1.5), ("B", 1.5), ("C", 3.0))]
    assert rates[0] == "A" and np.isnan([rates[2], rates[3]]).all()


def test_a_label_with_dollars_is_drawn_as_it_stands(tmp_path: Path) -> None:
    label = r"mine, $5 and \no$"
    named = Outcomes(*(x.assign(entrant=x["entrant"].replace("A", label)) for x in outcomes()))
    draw_board(Board(named, [label, "B"]), tmp_path / "board.svg")
    assert "<svg" in (tmp_path / "board.svg").read_text()
