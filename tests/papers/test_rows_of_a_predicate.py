"""Which rows a predicate reads, and which of its bounds the rules' threshold moves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from planted_frames import around, planted, reversed_around, together
from planted_grades import DIRECTION, NO, OPEN, YES, judged
from planted_traces import NOT_REACHED, converging

from svgpbench.papers.grades import Grade
from svgpbench.stats.effects import Effect
from svgpbench.stats.rules import Rules

ONCE = Rules(chaos=False)
"""Without the rule that replicas are there for, and without the variants, which take long."""

NLPD, BOUND = {"metric": "nlpd"}, {"metric": "elbo"}
PAIR = {"methods": ("A", "B")}


def of_nlpd(**differences: float) -> pd.DataFrame:
    """A better than B in NLPD by so much, on five folds of each data set."""
    return together(
        *(
            planted({"A": reversed_around(0.5), "B": around(0.5 + x)}, data=data)
            for data, x in differences.items()
        )
    )


def of_sets(count: int = 6, **level: float) -> pd.DataFrame:
    """A number a method, data set and fold; sets are in no alphabetical order."""
    return together(
        *(
            planted({m: [x + at / 10] * 2 for m, x in level.items()}, "nmae", data=f"set {9 - at}")
            for at in range(count)
        )
    )


def rising(*levels: float) -> pd.DataFrame:
    """NLPD of A at rising settings."""
    of = enumerate(levels)
    return together(*(planted({"A": around(x)}, inducing=10 + at) for at, x in of))


def timed(low: float, high: float) -> pd.DataFrame:
    """Five rounds in which B takes as many times as long as A, between two quartiles."""
    ratios = enumerate((low, low, low, high, high))
    rows = [row for at, x in ratios for row in (("A", at, 2.0), ("B", at, 2.0 * x))]
    return pd.DataFrame(rows, columns=["method", "round", "seconds"]).assign(problem="M50")


def drifting(theta: Mapping[str, list[float]]) -> pd.DataFrame:
    """A run that converges at 10, and log θ at iterations 1, 10, 11 and 20."""
    frame = converging({"A": [10]})
    return frame.assign(theta=[pd.DataFrame(theta, [1, 10, 11, 20])])


def rated(**bounds: list[float]) -> pd.DataFrame:
    """The bound at each of four rates with three seeds."""
    frames = [
        planted({f"{name} {at}": [x, x, x]}, "elbo", units="seed", e_rate=10.0**at)
        for name, values in bounds.items()
        for at, x in enumerate(values)
    ]
    return together(*frames)


BAND = {
    f"{role}": tuple(f"{m} {k}" for k in range(4))
    for role, m in (("wider", "A"), ("narrower", "B"))
}

READ: dict[str, tuple[str, pd.DataFrame, dict[str, Any]]] = {
    "ordering": ("ordering", of_nlpd(z=0.1, a=-0.1), NLPD | PAIR),
    "equality": ("equality", of_nlpd(z=0.001, a=0.1), NLPD | PAIR),
    "monotone": ("monotone", rising(0.5, 0.4, 0.3), NLPD | {"method": "A", "setting": "inducing"}),
    "number": (
        "number",
        planted({"A": around(0.3)}),
        NLPD | {"method": "A", "printed": 0.3, "gap": 0.1},
    ),
    "within": (
        "within",
        together(planted({"A": [0.92, 0.98]}, data="z"), planted({"A": [0.1]}, data="a")),
        NLPD | {"method": "A", "at_least": 0.9},
    ),
    "every-run": ("every-run", planted({"A": [1.0], "B": [0.0]}, "elbo"), BOUND | PAIR),
    "suffices": (
        "suffices",
        of_nlpd(z=0.1, a=0.2),
        NLPD | {"ladder": {"M = 1": ("B", "A"), "M = 2": ("A", "B")}},
    ),
    "average": (
        "average",
        of_sets(A=0.1, B=0.2),
        {"metric": "nmae", "statistic": "mean", "method": "A", "field": ("B",), "printed": 1.0},
    ),
    "leads": (
        "leads",
        of_sets(A=0.1, B=0.2),
        {"metric": "nmae", "statistic": "mean", "method": "A", "field": ("A", "B")},
    ),
    "spread": (
        "spread",
        together(
            *(planted({"A": [x] * 3, "B": [3 * x] * 3}, "nmse", data=f"y{x}") for x in (3, 2, 1))
        ),
        {"metric": "nmse", "methods": ("A", "B")},
    ),
    "band": ("band", rated(A=[-1.0, -1.0, -1.0, -1.0], B=[-9.0, -1.0, -9.0, -9.0]), BOUND | BAND),
    "converges": (
        "converges",
        together(converging({"A": [1, 7]}, "z"), converging({"A": [1, 2]}, "a")),
        {"method": "A", "at_most": 10},
    ),
    "sooner": ("sooner", converging({"A": [1, 2], "B": [10, 30]}), PAIR),
    "drifts": (
        "drifts",
        drifting({"variance": [9.0, 0.0, 0.0, 0.2]}),
        {"method": "A", "at_least": 0.1},
    ),
}  # fmt: skip
"""Of each predicate a frame of the rows that it is about."""


def wild(frame: pd.DataFrame) -> pd.DataFrame:
    """The same rows with numbers far off, up and down in turn, and runs that converge at once."""
    moved = frame.copy()
    for name in {"nlpd", "elbo", "nmae", "nmse"} & set(frame):
        moved[name] += 1e3 * np.resize([-1.0, 1.0, 2.0], len(frame))
    if "bound_trace" in frame:
        moved["bound_trace"] = converging({"A": [0.6] * len(frame)})["bound_trace"].tolist()
    if "theta" in frame:
        moved["theta"] = [10 * theta[::-1].set_index(theta.index) for theta in frame["theta"]]
    return moved


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("others", ["replicas", "another method"])
def test_rows_of_others_change_nothing(name: str, others: str) -> None:
    predicate, frame, keys = READ[name]
    more = wild(frame)
    more = more.assign(perturbation=1e-15) if others == "replicas" else more.assign(method="Z")
    alone = judged(frame, predicate, ONCE, **keys)
    assert alone.grade != OPEN
    for whole in (together(more, frame), together(frame, more)):
        assert judged(whole, predicate, ONCE, **keys) == alone
    if "data" in frame and len({effect.of for effect in alone.effects} & set(frame["data"])) > 1:
        assert [effect.of for effect in alone.effects] == list(frame["data"].unique())


def test_a_replica_of_runs_that_differ_says_nothing_where_it_fails() -> None:
    """A replica that failed has no difference to hold against the run's own."""
    plain = of_nlpd(a=0.1)
    failed = planted({"A": [None] * 5, "B": around(0.6)}, perturbation=1e-15)
    assert judged(together(plain, failed), "ordering", **NLPD, **PAIR).grade == YES


