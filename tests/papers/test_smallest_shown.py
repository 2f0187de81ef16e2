"""The smallest effect that runs could have shown: half of an interval, in the unit of the printed effect."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from planted_frames import planted, together
from planted_grades import part
from scipy import stats

from svgpbench.papers import Artefact
from svgpbench.papers.evidence.experiment import ExperimentFrame
from svgpbench.papers.grading import Part, _judged_part
from svgpbench.papers.predicates.predicate import AtTheEnd
from svgpbench.stats.differences import signed_rank_interval

GAINS = [0.01, 0.03, 0.02, 0.05, 0.04]
SAYS = "smallest effect these runs could show: "


def frame(metric: str, gains: list[float], data: str = "a", **more: Any) -> pd.DataFrame:
    """A's number is 2 in each fold or seed, and B's is larger by a gain."""
    units = "seed" if metric == "elbo" else "fold"
    losses = {"A": [2.0] * len(gains), "B": [2.0 + gain for gain in gains]}
    return planted(losses, metric, units=units, data=data, **more)


def half_width(gains: list[float], *, folds: bool = True) -> float:
    """Half of the interval, by SciPy: of folds of 20 rows beside 80, or of seeds."""
    n = len(gains)
    variance = float(np.var(gains, ddof=1)) * (1 / n + (20 / 80 if folds else 0.0))
    return float(stats.t.ppf(0.975, n - 1)) * math.sqrt(variance)


def shown(runs: pd.DataFrame, metric: str, predicate: str = "ordering", **keys: Any) -> str:
    stated = part(predicate, metric=metric, methods=("A", "B"), **keys)
    assert isinstance(stated, AtTheEnd)
    return stated.shown_by(stated.judge(runs).effects)


def test_it_is_half_the_interval_in_the_unit_that_data_sets_share() -> None:
    half = half_width(GAINS)
    assert shown(frame("nlpd", GAINS), "nlpd") == f"{SAYS}{half:.2g}"
    percent = 100 * half / (2.0 + float(np.mean(GAINS)))  # of B's mean
    assert shown(frame("mae", GAINS), "mae", "equality") == f"{SAYS}{percent:.2g} %"
    datum = half_width(GAINS, folds=False) / 80
    assert shown(frame("elbo", GAINS), "elbo") == f"{SAYS}{datum:.2g} nats per datum"


def test_the_printed_effect_stands_beside_it_and_a_smallest_effect_of_interest_moves_neither() -> (
    None
):
    percent = f"{100 * half_width(GAINS) / (2.0 + float(np.mean(GAINS))):.2g} %"
    expected = f"{SAYS}{percent} (printed: 0.34 %)"
    assert shown(frame("mae", GAINS), "mae", printed_effect=0.0034) == expected
    keys = {"printed_effect": 0.0034, "smallest_effect": 0.001}
    assert shown(frame("mae", GAINS), "mae", **keys) == expected
    several = shown(frame("mae", GAINS), "mae", printed_effect=[0.0034, 0.01, 0.007])
    assert several == f"{SAYS}{percent} (printed: 0.34 to 1 %)"


def test_of_several_data_sets_it_is_a_range_and_of_data_sets_as_units_one_number() -> None:
    wide = [3 * gain for gain in GAINS]
    two = together(frame("nlpd", GAINS), frame("nlpd", wide, "b"), frame("nlpd", [0.1], "c"))
    halves = f"{half_width(GAINS):.2g} to {half_width(wide):.2g}"
    assert shown(two, "nlpd") == f"{SAYS}{halves}"
    gains = [*GAINS, 0.02, -0.01]
    sets = together(*(frame("nlpd", [gain], f"set {at}") for at, gain in enumerate(gains)))
    _, low, high = signed_rank_interval(np.array(gains))
    assert shown(sets, "nlpd") == f"{SAYS}{(high - low) / 2:.2g}"


@pytest.mark.parametrize("gains", [[0.1], [0.1] * 4])
def test_without_an_interval_there_is_none(gains: list[float]) -> None:
    assert shown(frame("elbo", gains), "elbo") == ""
    assert shown(frame("nlpd", gains), "nlpd", "every-run") == ""


def of_part(runs: pd.DataFrame, **keys: Any) -> Part:
    artefact = Artefact(id="fig1", what="planted", settings="planted")
    stated = part("ordering", metric="nlpd", methods=("A", "B"), **keys)
    evidence = ExperimentFrame(runs.assign(cell_id="", label=runs["method"]))
    return _judged_part(stated, artefact, None, {"fig1": evidence})


def test_a_core_part_has_it_again_for_an_effect_that_lasts() -> None:
    runs = frame("nlpd", GAINS)
    before = runs["nlpd"].where(runs["method"] == "B", 2.004)  # A gained .004 in the last quarter
    runs = runs.assign(**{"nlpd, end": runs["nlpd"], "nlpd, before": before})
    half = half_width(GAINS)
    once = f"{SAYS}{half:.2g}"
    assert of_part(runs, core=True).shows == f"{once}; for one that lasts: {half + 3 * 0.004:.2g}"
    assert of_part(runs).shows == once  # a condition is graded at equal budgets alone
    still = runs.assign(**{"nlpd, before": runs["nlpd"]})
    assert of_part(still, core=True).shows == once
