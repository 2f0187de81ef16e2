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
from second_implementation import Graded, combined, grade_part, grade_runs, parts_of_records
from second_statistics import VARIANTS, Rules, change_of, fall_of, interval, number_of

from svgpbench.papers import Paper, load_paper
from svgpbench.papers.evidence.base import EvidenceFrame
from svgpbench.papers.grades import Grade, Judgement
from svgpbench.papers.grading import judge, judge_part
from svgpbench.papers.predicates.all_predicates import AnyPredicate, Ordering
from svgpbench.papers.predicates.designs import MoreOften
from svgpbench.papers.predicates.rates import Band, Sensitive, Tolerates
from svgpbench.papers.predicates.traces import Sooner, Within
from svgpbench.stats.convergence import bound_trace
from svgpbench.stats.differences import Sample

RESULTS = Path(__file__).parents[2] / "results"
PARTS = {(claim, place): (paper, part) for paper, claim, place, part in parts_of_records()}

MATTERS = {
    "corrected": ("adam2021-15", "nlpd"),
    "larger_start": ("kobe2021-09", "sooner"),
    "raw_start": ("kobe2021-13", "ngd"),
    "smoothed": ("kobe2021-11", "sooner"),
}
"""By rule that no cells of `PLANTED` show, a core part of which something else is said under its opposite."""


@functools.cache
def paper_of(name: str) -> Paper:
    return load_paper(name)


@functools.cache
def evidence(paper: str, artefact: str) -> EvidenceFrame | None:
    whole = paper_of(paper)
    declared = whole.artefact(artefact)
    return declared.recorded and declared.recorded.load(whole, declared, RESULTS)


def evidence_of_part(
    paper: str, claim: str, place: int
) -> tuple[AnyPredicate, pd.DataFrame] | None:
    """Return a part and the rows that the package reads; None where records are missing."""
    (stated,) = (one for one in paper_of(paper).claims if one.id == claim)
    part: AnyPredicate = stated.parts[place]
    found = evidence(paper, part.artefact)
    if found is None or found.why_not:
        return None
    return part, found.rows_of(part.compared)


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
            low, high = (0.0, 0.0) if one.low is None or one.high is None else (one.low, one.high)
            width = 0.0 if math.inf in (low, high) else abs(high - low)
            assert abs(ours - theirs) <= 1e-9 * max(abs(ours), width, 1e-3), (case, name)


def by_key(claim: str, key: str) -> tuple[str, str, int, dict[str, Any]]:
    ((place, paper, part),) = (
        (place, paper, part)
        for (of, place), (paper, part) in PARTS.items()
        if of == claim and part.get("key") == key
    )
    return paper, claim, place, part


def opposite(rule: str) -> Rules:
    changed: Any = {rule: False}
    return Rules()._replace(**changed)


@functools.cache
def second_grade(claim: str, place: int, variant: str) -> str:
    """Grade a part by the second implementation under a variant of the rules."""
    paper, part = PARTS[claim, place]
    return grade_part(paper, part, VARIANTS.get(variant)).grade


def agree(paper: str, claim: str, place: int, part: dict[str, Any], rules: Rules) -> bool:
    """Assert that both say the same; False where records of the part are missing."""
    first = evidence_of_part(paper, claim, place)
    try:
        second = grade_part(paper, part, rules)
    except NotRun:
        assert first is None
        return False
    if first is None:  # records that fit what is stated but differ among each other
        return False
    judgement, variants = judge_part(*first)
    assert_same(judgement, second)
    if rules == Rules():
        for variant, varied in variants.items():
            assert varied.grade == second_grade(claim, place, variant), variant
    return True


LEAST = {
    "adam2021": 9,
    "cheng2017": 4,
    "cortinovis2026": 1,
    "kobe2021": 14,
    "pescador2026": 2,
    "salimbeni2018": 9,
    "titsias2025": 8,
}
"""Claims of each paper with a part that both implementations grade, at least."""


@pytest.mark.parametrize("paper", LEAST)
def test_parts_have_the_same_grades_outcomes_values_and_intervals_also_under_other_rules(
    paper: str,
) -> None:
    compared = []
    for (claim, place), (of, part) in PARTS.items():
        if of != paper:
            continue
        if agree(paper, claim, place, part, Rules()):
            compared.append(claim)
    assert len(set(compared)) >= LEAST[paper]