NUMBER = NLPD | {"method": "A"}
DRIFT = {"method": "A", "at_least": 0.1}
MOVED: dict[str, tuple[str, pd.DataFrame, dict[str, Any], tuple[Grade, Grade, Grade]]] = {
    "no worse": ("ordering", of_nlpd(a=-0.008), NLPD | PAIR | {"at_least": True}, (NO, YES, YES)),
    "equality": ("equality", of_nlpd(a=0.008), NLPD | PAIR, (NO, YES, YES)),
    "number": (
        "number",
        planted({"A": around(0.3)}),
        NUMBER | {"printed": 0.308, "gap": 1.0},
        (NO, YES, YES),
    ),
    "every run": (
        "every-run",
        planted({"A": [0.06], "B": [0.0]}, "elbo"),
        BOUND | PAIR | {"wanted": "equal"},
        (NO, YES, YES),
    ),
    "spread": (
        "spread",
        together(
            *(planted({"A": [x] * 3, "B": [1.15 * x] * 3}, "nmse", data=f"{x}") for x in (1, 2, 3))
        ),
        {"metric": "nmse", "methods": ("A", "B")},
        (YES, YES, NO),
    ),
    "converges by": (
        "converges",
        converging({"A": [15]}),
        {"method": "A", "at_most": 10},
        (NO, NO, YES),
    ),
    "converges from": (
        "converges",
        converging({"A": [15]}),
        {"method": "A", "at_least": 10},
        (YES, YES, NO),
    ),
    "drifts": ("drifts", drifting({"variance": [9.0, 0.0, 0.0, 0.15]}), DRIFT, (YES, YES, NO)),
    "identity": (
        "identity",
        pd.DataFrame({"residual": [1.5e-8]}),
        {"tolerance": 1e-8},
        (NO, NO, YES),
    ),
    "differs": ("differs", pd.DataFrame({"residual": [0.15]}), {"at_least": 0.1}, (YES, YES, NO)),
    "a ratio's least": ("ratio", timed(5, 6), PAIR | {"at_least": 4.0}, (YES, YES, DIRECTION)),
    "a ratio's most": (
        "ratio",
        timed(5, 6),
        PAIR | {"at_least": 1.2, "at_most": 8.0},
        (DIRECTION, YES, YES),  # of a logarithm half as large, and twice
    ),
    "as long": ("as-long", timed(1.15, 1.16), PAIR, (NO, NO, YES)),
    "exponent": (
        "exponent",
        pd.DataFrame({"M": [10, 100], "flops": [1.0, 10**2.08]}),
        {"cost": "flops", "size": "M", "power": 2.0},
        (NO, NO, YES),
    ),
}
"""Grades with every region and threshold halved, as declared, and doubled."""


