"""Comparisons of two methods on several data sets, which are the units where none has an interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pandas as pd

from svgpbench.stats.differences import Judge, non_inferiority_outcome, signed_rank_interval
from svgpbench.stats.effects import Effect, Outcome, in_regions
from svgpbench.stats.measures import ShareOfGain
from svgpbench.stats.pairs import FAVOURED, NOT_TRACED, READ, PairedRuns
from svgpbench.stats.rules import Rules

FEWEST_SETS: Final = 6
"""The fewest data sets with a 95 % interval by signed ranks."""


def over_sets(
    cases: Sequence[PairedRuns], first: str, second: str, rules: Rules, judge: Judge
) -> list[Effect]:
    """Compare two methods on each data set; where none has an interval, data sets are the units.

    In that case the first effect is the middle difference over the data sets where both methods trained,
    with its interval by signed ranks, each set in the unit that data sets share. It takes six sets. The
    other effects show each set and do not count, unless a cell failed there.

    The question is then one of a tendency, so that any difference counts: `better` and `worse` are beyond 0,
    `equal`, `no better` and `no worse` are against the region. If the question is whether a decision lasts,
    one that favours a method is undecided if the method is unstable on more than half of the sets.
    """
    effects = [case.effect(first, second, rules, judge) for case in cases]
    lacking = [case.lacks_interval(first, second) for case in cases]
    means = {
        case.data: mean
        for case, effect, lacks in zip(cases, effects, lacking, strict=True)
        if lacks
        and effect.outcome != Outcome.same
        and (mean := case.in_shared_unit(first, second, rules)) is not None
    }
    # `same` has an interval, [0, 0], but no vote: it must not keep the sets from being the units
    decided = any(effect.low is not None and effect.outcome != Outcome.same for effect in effects)
    if len(means) < FEWEST_SETS or decided:
        return effects
    values, changes = np.array(list(means.values())).T
    # ranks, not Student's t: of seven sets one at 17 % would decide the mean by itself
    middle, low, high = signed_rank_interval(values)
    margin = rules.drift * abs(float(np.median(changes))) if rules.drift else 0.0
    low, high = low - margin, high + margin
    region = rules.threshold * cases[0].measure.smallest
    outcome, note = judge(low, high, region), f"{len(means)} data sets do not decide"
    if outcome in (Outcome.undecided, Outcome.no_better) and judge is not non_inferiority_outcome:
        outcome = judge(low, high, 0.0) if low > 0.0 or high < 0.0 else outcome
    if np.isnan(margin):
        outcome, note = Outcome.undecided, NOT_TRACED
    elif outcome != Outcome.undecided:
        note = ""
    if rules.drift and outcome in FAVOURED:
        favoured = (first, second)[FAVOURED[outcome]]
        unstable = sum(x.data in means and x.is_unstable(favoured, rules) for x in cases)
        if 2 * unstable > len(means):
            where = f"{unstable} of {len(means)} data sets"
            outcome, note = Outcome.undecided, f"{favoured} is unstable at its rate on {where}"
    left_out = [
        f"{name} did not train on {case.data}"
        for case in cases
        for name in case.untrained(first, second)
        if len(case.untrained(first, second)) < 2
    ]
    note = "; ".join(filter(None, [note, *left_out]))
    common = in_regions(middle, low, high, region)
    name = f"{len(means)} data sets"
    pooled = Effect(name, outcome, middle, low, high, note, in_regions=common)
    singles = [
        replace(effect, outcome=Outcome.unit, value=means[effect.of][0], note="")
        if effect.of in means
        else replace(effect, outcome=Outcome.unit, value=None)
        if lacks and effect.outcome != Outcome.same
        else effect
        for effect, lacks in zip(effects, lacking, strict=True)
    ]
    return [pooled, *singles]


def data_sets(
    frame: pd.DataFrame, measure: str, smallest: float | ShareOfGain | None = None
) -> list[PairedRuns]:
    """Return one `PairedRuns` for each data set of a frame, in their order."""
    own = {measure, *(f"{measure}, {key}" for key in ("end", "before", "median"))}
    narrow = frame[[name for name in frame if name in READ or name in own]]
    return [
        PairedRuns(str(data), cells, measure, smallest)
        for data, cells in narrow.groupby("data", sort=False)
    ]