@pytest.mark.parametrize("paper", LEAST)
def test_claims_have_the_same_grade_also_under_other_rules(paper: str) -> None:
    """Combine the grades of core parts, for claims that rest on records alone."""
    whole = paper_of(paper)
    claims = []
    for claim in whole.claims:
        core = [place for place, part in enumerate(claim.parts) if part.core]
        records = all((claim.id, place) in PARTS for place in core)
        if core and records:
            claims.append((claim, core))
    for (claim, core), judged in zip(
        claims, judge(whole, [claim for claim, _ in claims], RESULTS), strict=True
    ):
        if claim.untestable or judged.grade == Grade("not run"):
            continue
        grades = {"": judged.grade, **judged.steadiness}
        for variant, grade in grades.items():
            grades_of_parts = (second_grade(claim.id, place, variant) for place in core)
            assert grade == combined(grades_of_parts, Rules()), (claim.id, variant)


@pytest.mark.parametrize("rule", MATTERS)
def test_the_comparison_fails_where_a_rule_is_the_opposite(rule: str) -> None:
    paper, claim, place, part = by_key(*MATTERS[rule])
    first = evidence_of_part(paper, claim, place)
    assert first is not None
    judgement = first[0].judge(first[1])
    assert_same(judgement, grade_part(paper, part))
    with pytest.raises(AssertionError):
        assert_same(judgement, grade_part(paper, part, opposite(rule)))


# --- cells planted by hand: ten iterations, five starts, methods A and B ---------------------------

LEARNED = {"nmae": 0.5}
CLASSES = "sonar"  # 0.5337 of its rows are of one class


def planted(metric: str, *levels: float, **changes: Any) -> list[Run]:
    """Runs of A, B, … whose final numbers are these; those of A are `apart` among starts."""
    found = []
    seeds, apart = changes.get("seeds", 5), changes.get("apart", 1e-3)
    names = changes.get("names", "ABC")
    for seed in range(seeds):
        for method, level in zip(names, levels, strict=False):
            number = level + apart * seed * (method == names[0])
            bounds = np.array([-90.0, -50.0, -10.0, *[-5.0] * 7]) + number * (metric == "elbo")
            training: dict[str, Any] = {
                "kind": "em", "em_iterations": 10, "batch_size": changes.get("batch"), "learn": [],
                "rows": changes.get("rows"), "m_rate": changes.get("rates", {}).get(method),
            }  # fmt: skip
            config = {
                "data": {"name": CLASSES},
                "training": training,
                "inducing": {"count": 5, "gamma": None},
                "method": {"name": "t-svgp", "options": {}},
            }
            scores = {metric: number, **changes.get("scores", LEARNED)}
            trace = {"iteration": np.arange(1.0, 11.0), "elbo": bounds}
            trace |= {name: np.full(10, x) for name, x in scores.items() if name != "elbo"}
            case, perturbed = changes.get("case", "one"), changes.get("perturbed", False)
            where = (case, method, 0, seed, perturbed, True, config, 1000, 100)
            found.append(Run(*where, scores | {"elbo": float(bounds[-1])}, trace))
    return found


def moved(run: Run, looks: dict[int, float], metric: str = "elbo") -> Run:
    """The run with other numbers at some looks."""
    numbers = run.trace[metric].copy()
    for look, number in looks.items():
        numbers[look] = number
    metrics = run.metrics | {metric: float(numbers[-1])}
    return run._replace(trace=run.trace | {metric: numbers}, metrics=metrics)


def of(method: str, runs: list[Run], looks: dict[int, float], metric: str = "elbo") -> list[Run]:
    """The runs, of which those of one method have other numbers at some looks."""
    return [moved(run, looks, metric) if run.method == method else run for run in runs]