@pytest.mark.parametrize("name", MOVED)
def test_the_threshold_of_the_rules_scales_every_bound(name: str) -> None:
    predicate, frame, keys, grades = MOVED[name]
    found = [judged(frame, predicate, Rules(threshold=x), **keys).grade for x in (0.5, 1.0, 2.0)]
    assert tuple(found) == grades


def test_a_drift_is_that_of_one_hyperparameter_from_convergence_on() -> None:
    """The largest range, not the sum of several; the iteration of convergence counts, those before not."""
    both = drifting({"variance": [9.0, 0.0, 0.0, 0.06], "noise_variance": [0.0, 0.0, 0.06, 0.0]})
    (effect,) = judged(both, "drifts", **DRIFT).effects
    assert (effect.value, effect.held) == (pytest.approx(0.06), False)
    (at_once,) = judged(drifting({"variance": [9.0, 0.3, 0.0, 0.0]}), "drifts", **DRIFT).effects
    assert at_once.value == pytest.approx(0.3)


def of_effect(effect: Effect) -> tuple[Any, ...]:
    return effect.of, effect.value, effect.low, effect.high


def test_of_an_even_number_of_runs_the_middle_is_the_lower_one() -> None:
    """An infinite time has no mean with a finite one."""
    keys = {"method": "A", "at_least": 0.9}
    (within,) = judged(planted({"A": [0.91, 0.99]}), "within", **NLPD, **keys).effects
    assert of_effect(within) == ("a", 0.91, 0.91, 0.99)
    (sooner,) = judged(
        converging({"A": [10, 10], "B": [20, NOT_REACHED]}), "sooner", **PAIR
    ).effects
    assert of_effect(sooner) == ("a", 2.0, 2.0, NOT_REACHED)


def test_what_is_shown_of_two_tolerances_is_the_looser_one() -> None:
    frame = converging({"A": [(1, 2, NOT_REACHED)], "B": [(10, 30, NOT_REACHED)]})
    (effect,) = judged(frame, "sooner", **PAIR).effects
    assert of_effect(effect) == ("a", 10.0, 10.0, 10.0)


