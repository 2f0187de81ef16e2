"""Advice on the fastest method to reach a test density, from the records of `svgpbench learn`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from svgpbench.benchmarks.time_to_target import records
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
from svgpbench.benchmarks.time_to_target.tables import seconds_to
from svgpbench.comparison.cases import Case, Question, why_no_advice
from svgpbench.json_values import json_value

ALIKE: Final = 1.1
"""Times within this ratio do not differ in practice."""


@dataclass(frozen=True)
class Timed:
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
    methods: tuple[Timed, ...]
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
            "" if any(one.recommended for one in self.methods) else "later",
        )

    @property
    def recommended(self) -> list[Timed]:
        """Recommended methods; empty if `why_not` has a reason."""
        return [] if self.why_not else [one for one in self.methods if one.recommended]

    @property
    def answer(self) -> str:
        """The advice in one sentence."""
        if self.why_not:
            return f"no advice: {'; '.join(self.why_not)}"
        names = ", ".join(one.contestant for one in self.recommended)
        return (
            f"{names}: no later than any of {len(self.methods)} methods on {self.sources} data sets"
        )

    def to_json(self) -> dict[str, Any]:
        """Return all of it, with numbers in full, and null if a run did not reach the target."""
        return {
            "plan": self.plan,
            "likelihood": self.likelihood,
            "rates": "searched" if self.searched else "as printed",
            "answer": self.answer,
            "recommended": [one.contestant for one in self.recommended],
            "why_not": list(self.why_not),
            "data_sets": self.sources,
            "targets": self.targets,
            "methods": [
                {
                    "method": one.contestant,
                    "seconds": {
                        problem: json_value(seconds) for problem, seconds in one.seconds.items()
                    },
                }
                for one in self.methods
            ],
            "hours_a_data_set": self.hours,
        }


def timed_fields(folder: Path, question: Question) -> tuple[TimedField, ...]:
    """Return one field per shipped plan and likelihood with near problems; empty without the folder."""
    if not folder.is_dir():
        return ()
    found = records.read(folder)
    fields: list[TimedField] = []
    for name, path in {"plan": SHIPPED, **shipped_plans()}.items():
        plan = read_plan(path)
        digests = {plan.digest(problem): problem for problem in plan.problems}
        ran = [run for run in found if digests.get(run.plan) == run.problem]
        contestants = list(dict.fromkeys(run.contestant for run in ran))
        entries = {
            problem: compare(plan, problem, contestants, found.get)
            for problem in dict.fromkeys(run.problem for run in ran)
        }
        fields += _by_likelihood(name, plan, entries, question)
    return tuple(fields)


def _by_likelihood(
    name: str, plan: LearningPlan, entries: dict[str, list[ContestantRuns]], question: Question
) -> list[TimedField]:
    of: dict[str, list[Case]] = {}
    for problem in entries:
        case = _case(name, problem, plan.problems[problem])
        if question.distance(case) <= question.within:
            of.setdefault(case.likelihood, []).append(case)
    return [_field(name, plan, entries, cases) for cases in of.values()]


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
                here = seconds.setdefault(entry.contestant, {})
                here[problem] = tuple(seconds_to(entry, target))
    seconds = {who: here for who, here in seconds.items() if here.keys() == targets.keys()}
    source_of = {case.data: case.source for case in cases}
    methods = [
        Timed(
            who.title,
            here,
            all(is_no_later(here, x, source_of) for x in seconds.values() if x is not here),
        )
        for who, here in seconds.items()
    ]
    methods.sort(key=lambda one: [one.typical(problem) for problem in targets])
    searched = all(len(plan.problems[problem].grid) > 1 for problem in targets)
    hours = spent / len(targets) / 3600
    return TimedField(
        name, cases[0].likelihood, searched, tuple(cases), targets, tuple(methods), hours
    )


def is_no_later(
    mine: dict[str, tuple[float, ...]],
    theirs: dict[str, tuple[float, ...]],
    source_of: dict[str, str],
) -> bool:
    """Return True if a method is no later on more than half of the sources, and later on no problem.

    No later means within a factor of `ALIKE` in every seed. Later means beyond that factor in every seed.
    Pairs of runs that both did not reach the target are left out.
    """
    found: dict[str, list[str]] = {}
    for problem, seconds in mine.items():
        pairs = zip(seconds, theirs[problem], strict=False)
        ratios = [a / b for a, b in pairs if math.isfinite(a) or math.isfinite(b)]
        if ratios and min(ratios) > ALIKE:
            return False
        says = "no later" if ratios and max(ratios) <= ALIKE else "open"
        found.setdefault(source_of[problem], []).append(says)
    held = sum(all(one == "no later" for one in says) for says in found.values())
    return 2 * held > len(found)


def _case(plan: str, problem: str, race: Race) -> Case:
    """Return a problem as a case. The registry and the split determine its number of training rows."""
    rows, dimensions = sizes_of(race)
    inducing = tuple(sorted({race.inducing, *(race.two_bases or ())}))
    likelihood = race.likelihood.name
    return Case(
        f"learn {plan}", problem, likelihood, rows, dimensions, inducing, (), race.data.name
    )