def frame_of(runs: list[Run]) -> pd.DataFrame:
    """The same cells as the package reads them."""
    best: dict[tuple[Any, ...], float] = {}
    for run in runs:
        one = bound_trace(list(run.trace["iteration"]), list(run.trace["elbo"]), run.minibatches)
        key = (run.case, *run.key)
        best[key] = max(best.get(key, -math.inf), float(np.nanmax(one.bound)))
    rows = []
    for run in runs:
        trace = bound_trace(list(run.trace["iteration"]), list(run.trace["elbo"]), run.minibatches)
        rows_covered = run.config["training"]["rows"] or run.n_train
        trace = trace._replace(best=best[run.case, *run.key], region=1e-3 * rows_covered)
        ends: dict[str, float] = {}
        for metric in run.metrics:
            end = number_of(run, metric, "", False, Rules())
            ends[f"{metric}, end"] = end
            ends[f"{metric}, before"] = end - change_of(run, metric, "")
            ends[f"{metric}, median"] = number_of(run, metric, "", True, Rules())
        rows.append(
            {
                "data": run.case, "method": run.method, "split_seed": 0, "fold": run.split,
                "seed": run.seed, "perturbation": 1e-15 if run.perturbed else 0.0, "status": "ok",
                "n_train": run.n_train, "n_test": run.n_test, "n_bound": rows_covered,
                "bound_trace": trace, "fall": fall_of(run), "m_rate": run.config["training"]["m_rate"],
                "e_rate": run.config["training"]["m_rate"],
                "constant_error": 1 - 0.5337, **run.metrics, **ends,
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def both(part: AnyPredicate, runs: list[Run], rules: Rules) -> None:
    """Assert that both implementations say the same of planted runs, and of twice the steps."""
    stated = part.model_dump(exclude_defaults=True) | {"predicate": part.predicate}
    judgement, variants = judge_part(part, frame_of(runs))
    assert_same(judgement, grade_runs(stated, {}, runs, rules))
    for variant in ("threshold halved", "threshold doubled", "twice the steps"):
        own = VARIANTS[variant]._replace(favoured=rules.favoured, widened=rules.widened)
        assert variants[variant].grade == grade_runs(stated, {}, runs, own).grade, variant


KEYS: dict[str, Any] = {"says": "", "artefact": "x", "core": True}
PAIR: dict[str, Any] = {**KEYS, "methods": ("A", "B")}


def better(metric: str, **keys: Any) -> Ordering:
    return Ordering(predicate="ordering", metric=metric, **(PAIR | keys))


def over_sets(*gains: float, **changes: Any) -> list[Run]:
    """One run of A and B on each of some data sets, with A's MAE lower by these shares."""
    sets = enumerate(gains)
    return [
        run
        for place, gain in sets
        for run in planted("mae", 0.2 * (1 - gain), 0.2, seeds=1, case=f"set {place}", **changes)
    ]


SOONER = Sooner(predicate="sooner", **PAIR)
STEADY = planted("mae", 0.1, 0.2)
NOT_LEARNED = planted("mae", 0.1, 0.2, scores={"nmae": 0.99})
CONSTANT = planted("error_rate", 0.45, 0.46, apart=0.0, scores={})
CHAOTIC = [*STEADY, *planted("mae", 0.5, 0.2, perturbed=True)]
SLOW = {1: -60.0, 2: -60.0, 3: -60.0}
CENSORED = [moved(run, {9: -60.0}) for run in STEADY[:-1]] + [STEADY[-1]]
ONE_VETO = [
    moved(run, {**SLOW, 4: -60.0, 5: -60.0}) if run.method == ("B" if run.seed else "A") else run
    for run in planted("mae", 0.1, 0.2, seeds=12)
]
BATCHES = planted("mae", 0.1, 0.2, batch=100)
FALLING = of("A", STEADY, {8: -5.0, 9: -9.0})
GAINS = (0.04, 0.01, 0.03, 0.02, 0.05, 0.06)
UNTRAINED = [
    moved(run, dict.fromkeys(range(10), 0.99 if run.method == "A" else 0.5), "nmae")
    for run in planted("mae", 0.38, 0.2, seeds=1, case="set 6")
]
THREE = [
    moved(run, dict.fromkeys(range(10), 0.2 + 0.02 * run.seed), "mae") if run.method == "C" else run
    for run in planted("mae", 0.2004, 0.2, 0.2, apart=0.0)
]
RATES = ("A 1", "A 2", "A 4", "B 1", "B 2", "B 4")


def at_rates(metric: str, *levels: float, **changes: Any) -> list[Run]:
    """Three starts of A and B at three rates each, with these numbers."""
    rates = {name: float(name.split()[1]) for name in RATES}
    return planted(metric, *levels, names=RATES, rates=rates, seeds=3, apart=0.0, **changes)


BAND = Band(predicate="band", metric="elbo", wider=RATES[:3], narrower=RATES[3:], **KEYS)
TOLERATES = Tolerates(
    predicate="tolerates", metric="elbo", rate="m_rate", first=RATES[:3], second=RATES[3:], **KEYS
)
SENSITIVE = Sensitive(predicate="sensitive", metric="nlpd", more=RATES[:3], less=RATES[3:], **KEYS)
OFTEN = MoreOften(predicate="more-often", metric="mae", **PAIR)
WITHIN = Within(predicate="within", metric="mae", method="A", at_most=0.25, **KEYS)
LAST_LOOK = of("A", planted("mae", 0.1, 0.2, batch=100, seeds=6), {9: 0.3}, "mae")
"""Runs on minibatches in which A is better in the last quarter, and worse at the last evaluation."""

PLANTED: dict[str, tuple[AnyPredicate, list[Run]]] = {
    "rows_covered": (better("elbo"), planted("elbo", 0.5, 0.0, rows=100)),
    "not_learned": (better("mae"), NOT_LEARNED),
    "majority": (better("error_rate"), CONSTANT),
    "chaos": (better("mae"), CHAOTIC),
    "non_inferiority": (better("mae", at_least=True), planted("mae", 0.197, 0.2)),
    "no_better": (better("mae"), planted("mae", 0.2, 0.2)),
    "no_difference": (better("mae"), planted("mae", 0.2, 0.2, apart=0.0)),
    "smallest_effect": (
        better("mae", printed_effect=0.004, smallest_effect=0.001),
        planted("mae", 0.1995, 0.2, apart=1e-5),
    ),
    "last_quarter": (better("mae"), of("A", BATCHES, {9: 0.3}, "mae")),
    "unstable": (better("mae"), of("A", FALLING, {9: 0.3}, "mae")),
    "favoured": (better("mae"), FALLING),
    "widened": (better("mae"), of("A", STEADY, {9: 0.17}, "mae")),
    "sets_as_units": (better("mae"), over_sets(*GAINS)),
    "trained": (better("mae"), [*over_sets(*GAINS), *UNTRAINED]),
    "fails_beside_open": (better("mae", methods=("A", "B", "C")), THREE),
    "censored_says_nothing": (SOONER, CENSORED),
    "starts_as_units": (SOONER, ONE_VETO),
    "finite_start": (SOONER, of("A", of("B", STEADY, {0: math.nan, **SLOW}), {0: math.nan})),
    "touching": (BAND, at_rates("elbo", 0.0, 0.0, 0.0, -9.0, 0.0, -9.0)),
}
"""By rule, a part and cells of which something else is said under its opposite."""


@pytest.mark.parametrize("rule", PLANTED)
def test_the_comparison_fails_on_planted_cells_where_a_rule_is_the_opposite(rule: str) -> None:
    part, runs = PLANTED[rule]
    both(part, runs, Rules())
    with pytest.raises(AssertionError):
        both(part, runs, opposite(rule))


AT_THE_LAST = of(
    "B 4",
    at_rates("nlpd", 0.1, 0.2, 0.4, 0.1, 0.2, 0.3, batch=100),
    {7: 0.2, 8: 0.2, 9: 0.41},
    "nlpd",
)
"""B's range is the larger one at the last evaluation alone."""
WORSE_LATER = planted("mae", 0.2, 0.2, apart=0.01, seeds=12)
PREDICATES: dict[str, tuple[AnyPredicate, list[Run], Grade]] = {
    "more often better": (OFTEN, planted("mae", 0.1, 0.2, seeds=6), Grade("direction only")),
    "more often worse": (OFTEN, WORSE_LATER, Grade.fails),
    "too few to say": (OFTEN, STEADY, Grade.open),
    "tolerates more": (TOLERATES, at_rates("elbo", 0.0, 0.0, 0.0, 0.0, 0.0, -20.0), Grade.holds),
    "tolerates less": (TOLERATES, at_rates("elbo", 0.0, 0.0, -20.0, 0.0, 0.0, 0.0), Grade.fails),
    "a tenth of the way": (
        TOLERATES,
        at_rates("elbo", 0.0, 0.0, -8.0, 0.0, -8.0, -12.0),
        Grade.holds,
    ),
    "sensitive": (SENSITIVE, at_rates("nlpd", 0.1, 0.2, 0.5, 0.1, 0.2, 0.3), Grade.holds),
    "within, by the last quarter": (WITHIN, LAST_LOOK, Grade.holds),
    "more often, by the last quarter": (OFTEN, LAST_LOOK, Grade("direction only")),
    "sensitive, by the last quarter": (SENSITIVE, AT_THE_LAST, Grade.holds),
    "a share of the CRPS": (better("crps"), planted("crps", 0.1966, 0.2, apart=1e-5), Grade.holds),
    "nearer to 95 %": (better("coverage"), planted("coverage", 0.945, 0.99), Grade.holds),
    "further from 95 %": (better("coverage"), planted("coverage", 0.99, 0.93), Grade.fails),
    "insensitive": (SENSITIVE, at_rates("nlpd", 0.1, 0.2, 0.3, 0.1, 0.2, 0.305), Grade.fails),
}
"""By what is planted, a part, its cells, and the grade by the document."""


@pytest.mark.parametrize("what", PREDICATES)
def test_both_give_planted_cells_the_grade_of_the_document(what: str) -> None:
    part, runs, grade = PREDICATES[what]
    both(part, runs, Rules())
    assert part.judge(frame_of(runs)).grade == grade


def test_a_worse_far_below_the_region_is_not_chaotic() -> None:
    replicas = planted("mae", 0.3 + 1e-9, 0.2, perturbed=True)
    part = better("mae", at_least=True)
    both(part, [*planted("mae", 0.3, 0.2), *replicas], Rules())


def test_rounding_must_move_the_mean_of_the_cells_that_ran_both_ways() -> None:
    first, *others = planted("mae", 0.1, 0.2)
    plain = [moved(first, dict.fromkeys(range(10), 0.19), "mae"), *others]
    replicas = planted(
        "mae", 0.15, 0.2, perturbed=True, seeds=1
    )  # .01 moves to .05, the mean is .08
    both(better("mae"), [*plain, *replicas], Rules())


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
