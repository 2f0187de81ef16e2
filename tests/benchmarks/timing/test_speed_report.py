"""Medians, quartiles and paired ratios of a speed report, by hand and under their headings."""

from __future__ import annotations

import math

import pytest

from svgpbench.benchmarks.timing.report import (
    M_TOLERANCE,
    TOLERANCE,
    SpeedReport,
    TimedCell,
    check_agreement,
)
from svgpbench.benchmarks.timing.rounds import Round, spread
from svgpbench.benchmarks.timing.tables import times_table


def cell(
    source: str, *seconds: float, peer: bool = False, step: str = "e_step", problem: str = "tiny"
) -> TimedCell:
    """A cell of undisturbed rounds of one call each."""
    made = TimedCell(problem, step, source, "m", "q-svgp", peer, first_call_s=1.5, figure=-1.0)
    made.rounds = [Round.measured((s,), 0.0, True) for s in seconds]
    return made


def report(*cells: TimedCell) -> SpeedReport:
    return SpeedReport(list(cells), {"max_other_cores": 0.1}, {})


def test_spread_is_median_quartiles_least_and_number() -> None:
    found = spread([9.0, 1.0, 5.0, 3.0, 7.0])
    assert found == (5.0, 3.0, 7.0, 1.0, 5)
    assert spread([1.0, 2.0]) == (1.5, 1.25, 1.75, 1.0, 2)
    assert spread([]) is None


def test_ratio_is_how_many_times_the_peer_takes_as_long() -> None:
    ours, theirs = cell("jax", 1.0, 2.0, 4.0), cell("gpflow", 3.0, 4.0, 40.0, peer=True)
    # round by round 3, 2, 10; of the medians it would be 2
    assert ours.ratio_to(theirs) == (3.0, 2.5, 6.5, 2.0, 3)
    slower = theirs.ratio_to(ours)
    assert slower is not None and slower.median == pytest.approx(1 / 3)


def test_a_ratio_is_of_medians_within_a_round() -> None:
    ours, theirs = cell("jax"), cell("gpflow", peer=True)
    ours.rounds.append(Round.measured((1.0, 2.0, 30.0), 0.0, True))
    theirs.rounds.append(Round.measured((5.0, 6.0, 900.0), 0.0, True))
    ratio = ours.ratio_to(theirs)
    assert ratio is not None and (ratio.median, ratio.of) == (3.0, 1)


def test_rounds_are_left_out_where_either_is_disturbed() -> None:
    ours, theirs = cell("jax", 1.0, 1.0, 1.0), cell("gpflow", 2.0, 50.0, 60.0, peer=True)
    ours.rounds[1] = ours.rounds[1]._replace(clean=False)
    theirs.rounds[2] = theirs.rounds[2]._replace(clean=False)
    ratio = ours.ratio_to(theirs)
    assert ratio is not None and (ratio.median, ratio.of) == (2.0, 1)
    times = ours.times()
    assert times is not None and times.of == 2
    theirs.rounds[0] = theirs.rounds[0]._replace(clean=False)
    assert ours.ratio_to(theirs) is None


def test_a_round_below_the_clock_s_resolution_has_no_ratio() -> None:
    ratio = cell("jax", 0.0, 1.0, 1.0).ratio_to(cell("gpflow", 2.0, 0.0, 3.0, peer=True))
    assert ratio is not None and (ratio.median, ratio.of) == (3.0, 1)


def test_a_cell_is_compared_with_peers_of_its_own_problem_and_step() -> None:
    ours = cell("jax", 1.0)
    right = cell("gpflow", 2.0, peer=True)
    failed = cell("gpflow", 2.0, peer=True)
    failed.error = "not timed"
    others = [
        cell("gpflow", 2.0, peer=True, step="predict"),
        cell("gpflow", 2.0, peer=True, problem="tiny-bern"),
        cell("torch", 2.0),
        failed,
    ]
    whole = report(ours, right, *others)
    assert [c is right for c in whole.baselines(ours)] == [True]
    assert whole.baselines(right) == []


def test_a_column_is_of_the_peers_fastest_method() -> None:
    ours, slow, fast = (
        cell("jax", 1.0),
        cell("gpjax", 4.0, peer=True),
        cell("gpjax", 3.0, peer=True),
    )
    without = cell("gpjax", peer=True)
    whole = report(ours, fast, slow, without)
    assert whole.fastest("gpjax", ours) is fast
    assert report(ours, slow, fast).fastest("gpjax", ours) is fast
    assert (
        whole.fastest("gpflow", ours) is None
        and report(ours, without).fastest("gpjax", ours) is None
    )
    table = times_table(whole)
    assert table.texts[0][-1].startswith("3.00")


def test_every_number_stands_under_its_heading() -> None:
    ours, theirs = cell("jax", 0.001, 0.002, 0.004), cell("gpflow", 0.003, 0.004, 0.04, peer=True)
    ours.rounds.append(Round.measured((9.0,), 1.0, False))
    theirs.rounds.append(Round.measured((9.0,), 1.0, False))
    theirs.first_call_s = 7.25
    table = times_table(report(ours, theirs, cell("dead")))
    assert [dict(zip(table.header, row, strict=True)) for row in table.texts] == [
        {
            "problem": "tiny",
            "step": "e_step",
            "who": "jax m",
            "median, ms": "2",
            "min": "1",
            "quartiles": "1.5–3",
            "first call, s": "1.50",
            "rounds": "3/4",
            "× gpflow": "3.00 (2.50–6.50)",
        },
        {
            "problem": "tiny",
            "step": "e_step",
            "who": "gpflow m",
            "median, ms": "4",
            "min": "3",
            "quartiles": "3.5–22",
            "first call, s": "7.25",
            "rounds": "3/4",
            "× gpflow": "–",
        },
    ]