def test_effects_name_the_pair_or_the_settings_that_they_compare() -> None:
    three = planted({"A": around(0.3), "B": reversed_around(0.4), "C": around(0.5)})
    found = judged(three, "ordering", **NLPD, methods=("A", "B", "C"))
    assert [effect.of for effect in found.effects] == ["a: A against B", "a: B against C"]
    two = judged(three, "ordering", **NLPD, **PAIR)
    assert [effect.of for effect in two.effects] == ["a"]
    monotone = judged(rising(0.5, 0.4, 0.3), "monotone", **NLPD, method="A", setting="inducing")
    assert [effect.of for effect in monotone.effects] == ["a, 10 to 11", "a, 11 to 12"]
    assert [effect.value for effect in monotone.effects] == pytest.approx([0.1, 0.1], rel=1e-12)


def test_ranks_of_an_ordering_go_by_what_is_better() -> None:
    sets = [
        planted({"A": [2.0] * 2, "B": [1.0] * 2}, "heldout_elbo", data=f"{x}") for x in range(5)
    ]
    found = judged(together(*sets), "ordering", metric="heldout_elbo", **PAIR)
    assert found.ranks is not None
    assert [(rank.method, rank.mean) for rank in found.ranks.by_method] == [("A", 1.0), ("B", 2.0)]


@pytest.mark.parametrize("statistic", ["mean", "median", "rank"])
def test_a_data_set_that_one_of_the_field_did_not_run_takes_no_part(statistic: str) -> None:
    whole = of_sets(A=0.1, B=0.2)
    alone = planted({"A": [0.01, 0.01]}, "nmae", data="of A alone")
    keys = {"metric": "nmae", "statistic": statistic, "method": "A", "field": ("A", "B")}
    more = together(whole, alone)
    assert judged(more, "leads", ONCE, **keys) == judged(whole, "leads", ONCE, **keys)
    (found,) = judged(more, "average", ONCE, **keys, printed=1.0).effects
    (expected,) = judged(whole, "average", ONCE, **keys, printed=1.0).effects
    assert of_effect(found) == of_effect(expected)


def test_a_spread_lasts_if_three_times_its_change_leaves_it_and_says_what_too_few_show() -> None:
    sets = [planted({"A": [x] * 3, "B": [3 * x] * 3}, "nmse", data=f"y{x}") for x in (1, 2, 3)]
    frame = together(*sets)
    keys = {"metric": "nmse", "methods": ("A", "B")}
    assert judged(frame, "spread", **keys).grade == YES
    # a quarter earlier the ratio of B's spread to A's was 2.4, or 1.9
    for factor, grade in ((0.8, YES), (0.63, OPEN)):
        before = frame["nmse"] * np.where(frame["method"] == "B", factor, 1.0)
        moved = frame.assign(**{"nmse, end": frame["nmse"], "nmse, before": before})
        assert judged(moved, "spread", Rules(drift=3.0), **keys).grade == grade
    few = frame[frame["fold"] == 0]
    (effect,) = judged(few, "spread", **keys).effects
    assert (effect.value, effect.held) == (pytest.approx(3.0), None)


@pytest.mark.parametrize(
    ("levels", "at_least", "outcome"),
    [
        ((0.5, -0.05), True, "no worse"),
        ((0.5, -0.05), False, "undecided"),
        ((0.5, -0.3), True, "undecided"),
        ((0.05, -0.05), False, "equal"),
    ],
)
def test_splits_must_agree_on_what_is_claimed_of_a_bound(
    levels: tuple[float, ...], at_least: bool, outcome: str
) -> None:
    """For "no worse" that each is above minus the region of 0.08; equal ones need no sign."""
    splits = [
        planted({"A": around(x, 1e-6), "B": reversed_around(0.0, 1e-6)}, "elbo", units="seed")
        for x in levels
    ]
    frame = together(*(split.assign(fold=at) for at, split in enumerate(splits)))
    (effect,) = judged(frame, "ordering", **BOUND, **PAIR, at_least=at_least).effects
    assert effect.outcome.replace("_", " ") == outcome
