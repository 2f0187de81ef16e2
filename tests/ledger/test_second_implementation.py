"""Two implementations of the claims' statistics agree on the committed records, and each rule matters.

The second one reads docs/claims.md, docs/claim-rules.md and the committed files, and nothing of the package.
"""

from __future__ import annotations

import functools
import math
from pathlib import Path
from typing import Any

import baycomp  # type: ignore[import-untyped]
import numpy as np
import pandas as pd
import pytest
from second_cells import NotRun, Run
from second_implementation import Graded, core_parts, grade_part, grade_runs
from second_statistics import Rules, interval

from svgpbench.papers import Paper, load_paper
from svgpbench.papers.evidence.records import Evidence
from svgpbench.papers.grades import Grade, Judgement
from svgpbench.papers.grading import evidence_of
from svgpbench.papers.predicates.all_predicates import AnyPredicate, Ordering
from svgpbench.papers.predicates.traces import Sooner
from svgpbench.stats.convergence import bound_trace
from svgpbench.stats.differences import Sample

RESULTS = Path(__file__).parents[2] / "results"
PARTS = {(claim, place): (paper, part) for paper, claim, place, part in core_parts()}

MATTERS = {
    "corrected": ("adam2021-15", "nlpd"),
    "non_inferiority": ("adam2021-16", "nlpd"),
    "censored_says_nothing": ("kobe2021-11", "sooner"),
    "larger_start": ("kobe2021-09", "sooner"),
    "smoothed": ("kobe2021-11", "sooner"),
}
"""By rule, a core part whose numbers or outcomes are others under its opposite."""


@functools.cache
def paper_of(name: str) -> Paper:
    return load_paper(name)


@functools.cache
def evidence(paper: str, artefact: str) -> Evidence | None:
    whole = paper_of(paper)
    return evidence_of(whole, whole.artefact(artefact), RESULTS)


def first_implementation(paper: str, claim: str, place: int) -> Judgement | None:
    """What the package says of a part; None where records are missing."""
    (stated,) = (one for one in paper_of(paper).claims if one.id == claim)
    part: AnyPredicate = stated.parts[place]
    found = evidence(paper, part.artefact)
    if found is None or found.why_not:
        return None
    return part.judge(found.rows_of(part.compared))


def assert_same(first: Judgement, second: Graded) -> None:
    assert first.grade == second.grade
    assert len(first.effects) == len(second.effects)
    for one, (case, other) in zip(first.effects, second.effects.items(), strict=True):
        assert one.outcome == other.outcome, case
        for name in ("value", "low", "high"):
            ours, theirs = getattr(one, name), getattr(other, name)
            assert (ours is None) == (theirs is None), (case, name)
            if ours is None or ours == theirs or (math.isnan(ours) and math.isnan(theirs)):
                continue
            width = abs(one.high - one.low) if one.low is not None and one.high is not None else 0.0
            assert abs(ours - theirs) <= 1e-9 * max(1.0, width), (case, name)


def by_key(claim: str, key: str) -> tuple[str, str, int, dict[str, Any]]:
    ((place, paper, part),) = (
        (place, paper, part)
        for (of, place), (paper, part) in PARTS.items()
        if of == claim and part.get("key") == key
    )
    return paper, claim, place, part


def agree(paper: str, claim: str, place: int, part: dict[str, Any], rules: Rules) -> bool:
    """Assert that both say the same; False where records of the part are missing."""
    first = first_implementation(paper, claim, place)
    try:
        second = grade_part(paper, part, rules)
    except NotRun:
        assert first is None or (
            first.grade == Grade.open and all(effect.value is None for effect in first.effects)
        )
        return False
    assert first is not None
    assert_same(first, second)
    return True


def test_core_parts_of_records_have_the_same_grades_outcomes_values_and_intervals() -> None:
    compared = []
    for (claim, place), (paper, part) in PARTS.items():
        if agree(paper, claim, place, part, Rules()):
            compared.append(claim)
    assert len(compared) >= 45
    assert len(set(compared)) >= 29


@pytest.mark.parametrize("rule", MATTERS)
def test_the_comparison_fails_where_a_rule_is_the_opposite(rule: str) -> None:
    part = by_key(*MATTERS[rule])
    assert agree(*part, Rules())
    with pytest.raises(AssertionError):
        agree(*part, Rules()._replace(**{rule: False}))


# --- cells planted by hand: ten iterations, five starts, methods A and B ---------------------------


def planted(metric: str, a: float, b: float, **changes: Any) -> list[Run]:
    """Runs of A and B whose final numbers are these, 1e-3 apart among starts."""
    found = []
    for seed in range(changes.pop("seeds", 5)):
        for method, level in (("A", a), ("B", b)):
            number = level + 1e-3 * seed * (method == "A")
            bounds = np.array([-90.0, -50.0, -10.0, *[-5.0] * 7]) + number * (metric == "elbo")
            training: dict[str, Any] = {
                "kind": "em", "em_iterations": 10, "batch_size": None, "learn": [],
                "rows": changes.get("rows"),
            }  # fmt: skip
            config = {
                "training": training,
                "inducing": {"count": 5, "gamma": None},
                "method": {"name": "t-svgp", "options": {}},
            }
            metrics = {"elbo": float(bounds[-1]), metric: number}
            metrics |= {"nmae": changes.get("nmae", 0.5)}
            trace = {"iteration": np.arange(1.0, 11.0), "elbo": bounds}
            perturbed = changes.get("perturbed", False)
            found.append(
                Run("one", method, 0, seed, perturbed, True, config, 1000, 100, metrics, trace)
            )
    return found


