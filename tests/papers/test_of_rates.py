"""Which rates a method stands, and the band that serves it, on walks and cells planted by hand."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import pandas as pd
import pytest
from planted_grades import MIXED, NO, OPEN, YES
from pydantic import ValidationError

from svgpbench.papers.grades import Grade, Judgement
from svgpbench.papers.predicates.rates import Band, Stands

RATES = (0.1, 0.3, 1.0)
Walks = Sequence[str]
"""By rate, a letter a seed: `l` lived, `d` died."""
AT_MOST_3, AT_MOST_1, ALL = ("lll", "lll", "d"), ("lll", "dl", "d"), ("l", "l", "lll")


def walks(**methods: Walks) -> pd.DataFrame:
    rows = [
        ("one", method, rate, seed, end == "l")
        for method, by_rate in methods.items()
        for rate, ends in zip(RATES, by_rate, strict=True)
        for seed, end in enumerate(ends)
    ]
    return pd.DataFrame(rows, columns=["data", "method", "rate", "seed", "lived"])


def stood(*problems: Mapping[str, Walks]) -> Judgement:
    frames = [walks(**problem).assign(data=f"p{at}") for at, problem in enumerate(problems)]
    part = Stands(says="more", artefact="map", predicate="stands", methods=("A", "B"))
    return part.judge(pd.concat(frames, ignore_index=True))


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        (AT_MOST_3, AT_MOST_1, YES),
        (AT_MOST_1, AT_MOST_3, NO),
        (AT_MOST_3, AT_MOST_3, NO),  # equal
        (ALL, ALL, NO),  # both stand the largest rate that was tried
        (("l", "ll", "d"), AT_MOST_1, OPEN),  # a third seed might die of 0.3
        (AT_MOST_3, ("l", "d", "d"), YES),  # one death is enough
        (AT_MOST_1, ("l", "l", "d"), OPEN),
        (AT_MOST_3, ("l", "l", ""), OPEN),  # B may yet live with 1
        (("d", "d", "d"), ("d", "d", "d"), NO),
        (("d", "d", "d"), AT_MOST_1, NO),
    ],
)
def test_the_largest_rate_that_all_of_three_seeds_live_with(
    a: Walks, b: Walks, verdict: Grade
) -> None:
    assert stood({"A": a, "B": b}).grade == verdict


def test_over_problems_by_rule_5_and_only_where_both_walked() -> None:
    better, equal = {"A": AT_MOST_3, "B": AT_MOST_1}, {"A": ALL, "B": ALL}
    assert stood(better, better, equal).grade == YES
    assert stood(better, equal).grade == MIXED
    assert stood(better, equal, equal).grade == NO
    alone = stood(better, {"A": ALL})
    assert (alone.grade, [effect.of for effect in alone.effects]) == (YES, ["p0"])
    (effect,) = alone.effects
    assert effect.note == "γ = 0.3 against γ = 0.1"
    assert (effect.low, effect.high) == pytest.approx((math.log10(3), math.log10(3)))
    assert (
        stood({"A": ("l", "l", "d"), "B": AT_MOST_1})
        .effects[0]
        .note.endswith("; fewer than 3 seeds at one of them")
    )


GRID = (0.01, 0.1, 1.0, 10.0)
LABELS = {name: tuple(f"{name} {rate:g}" for rate in GRID) for name in ("A", "B")}


def cells(bounds: Mapping[str, Sequence[float | None]], seeds: int = 3) -> pd.DataFrame:
    """Each method's bound at each rate with seed 0, one lower with each further seed; 500 training data."""
    rows = [
        {
            "data": "one", "method": f"{name} {rate:g}", "e_rate": rate, "split_seed": 0, "fold": 0,
            "seed": seed, "perturbation": 0.0, "n_train": 900, "n_bound": 500,
            "status": "ok" if bound else "not_pd", "elbo": bound - seed if bound else None,
        }
        for (name, by_rate), seed in itertools.product(bounds.items(), range(seeds))
        for rate, bound in zip(GRID, by_rate, strict=True)
    ]  # fmt: skip
    return pd.DataFrame(rows).astype({"elbo": float})


def banded(frame: pd.DataFrame) -> Judgement:
    part = Band(
        says="wider", artefact="rates", predicate="band", metric="elbo",
        wider=LABELS["A"], narrower=LABELS["B"],
    )  # fmt: skip
    return part.judge(frame)


WIDE, NARROW, POINT = (-10.0, -10.4, -10.2, -99.0), (-99, -10, -99, -99.0), (-99, -10, -10.3, None)


@pytest.mark.parametrize(
    ("a", "b", "verdict", "note"),
    [
        ((-10.0, -10.4, -10.2, -10.0), NARROW, YES, "0.01 to 10 against 0.1 to 0.1"),
        (NARROW, (-10.0, -10.4, -10.2, -10.0), NO, "0.1 to 0.1 against 0.01 to 10"),
        (POINT, POINT, NO, "0.1 to 1 against 0.1 to 1"),
        (POINT, NARROW, OPEN, "0.1 to 1 against 0.1 to 0.1"),  # the true ends may be anywhere
        ((-10.0, -10.6, -10.0, None), NARROW, OPEN, "0.01 to 0.01 against 0.1 to 0.1"),
        (WIDE, (-10.0, -10.4, None, None), OPEN, "0.01 to 1 against 0.01 to 0.1"),
    ],
)
def test_the_band_of_rates_within_the_region_of_the_best(
    a: Sequence[float | None], b: Sequence[float | None], verdict: Grade, note: str
) -> None:
    finding = banded(cells({"A": a, "B": b}))
    assert (finding.grade, finding.effects[0].note) == (verdict, note)


def test_a_rate_serves_only_where_it_serves_every_seed() -> None:
    frame = cells({"A": (-10.0, -10.0, -10.0, -10.0), "B": NARROW})
    frame.loc[(frame["method"] == "A 1") & (frame["seed"] == 2), "elbo"] = -14.0
    assert banded(frame).effects[0].note == "0.01 to 0.1 against 0.1 to 0.1"


def test_of_two_runs_of_rates_the_widest_is_the_band() -> None:
    frame = cells({"A": (-10.0, -99.0, -10.0, -10.0), "B": NARROW})
    assert banded(frame).effects[0].note == "1 to 10 against 0.1 to 0.1"


def test_a_band_of_no_rate_and_too_few_seeds_are_open() -> None:
    frame = cells({"A": NARROW, "B": NARROW})
    for seed, rate in enumerate(GRID[:3]):  # each seed has another best rate
        frame.loc[(frame["seed"] == seed) & (frame["e_rate"] == rate), "elbo"] = 0.0
    assert banded(frame).effects[0].note == "no rate against no rate"
    assert banded(frame).grade == OPEN
    few = banded(cells({"A": WIDE, "B": NARROW}, seeds=2))
    assert (few.grade, few.effects[0].note) == (OPEN, "2 seeds where 3 decide")


@pytest.mark.parametrize("keys", [{"wider": ("A 1",)}, {"narrower": ("B 1",)}])
def test_a_band_of_one_rate_is_refused(keys: dict[str, tuple[str, ...]]) -> None:
    stated = {"wider": LABELS["A"], "narrower": LABELS["B"]} | keys
    with pytest.raises(ValidationError, match="at least 2 items"):
        Band(says="wider", artefact="rates", predicate="band", metric="elbo", **stated)
