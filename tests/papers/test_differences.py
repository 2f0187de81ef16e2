"""The interval of a paired difference, and what it says; every number here can be had by hand."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from planted_frames import around, planted, reversed_around, together
from scipy import stats

from svgpbench.stats.differences import (
    Sample,
    interval_outcome,
    sampled,
    units_of_width,
    units_that_decide,
)
from svgpbench.stats.effects import Effect, Outcome
from svgpbench.stats.over_sets import data_sets, over_sets
from svgpbench.stats.rules import RULES

FOLDS = [0.5, 0.61, 0.48, 0.55, 0.52]


def of_one(frame: pd.DataFrame, metric: str = "nlpd") -> Effect:
    (effect,) = over_sets(data_sets(frame, metric), "A", "B", RULES, interval_outcome)
    return effect


def test_folds_get_the_corrected_error_of_nadeau_and_bengio() -> None:
    delta = np.array(FOLDS) - 0.3  # of NLPD: A is better by these
    effect = of_one(planted({"A": [0.3] * 5, "B": FOLDS}))
    half = stats.t.ppf(0.975, 4) * delta.std(ddof=1) * math.sqrt(1 / 5 + 20 / 80)
    assert effect.value == pytest.approx(delta.mean())
    assert effect.low == pytest.approx(delta.mean() - half)
    assert effect.high == pytest.approx(delta.mean() + half)
    assert effect.outcome == Outcome.better


def test_seeds_of_one_split_get_the_plain_error() -> None:
    delta = np.array(FOLDS) - 0.3
    effect = of_one(planted({"A": [0.3] * 5, "B": FOLDS}, units="seed"))
    half = stats.t.ppf(0.975, 4) * delta.std(ddof=1) / math.sqrt(5)
    assert effect.low == pytest.approx(delta.mean() - half)
    assert effect.note == "on this split"


def test_seeds_within_a_split_are_averaged_first() -> None:
    frames = [
        planted({"A": [0.3] * 5, "B": [value + shift for value in FOLDS]}).assign(seed=seed)
        for seed, shift in enumerate((-0.2, 0.2))
    ]
    twice, once = of_one(together(*frames)), of_one(planted({"A": [0.3] * 5, "B": FOLDS}))
    assert twice.low == pytest.approx(once.low)


def test_the_bound_needs_five_starts_a_split_however_many_folds_there_are() -> None:
    effect = of_one(planted({"A": [-1.0] * 5, "B": [-9.0] * 5}, "elbo"), "elbo")
    assert (effect.outcome, effect.value) == (Outcome.undecided, 8.0)
    assert effect.note == "1 start a split where 5 make an interval"


def test_the_bound_takes_seeds_as_units_conditional_on_the_splits() -> None:
    starts = [
        planted({"A": around(-10.0), "B": reversed_around(-12.0 - split)}, "elbo", units="seed")
        .assign(fold=split)
        for split in range(2)
    ]  # fmt: skip
    effect = of_one(together(*starts), "elbo")
    delta = 2.5 + np.arange(-2, 3) * 2e-4
    half = stats.t.ppf(0.975, 4) * delta.std(ddof=1) / math.sqrt(5)
    assert effect.value == pytest.approx(2.5)
    assert effect.high == pytest.approx(2.5 + half)
    assert effect.outcome == Outcome.better


def test_random_splits_of_several_seeds_are_units_of_their_own() -> None:
    delta = np.array(FOLDS) - 0.3
    folds = planted({"A": [0.3] * 5, "B": FOLDS})
    random = folds.assign(split_seed=folds["fold"], fold=0)
    assert of_one(random) == of_one(folds)
    assert of_one(random).value == pytest.approx(delta.mean())
    values = random[random["method"] == "B"].set_index(["split_seed", "fold", "seed"])["nlpd"]
    assert sampled(values, 0.25, "test").values.tolist() == FOLDS


def test_the_bound_of_a_part_of_the_rows_has_the_region_of_that_part() -> None:
    frame = planted({"A": around(-10.0), "B": around(-10.05)}, "elbo", units="seed")
    assert of_one(frame, "elbo").outcome == Outcome.equal  # of 80 rows
    few = frame.assign(n_train=8000, n_bound=40)
    assert of_one(few, "elbo").outcome == Outcome.better


def test_splits_that_differ_in_the_sign_of_the_bound_leave_it_undecided() -> None:
    starts = [
        planted({"A": around(-10.0), "B": reversed_around(level)}, "elbo", units="seed")
        .assign(fold=split)
        for split, level in enumerate((-14.0, -9.0))
    ]  # fmt: skip
    effect = of_one(together(*starts), "elbo")
    assert effect.low is not None
    assert effect.low > 1
    assert (effect.outcome, effect.note) == (Outcome.undecided, "splits differ in sign")


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [
        (0.011, 0.02, Outcome.better),
        (0.009, 0.02, Outcome.undecided),
        (-0.009, 0.009, Outcome.equal),
        (-0.011, 0.009, Outcome.undecided),
        (-0.02, -0.009, Outcome.undecided),
        (-0.02, -0.011, Outcome.worse),
        (-0.02, 0.02, Outcome.undecided),
    ],
)
def test_an_interval_says_what_lies_beyond_the_region_or_inside(
    low: float, high: float, outcome: Outcome
) -> None:
    assert interval_outcome(low, high, 0.01) == outcome


def test_numbers_that_are_the_same_are_equal_in_a_region_of_nothing() -> None:
    assert interval_outcome(0.0, 0.0, 0.0) == Outcome.equal
    assert interval_outcome(0.0, 0.1, 0.0) == Outcome.undecided


@pytest.mark.parametrize(
    ("metric", "a", "b", "outcome"),
    [
        ("elbo", -10.0, -10.07, Outcome.equal),  # 80 data: 0.08
        ("elbo", -10.0, -10.09, Outcome.better),
        ("rmse", 0.500, 0.5049, Outcome.equal),  # 1 % of B's
        ("rmse", 0.500, 0.5052, Outcome.better),
        ("nmse", 0.100, 0.1019, Outcome.equal),  # 2 % of B's
        ("nmse", 0.100, 0.1022, Outcome.better),
        ("error_rate", 0.2, 0.206, Outcome.better),
        ("error_rate", 0.2, 0.204, Outcome.equal),
        ("nlpd", 0.512, 0.5, Outcome.worse),
    ],
)
def test_each_measure_has_its_region(metric: str, a: float, b: float, outcome: Outcome) -> None:
    frame = planted({"A": around(a, 1e-6), "B": around(b, 1e-6)}, metric, units="seed")
    assert of_one(frame, metric).outcome == outcome


def test_what_rounding_moves_by_more_than_itself_is_undecided() -> None:
    plain = planted({"A": around(0.30), "B": around(0.33)})
    assert of_one(plain).outcome == Outcome.better
    replica = planted({"A": around(0.37), "B": around(0.33)}, perturbation=1e-15)
    effect = of_one(together(plain, replica))
    assert effect.outcome == Outcome.undecided
    assert effect.note.startswith("chaotic")
    near = planted({"A": around(0.32), "B": around(0.33)}, perturbation=1e-15)
    assert of_one(together(plain, near)).outcome == Outcome.better


def test_replicas_of_some_starts_are_held_to_those_starts_alone() -> None:
    """Starts differ by more than the mean; rounding moves none of them."""
    of_starts = {"A": [0.30, 0.31, 0.29, 0.30, 0.80], "B": [0.33] * 5}
    plain = planted(of_starts, units="seed")
    replica = planted({m: v[:1] for m, v in of_starts.items()}, units="seed", perturbation=1e-15)
    effect = of_one(together(plain, replica))
    assert effect == of_one(plain)


def test_replicas_of_another_method_say_nothing_of_two_that_have_none() -> None:
    of_starts = {"A": [0.30, 0.31, 0.29, 0.30, 0.28], "B": [0.53] * 5, "C": [0.4] * 5}
    plain = planted(of_starts, units="seed")
    replica = planted({"C": [0.9]}, units="seed", perturbation=1e-15)
    assert of_one(together(plain, replica)) == of_one(plain)


@pytest.mark.parametrize(
    ("mine", "other", "outcome"),
    [
        ([0.3, None, 0.3], [0.5] * 3, Outcome.worse),
        ([0.3] * 3, [0.2, None, 0.2], Outcome.better),
        ([0.3, None, 0.3], [None, 0.5, 0.5], Outcome.undecided),
    ],
)
def test_whoever_fails_more_often_is_worse(
    mine: list[float | None], other: list[float | None], outcome: Outcome
) -> None:
    effect = of_one(planted({"A": mine, "B": other}))
    assert effect.outcome == outcome
    assert effect.note.startswith("failed cells")


def test_undecided_names_the_fewest_units_that_would_decide() -> None:
    values = np.array([0.001, 0.041, 0.02, 0.03, 0.01])
    sample = Sample(values, 0.0, "starts")
    units = units_that_decide(sample, 0.01)
    assert units is not None
    for count, decided in ((units, True), (units - 1, False)):
        half = sample.half_width(count)
        outcome = interval_outcome(sample.mean - half, sample.mean + half, 0.01)
        assert (outcome != Outcome.undecided) == decided


def test_more_than_a_thousand_units_are_no_number() -> None:
    sample = Sample(np.array([0.001, 0.041, 0.02, 0.03, 0.01]), 0.0, "starts")
    assert units_of_width(sample, 2 * sample.half_width(1000)) == 1000
    assert units_of_width(sample, 2 * sample.half_width(1001)) is None


def test_no_number_of_overlapping_splits_decides_what_overlap_alone_leaves_open() -> None:
    effect = of_one(planted({"A": [0.5] * 5, "B": [0.48, 0.56, 0.5, 0.54, 0.49]}))
    assert (effect.outcome, effect.note) == (Outcome.undecided, "no number of splits would decide")


def test_a_score_that_a_record_lacks_is_no_failure_and_its_pair_is_left_out() -> None:
    values = {"A": [0.3, 0.31, 0.29, 0.3, 0.3], "B": FOLDS}
    frame = planted(values).assign(unrecorded=[frozenset()] * 10)
    lacks = (frame["method"] == "A") & (frame["fold"] == 4)
    frame.loc[lacks, "nlpd"] = math.nan
    failed = of_one(frame)
    assert failed.note == "failed cells: 1 of A, 0 of B"  # not finite
    frame["unrecorded"] = [frozenset({"nlpd"}) if lack else frozenset() for lack in lacks]
    assert of_one(frame) == of_one(planted({name: four[:4] for name, four in values.items()}))
    frame["nlpd"], frame["unrecorded"] = math.nan, [frozenset({"nlpd"})] * 10
    nothing = of_one(frame)
    assert (nothing.outcome, nothing.note) == (Outcome.undecided, "no pair of records has NLPD")