def moved(run: Run, looks: dict[int, float]) -> Run:
    """The run with other bounds at some looks."""
    bounds = run.trace["elbo"].copy()
    for look, bound in looks.items():
        bounds[look] = bound
    metrics = run.metrics | {"elbo": float(bounds[-1])}
    return run._replace(trace=run.trace | {"elbo": bounds}, metrics=metrics)


def frame_of(runs: list[Run]) -> pd.DataFrame:
    """The same cells as the package reads them."""
    best = max(run.trace["elbo"].max() for run in runs)
    rows = []
    for run in runs:
        trace = bound_trace(list(run.trace["iteration"]), list(run.trace["elbo"]), run.minibatches)
        covered = run.config["training"]["rows"] or run.n_train
        trace = trace._replace(best=float(best), region=1e-3 * covered)
        rows.append(
            {
                "data": run.case, "method": run.method, "split_seed": 0, "fold": run.split,
                "seed": run.seed, "perturbation": 1e-15 if run.perturbed else 0.0, "status": "ok",
                "n_train": run.n_train, "n_test": run.n_test, "n_bound": covered,
                "bound_trace": trace, "bound_rise": trace.rise, "bound_fall": trace.fall,
                **run.metrics,
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def both(part: AnyPredicate, runs: list[Run], rules: Rules) -> None:
    """Assert that both implementations say the same of planted runs."""
    stated = part.model_dump(exclude_defaults=True) | {"predicate": part.predicate}
    assert_same(part.judge(frame_of(runs)), grade_runs(stated, {}, runs, rules))


KEYS: dict[str, Any] = {"says": "", "artefact": "x", "methods": ("A", "B")}


def better(metric: str, **keys: Any) -> Ordering:
    return Ordering(predicate="ordering", metric=metric, **KEYS, **keys)


FEW_ROWS = planted("elbo", 0.5, 0.0, rows=100)
NOT_LEARNED = planted("mae", 0.1, 0.2, nmae=0.99)
STEADY = planted("mae", 0.1, 0.2)
FALLS = [moved(STEADY[0], {8: -5.0, 9: -9.0}), *STEADY[1:]]
CHAOTIC = [*STEADY, *planted("mae", 0.5, 0.2, perturbed=True)]
CENSORED = [moved(run, {9: -60.0}) for run in STEADY[:-1]] + [STEADY[-1]]
PLANTED: dict[str, tuple[AnyPredicate, list[Run]]] = {
    "rows_covered": (better("elbo", budget="equal"), FEW_ROWS),
    "not_learned": (better("mae", budget="equal"), NOT_LEARNED),
    "unstable": (better("mae"), FALLS),
    "chaos": (better("mae", budget="equal"), CHAOTIC),
    "non_inferiority": (
        better("mae", budget="equal", at_least=True),
        planted("mae", 0.197, 0.2),
    ),
    "censored_says_nothing": (Sooner(predicate="sooner", **KEYS), CENSORED),
}
"""By rule, a part and cells of which something else is said under its opposite."""


@pytest.mark.parametrize("rule", PLANTED)
def test_the_comparison_fails_on_planted_cells_where_a_rule_is_the_opposite(rule: str) -> None:
    part, runs = PLANTED[rule]
    both(part, runs, Rules())
    with pytest.raises(AssertionError):
        both(part, runs, Rules()._replace(**{rule: False}))


def test_a_worse_far_below_the_region_is_not_chaotic() -> None:
    replicas = planted("mae", 0.3 + 1e-9, 0.2, perturbed=True)
    part = better("mae", budget="equal", at_least=True)
    both(part, [*planted("mae", 0.3, 0.2), *replicas], Rules())


def test_rounding_must_move_the_mean_of_the_cells_that_ran_both_ways() -> None:
    first, *others = planted("mae", 0.1, 0.2)
    plain = [first._replace(metrics=first.metrics | {"mae": 0.19}), *others]
    replicas = planted(
        "mae", 0.15, 0.2, perturbed=True, seeds=1
    )  # .01 moves to .05, the mean is .08
    both(better("mae", budget="equal"), [*plain, *replicas], Rules())


@pytest.mark.parametrize("folds", [5, 10])
def test_the_interval_of_splits_is_that_of_the_correlated_t_test(folds: int) -> None:
    x, y = np.random.default_rng(folds).normal(size=(2, folds))
    overlap = 1 / (folds - 1)
    value, low, high = interval(y - x, overlap)
    sample = Sample(y - x, overlap, "splits")
    assert sample.mean == pytest.approx(value, abs=1e-12)
    assert sample.interval == pytest.approx((low, high), abs=1e-9)
    for end, below in ((low, 0.025), (high, 0.975)):
        left, _ = baycomp.CorrelatedTTest(x, y - end).probs()
        assert left == pytest.approx(below, abs=1e-9)
    left, inside, right = baycomp.CorrelatedTTest(x, y - value, rope=(high - low) / 2).probs()
    assert (left, inside, right) == pytest.approx((0.025, 0.95, 0.025), abs=1e-9)