def test_times_of_a_second_and_more_are_told_in_milliseconds_too() -> None:
    (row,) = times_table(report(cell("jax", 2.5))).texts
    assert "2500" in row


def test_json_has_seconds_a_step_and_what_each_round_lost() -> None:
    ours = cell("jax")
    ours.rounds = [
        Round.measured((0.3, 0.1, 0.2), 0.05, True),
        Round.measured((9.0, 8.0), 0.7, False),
    ]
    (found,) = report(ours).to_json()["cells"]
    expected = {"median": 0.2, "q1": 0.15, "q3": 0.25, "least": 0.1, "of": 3}
    assert found["seconds"] == pytest.approx(expected)
    assert found["rounds"] == [
        {"median_s": 0.2, "min_s": 0.1, "calls": 3, "other_cores": 0.05, "clean": True},
        {"median_s": 8.5, "min_s": 8.0, "calls": 2, "other_cores": 0.7, "clean": False},
    ]
    assert (found["first_call_s"], found["figure"]) == (1.5, -1.0)
    assert report(ours).to_json()["rounds"] == {"total": 2, "discarded": 1}


def with_figure(
    figure: float, *, step: str = "e_step", family: str = "a", problem: str = "tiny"
) -> TimedCell:
    return TimedCell(problem, step, "jax", "m", family, False, figure=figure)


def errors(*cells: TimedCell) -> list[bool]:
    check_agreement(cells)
    return [bool(c.error) for c in cells]


def test_figures_agree_relative_to_the_median_of_their_step() -> None:
    assert (TOLERANCE, M_TOLERANCE) == (1e-8, 1e-6)
    near, far = 1000.0 * (1 + 0.9 * TOLERANCE), 1000.0 * (1 + 1.1 * TOLERANCE)
    assert errors(*map(with_figure, (1000.0, 1000.0, near))) == [False] * 3
    assert errors(*map(with_figure, (1000.0, 1000.0, far))) == [False, False, True]
    assert errors(*map(with_figure, (-1000.0, -1000.0, 1000.0))) == [False, False, True]
    # NaN is refused alone, wherever it stands
    for figures in ((math.nan, 7.0, 7.0), (7.0, math.nan, 7.0), (7.0, 7.0, math.nan)):
        assert errors(*map(with_figure, figures)) == [math.isnan(x) for x in figures]
    # what runs alone agrees with nobody, and nothing is claimed
    alone = with_figure(5.0)
    assert errors(alone) == [False] and alone.difference is None


def test_where_expectations_are_sampled_peers_are_held_to_their_estimate_and_ours_to_ours() -> None:
    def cells(*figures: tuple[float, float | None]) -> list[TimedCell]:
        made = [with_figure(own) for own, _ in figures]
        for cell, (_, theirs) in zip(made, figures, strict=True):
            cell.as_peers = theirs
        check_agreement(made)
        return made

    right = cells((7.0, 5.0), (7.0, 5.0), (5.0, None))
    assert not any(cell.error for cell in right)
    assert [bool(c.error) for c in cells((7.0, 5.0), (7.0, 5.0), (5.1, None))] == [0, 0, 1]
    assert [bool(c.error) for c in cells((7.0, 5.1), (7.0, 5.0), (5.0, None))] == [1, 0, 0]
    assert [bool(c.error) for c in cells((7.0, 5.0), (7.0, 5.0), (7.1, 5.0))] == [0, 0, 1]


def test_m_steps_have_a_wider_tolerance_within_their_family_only() -> None:
    near = 1000.0 * (1 + 0.5 * M_TOLERANCE)
    same = [with_figure(x, step="m_step") for x in (1000.0, 1000.0, near)]
    assert errors(*same) == [False] * 3
    families = [with_figure(x, step="m_step", family=f) for x, f in ((1.0, "a"), (2.0, "b"))]
    assert errors(*families) == [False, False]
    assert errors(*(with_figure(x, family=f) for x, f in ((1.0, "a"), (1.0, "a"), (2.0, "b")))) == [
        False,
        False,
        True,
    ]
    apart = [
        with_figure(1.0),
        with_figure(2.0, step="predict"),
        with_figure(3.0, problem="tiny-bern"),
    ]
    assert errors(*apart) == [False] * 3


def test_a_cell_that_failed_takes_no_part_in_the_median() -> None:
    cells = [with_figure(1.0), with_figure(9.0), with_figure(9.0)]
    cells[1].error = cells[2].error = "the process ended"
    check_agreement(cells)
    assert not cells[0].error
    assert cells[1].error == "the process ended"


def test_notes_tell_the_worst_difference() -> None:
    cells = [with_figure(1.0), with_figure(1.0), with_figure(1.0 + 2e-9)]
    check_agreement(cells)
    (note,) = [n for n in report(*cells).notes() if "agreement" in n]
    assert "3 cells, worst difference 2.0e-09" in note
