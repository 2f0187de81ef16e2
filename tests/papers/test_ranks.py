"""Average ranks over data sets: what is ranked, and how far the mean may be off."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from planted_frames import Values, planted, together
from scipy.stats import binom

from svgpbench.stats.ranks import Ranks, average_ranks, critical_difference

FIELD = ("A", "B", "C")


def on_sets(*of_set: dict[str, Values]) -> pd.DataFrame:
    return together(*(planted(values, data=f"set {at}") for at, values in enumerate(of_set)))


def ranked(frame: pd.DataFrame) -> Ranks:
    ranks = average_ranks(frame, "nlpd", "lower", FIELD)
    assert ranks is not None
    return ranks


def means(frame: pd.DataFrame) -> dict[str, float]:
    return {rank.method: rank.mean for rank in ranked(frame).by_method}


A_FIRST: dict[str, Values] = {"A": [0.1, 0.5], "B": [0.4, 0.4], "C": [0.9, 0.1]}
"""Means .3, .4, .5: of single folds each is first once."""

B_FIRST: dict[str, Values] = {"A": [0.5], "B": [0.4], "C": [0.6]}


def test_methods_are_ranked_by_their_means_on_each_data_set() -> None:
    assert means(on_sets(*[A_FIRST] * 5)) == {"A": 1.0, "B": 2.0, "C": 3.0}
    assert means(on_sets(*[A_FIRST] * 3, *[B_FIRST] * 2)) == {"A": 1.4, "B": 1.6, "C": 3.0}


def test_what_is_higher_the_better_is_ranked_the_other_way() -> None:
    ranks = average_ranks(on_sets(*[A_FIRST] * 5), "nlpd", "higher", FIELD)
    assert ranks is not None
    assert [rank.mean for rank in ranks.by_method] == [3.0, 2.0, 1.0]


def test_of_two_methods_the_intervals_mirror_each_other() -> None:
    frame = on_sets(*[A_FIRST] * 6, *[B_FIRST] * 6)
    ranks = average_ranks(frame, "nlpd", "lower", ("A", "B"))
    assert ranks is not None
    a, b = ranks.by_method
    assert (a.low, a.high) == pytest.approx((3.0 - b.high, 3.0 - b.low))
    assert 1.0 < a.low < a.mean < a.high < 2.0


def test_ties_share_their_ranks() -> None:
    tied: dict[str, Values] = {"A": [0.5], "B": [0.4], "C": [0.4]}
    assert means(on_sets(*[tied] * 5)) == {"A": 3.0, "B": 1.5, "C": 1.5}
    tied |= {"B": [0.3], "C": [0.1 + 0.2]}  # 0.30000000000000004
    assert tied["B"] != tied["C"]
    assert means(on_sets(*[tied] * 5)) == {"A": 3.0, "B": 1.5, "C": 1.5}


def test_a_method_with_a_failed_cell_is_last_and_two_of_them_share() -> None:
    one: dict[str, Values] = {"A": [0.1, None], "B": [0.4, 0.4], "C": [0.9, 0.9]}
    assert means(on_sets(*[one] * 5)) == {"A": 3.0, "B": 1.0, "C": 2.0}
    two: dict[str, Values] = {"A": [0.1, None], "B": [0.4, 0.4], "C": [None, 0.0]}
    assert means(on_sets(*[two] * 5)) == {"A": 2.5, "B": 1.0, "C": 2.5}


def test_a_data_set_that_lacks_a_method_is_left_out_and_so_are_replicas() -> None:
    lacks: dict[str, Values] = {"B": [0.1], "C": [0.2]}
    frame = on_sets(*[A_FIRST] * 5, lacks)
    assert ranked(frame).data_sets == 5
    replica = planted({"A": [9.0], "B": [0.1], "C": [0.1]}, data="set 0", perturbation=1e-15)
    assert ranked(together(frame, replica)) == ranked(frame)


def test_a_score_that_no_method_has_on_a_data_set_ranks_nothing_there() -> None:
    without = planted({"A": [1.0], "B": [1.0], "C": [1.0]}, data="set 5").assign(nlpd=np.nan)
    assert ranked(together(on_sets(*[A_FIRST] * 5), without)).data_sets == 5


@pytest.mark.parametrize(("sets", "is_there"), [(4, False), (5, True)])
def test_few_data_sets_have_no_ranks(sets: int, is_there: bool) -> None:
    ranks = average_ranks(on_sets(*[A_FIRST] * sets), "nlpd", "lower", FIELD)
    assert (ranks is not None) == is_there


def test_one_method_has_no_rank() -> None:
    assert average_ranks(on_sets(*[A_FIRST] * 5), "nlpd", "lower", ["A"]) is None


def test_the_interval_holds_95_percent_of_the_resamples_of_the_data_sets() -> None:
    """A resample of eight sets has B first on as many of them as a binomial says."""
    frame = on_sets(*[A_FIRST] * 4, *[B_FIRST] * 4)
    ends = [1 + float(binom.ppf(tail, 8, 0.5)) / 8 for tail in (0.025, 0.975)]
    assert ends != [1 + float(binom.ppf(tail, 8, 0.5)) / 8 for tail in (0.05, 0.95)]
    of_a, of_b, of_c = ranked(frame).by_method
    assert [of_a.low, of_a.high] == [of_b.low, of_b.high] == ends
    assert (of_c.low, of_c.high) == (3.0, 3.0)
    assert ranked(frame) == ranked(frame)  # drawn by seed


@pytest.mark.parametrize(("methods", "sets", "least"), [(8, 6, 4.29), (6, 19, 1.73)])
def test_critical_difference_as_tabulated(methods: int, sets: int, least: float) -> None:
    assert critical_difference(methods, sets) == pytest.approx(least, abs=5e-3)
