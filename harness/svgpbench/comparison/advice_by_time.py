"""Advice on the fastest method to reach a test density, from the records of `svgpbench learn`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from svgpbench.benchmarks.time_to_target.comparison import ContestantRuns, compare
from svgpbench.benchmarks.time_to_target.plan import (
    SHIPPED,
    Contestant,
    LearningPlan,
    Race,
    read_plan,
    shipped_plans,
)
from svgpbench.benchmarks.time_to_target.problems import sizes_of
from svgpbench.benchmarks.time_to_target.records import read_training
from svgpbench.benchmarks.time_to_target.tables import seconds_to
from svgpbench.comparison.cases import Case, Question, near, why_no_advice
from svgpbench.json_values import json_value

ALIKE: Final = 1.1
"""Times within this ratio do not differ in practice."""


@dataclass(frozen=True)
class TimedContestant:
    """A contestant, with its seconds of training to the target of each problem, one value per seed."""

    contestant: str
    seconds: Mapping[str, tuple[float, ...]]  # infinite if a run did not reach it
    recommended: bool  # see `is_no_later`, against each other contestant

    def typical(self, problem: str) -> float:
        """Return the median over seeds of the seconds to the target of a problem."""
        return median(self.seconds[problem])


@dataclass(frozen=True)
class TimedField:
    """Near problems of a plan with one likelihood, and the contestants that trained on all of them."""

    plan: str
    likelihood: str
    searched: bool
    cases: tuple[Case, ...]  # one per problem; `data` is the problem
    targets: dict[str, float]  # the lowest target of each problem
    methods: tuple[TimedContestant, ...]
    hours: float  # of training per problem, all contestants, search and seeds

    @property
    def sources(self) -> int:
        """Number of independent data sets (sources) that the answer is based on."""
        return len({case.source for case in self.cases})

    @property
    def why_not(self) -> tuple[str, ...]:
        """Reasons for recommending no method, each a phrase; empty if one is recommended."""
        return why_no_advice(
            self.searched,
            "fewer than two methods have run" if len(self.methods) < 2 else "",
            self.sources,
            "" if any(timed.recommended for timed in self.methods) else "later",
        )

    @property
    def recommended(self) -> list[TimedContestant]:
        """Recommended methods; empty if `why_not` has a reason."""
        return [] if self.why_not else [timed for timed in self.methods if timed.recommended]

    @property
    def answer(self) -> str:
        """The advice in one sentence."""
        if self.why_not:
            return f"no advice: {'; '.join(self.why_not)}"
        names = ", ".join(timed.contestant for timed in self.recommended)
        return (
            f"{names}: no later than any of {len(self.methods)} methods on {self.sources} data sets"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the comparison for JSON, with null for a run that did not reach the target."""
        content: dict[str, Any] = json_value({
            "plan": self.plan,
            "likelihood": self.likelihood,
            "rates": "searched" if self.searched else "as printed",
            "answer": self.answer,
            "recommended": [timed.contestant for timed in self.recommended],
            "why_not": self.why_not,
            "data_sets": self.sources,
            "targets": self.targets,
            "methods": [
                {"method": timed.contestant, "seconds": dict(timed.seconds)}
                for timed in self.methods
            ],
            "hours_a_data_set": self.hours,
        })  # fmt: skip
        return content


def timed_fields(folder: Path, question: Question) -> tuple[TimedField, ...]:
    """Return one field per shipped plan and likelihood with near problems; empty without the folder."""
    if not folder.is_dir():
        return ()
    runs = read_training(folder)
    fields: list[TimedField] = []
    for name, path in {"plan": SHIPPED, **shipped_plans()}.items():
        plan = read_plan(path)
        digests = {plan.digest(problem): problem for problem in plan.problems}
        ran = [run for run in runs if digests.get(run.plan) == run.problem]
        contestants = list(dict.fromkeys(run.contestant for run in ran))
        entries = {
            problem: compare(plan, problem, contestants, runs.get)
            for problem in dict.fromkeys(run.problem for run in ran)
        }
        cases = near([_case(name, item, plan.problems[item]) for item in entries], question)
        fields += [
            _field(name, plan, entries, [case for case in cases if case.likelihood == likelihood])
            for likelihood in dict.fromkeys(case.likelihood for case in cases)
        ]
    return tuple(fields)


def _field(
    name: str, plan: LearningPlan, entries: dict[str, list[ContestantRuns]], cases: Sequence[Case]
) -> TimedField:
    targets = {case.data: min(plan.problems[case.data].targets) for case in cases}
    seconds: dict[Contestant, dict[str, tuple[float, ...]]] = {}
    spent = 0.0
    for problem, target in targets.items():
        for entry in entries[problem]:
            spent += sum(x.last.seconds for x in (*entry.search, *entry.trained) if x.last)
            if entry.trained:
                by_problem = seconds.setdefault(entry.contestant, {})
                by_problem[problem] = tuple(seconds_to(entry, target))
    seconds = {who: times for who, times in seconds.items() if times.keys() == targets.keys()}
    source_of = {case.data: case.source for case in cases}
    methods = [
        TimedContestant(
            who.title,
            times,
            all(is_no_later(times, x, source_of) for x in seconds.values() if x is not times),
        )
        for who, times in seconds.items()
    ]
    methods.sort(key=lambda timed: [timed.typical(problem) for problem in targets])
    searched = all(len(plan.problems[problem].grid) > 1 for problem in targets)
    hours = spent / len(targets) / 3600
    return TimedField(
        name, cases[0].likelihood, searched, tuple(cases), targets, tuple(methods), hours
    )


def is_no_later(
    first: dict[str, tuple[float, ...]],
    second: dict[str, tuple[float, ...]],
    source_of: dict[str, str],
) -> bool:
    """Return True if the first method is no later on over half of the sources, and later on no problem.

    No later means within a factor of `ALIKE` in every seed. Later means beyond that factor in every seed.
    Pairs of runs that both did not reach the target are left out.
    """
    no_later: dict[str, bool] = {}
    for problem, seconds in first.items():
        pairs = zip(seconds, second[problem], strict=False)
        ratios = [a / b for a, b in pairs if math.isfinite(a) or math.isfinite(b)]
        if ratios and min(ratios) > ALIKE:
            return False
        source = source_of[problem]
        alike = bool(ratios) and max(ratios) <= ALIKE
        no_later[source] = no_later.get(source, True) and alike
    return 2 * sum(no_later.values()) > len(no_later)


def _case(plan: str, problem: str, race: Race) -> Case:
    """Return a problem as a case. The registry and the split determine its number of training rows."""
    rows, dimensions = sizes_of(race)
    inducing = tuple(sorted({race.inducing, *(race.two_bases or ())}))
    likelihood = race.likelihood.name
    return Case(
        f"learn {plan}", problem, likelihood, rows, dimensions, inducing, (), race.data.name
    )
