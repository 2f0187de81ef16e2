"""Differences of runs beside those of optima: planted outcomes, and kobe2021's records."""

from __future__ import annotations

import pytest
from committed_records import RESULTS

from svgpbench.cli.application import exit_code
from svgpbench.comparison.comparison import ComparedMeasure, Comparison
from svgpbench.comparison.path_and_optimum import side_by_side, verdict
from svgpbench.errors import UserError
from svgpbench.stats.effects import Effect, Outcome


def effect(outcome: str) -> Effect:
    return Effect("a", Outcome(outcome), 1.0, 0.5, 1.5)


@pytest.mark.parametrize(
    ("ends", "optima", "words"),
    [
        ("worse", "equal", "the path"),
        ("better", "equal", "the path"),
        ("worse", "worse", "the family"),
        ("better", "better", "the family"),
        ("better", "worse", "the path, against the family"),
        ("better", "undecided", ""),
        ("equal", "worse", "none"),
        ("undecided", "equal", ""),
    ],
)
def test_a_difference_belongs_to_the_path_only_where_the_optima_are_equal(
    ends: str, optima: str, words: str
) -> None:
    assert verdict(effect(ends), effect(optima)) == words


@pytest.mark.parametrize(("low", "high"), [(1.6, 1.8), (0.1, 0.4)])
def test_a_difference_of_another_size_belongs_to_both(low: float, high: float) -> None:
    other = Effect("a", Outcome.better, (low + high) / 2, low, high)
    assert verdict(effect("better"), other) == "the family and the path"
    assert verdict(effect("better"), Effect("a", Outcome.better, 1.0)) == "the family"


def comparison(*rows: tuple[str, str, str]) -> Comparison:
    """Rows of (measure, data set, outcome)."""
    made = (
        ComparedMeasure(metric, {"data": data}, 5, (0.0, 0.0), 0.05, effect(outcome))
        for metric, data, outcome in rows
    )
    return Comparison("", "A", "B", tuple(made), ())


def test_rows_are_matched_by_measure_and_data_set() -> None:
    ends = comparison(
        ("elbo", "a", "worse"), ("elbo", "b", "worse"), ("log_variance", "a", "better")
    )
    optima = comparison(
        ("log_variance", "a", "equal"), ("elbo", "b", "worse"), ("elbo", "c", "equal")
    )
    found = [(row.metric, row.data, row.verdict) for row in side_by_side(ends, optima)]
    assert found == [("elbo", "b", "the family"), ("log_variance", "a", "the path")]
    with pytest.raises(UserError, match="other data sets than the runs: c"):
        side_by_side(ends, comparison(("elbo", "c", "equal")))


RUNS = ["compare", "O(M)", "NGD", "--preset", "paper", "--results", str(RESULTS)]
OPTIMA = ["--optima", "kobe2021-optima", "--optimum"]


def test_om_is_biased_by_the_path_on_a_gp_sample(capsys: pytest.CaptureFixture[str]) -> None:
    asked = [*RUNS, "--experiment", "kobe2021-fig4.7", *OPTIMA, "O(M), M = 50/full, M = 50"]
    assert exit_code([*asked, "--markdown"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (variance,) = [line for line in lines if "log σ²" in line]
    assert "+2.3 [+2.21, +2.39]" in variance and variance.endswith("| the path |")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--optima", "kobe2021-optima"], "give --optima NAME and --optimum A/B"),
        (["--optima", "kobe2021-optima", "--json"], "--optima has no --json: leave it out"),
        (["--optima", "kobe2021-optima", "--over-training"], "are tables of their own: give one"),
        (["--figure", "gain.png"], "--figure is of --over-training: give it too"),
        (["--over-training", "--fail-if-worse"], "--fail-if-worse has no --over-training"),
        ([*OPTIMA, "full, M = 50"], "give --optima NAME and --optimum A/B"),
        ([*OPTIMA, "O(M), M = 5/full, M = 50"], "O(M), M = 50"),
    ],
)
def test_a_mistake_is_told_in_one_line(
    more: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code([*RUNS, "--experiment", "kobe2021-fig4.7", *more]) == 2
    error = capsys.readouterr().err
    assert told in error and error.count("\n") == 1
