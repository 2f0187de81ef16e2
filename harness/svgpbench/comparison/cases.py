"""Cases (data sets with records) in a folder, and the selection of those near a question.

A variant whose inputs give the target away is no case. Variants, outputs and problems of one table are
cases of one source, and an answer counts sources.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd

from svgpbench.errors import UserError
from svgpbench.plugins import registry_of
from svgpbench.results.collect import Collected, collected_in
from svgpbench.results.frames import final_frame, reference_backend
from svgpbench.results.records import Record
from svgpbench_datasets import DataError

LEAST_DATA: Final = 10
"""Fewest data sets for a recommendation."""

NOT_SEARCHED: Final = "learning rates were not searched"


@dataclass(frozen=True)
class Question:
    """The data of a user. None or empty means any."""

    likelihoods: tuple[str, ...] = ()
    n: int | None = None  # rows to train on
    dimensions: int | None = None
    inducing: int | None = None  # M
    within: float = 3.0  # largest factor between N, D, M and those of a near case

    def distance(self, case: Case) -> float:
        """Return the largest factor by which N, D or M of a case differs, infinite for another likelihood."""
        if self.likelihoods and case.likelihood not in self.likelihoods:
            return math.inf
        sizes = ((self.n, case.n), (self.dimensions, case.dimensions))
        apart = [_factor(size, of_case) for size, of_case in sizes if size is not None]
        if self.inducing is not None:
            apart.append(min(_factor(self.inducing, count) for count in case.inducing))
        return max(apart, default=1.0)

    def accepts(self, record: Record) -> bool:
        """Return True if the number of inducing points of a record is within the factor of that asked for."""
        count = record.config.inducing.count
        return self.inducing is None or _factor(self.inducing, count) <= self.within

    @property
    def text(self) -> str:
        """The question as text, such as `gaussian, N = 1000, D = 8`."""
        sizes = (("N", self.n), ("D", self.dimensions), ("M", self.inducing))
        listed = [f"{name} = {size}" for name, size in sizes if size is not None]
        return ", ".join([" or ".join(self.likelihoods) or "all likelihoods", *listed])

    def to_json(self) -> dict[str, Any]:
        """Return the question for JSON."""
        return {
            "likelihoods": list(self.likelihoods),
            "N": self.n,
            "D": self.dimensions,
            "M": self.inducing,
            "within": self.within,
        }


@dataclass(frozen=True)
class Case:
    """A data set of an experiment, with the records of its methods on the reference backend."""

    experiment: str
    data: str
    likelihood: str
    n: int
    dimensions: int
    inducing: tuple[int, ...]
    records: tuple[Record, ...]  # with perturbed replicas
    name: str = ""  # of the data in a registry, if there are no records

    @property
    def source(self) -> str:
        """The table of the case, such as `magic` for `magic:row-number`, `sarcos` for `sarcos@torque1`."""
        name = self.records[0].config.data.name if self.records else self.name or self.data
        return name.partition("@")[0].partition(":")[0]

    @property
    def text(self) -> str:
        """The case as text, such as `airfoil (N = 1202, D = 5, M = 50)`."""
        counts = "/".join(map(str, self.inducing))
        return f"{self.data} (N = {self.n}, D = {self.dimensions}, M = {counts})"


def _factor(a: int, b: int) -> float:
    return max(a / b, b / a)


def cases_in(results: Path) -> tuple[list[Case], list[str]]:
    """Return the cases of the current records in a folder, and notes on those left out.

    Raises `UserError` as `collected_in` does.
    """
    every, notes = collected_in(results, count_presets=False)
    cases = [case for collected in every for case in _cases_of(collected)]
    leaking = dict.fromkeys(case.data for case in cases if leaks(case))
    if leaking:
        notes.append(f"left out, because an input gives the target away: {', '.join(leaking)}")
    return [case for case in cases if not leaks(case)], notes


def leaks(case: Case) -> bool:
    """Return True if the registry marks the data of a case as giving the target away."""
    data = case.records[0].config.data if case.records else None
    if data is None or data.path is not None:
        return False
    try:
        return bool(registry_of(data.name).describe(data.name).leaks)
    except (UserError, DataError):
        return False  # its registry is not installed here


def _cases_of(collected: Collected) -> Iterator[Case]:
    """Yield one case per data set, unless all of its records ended before its size was known."""
    backend = reference_backend(final_frame(collected.records))
    of_data: dict[str, list[Record]] = {}
    for record in collected.records:
        if record.config.backend.title == backend:
            of_data.setdefault(record.config.data.title, []).append(record)
    for data, records in of_data.items():
        sized = [r for r in records if r.data.get("n_train") and r.data.get("dimensions")]
        if sized:
            rows = [r.config.training.rows or int(r.data["n_train"]) for r in sized]
            facts = pd.DataFrame({"n": rows, "D": [int(r.data["dimensions"]) for r in sized]})
            yield Case(
                collected.experiment,
                data,
                sized[0].config.likelihood.name,
                int(facts["n"].median()),
                int(facts["D"].median()),
                tuple(sorted({r.config.inducing.count for r in sized})),
                tuple(records),
            )


def near(cases: Sequence[Case], question: Question) -> list[Case]:
    """Return the cases near a question, in their order."""
    return [case for case in cases if question.distance(case) <= question.within]


def nearest(cases: Sequence[Case], question: Question, count: int = 3) -> list[Case]:
    """Return the `count` nearest cases of the same likelihood, the nearest first."""
    alike = [case for case in cases if math.isfinite(question.distance(case))]
    return sorted(alike, key=question.distance)[:count]


def why_no_advice(
    searched: bool, too_few_methods: str, sources: int, always: str
) -> tuple[str, ...]:
    """Return the reasons for recommending no method, each a phrase; empty if there are none.

    Args:
        searched: True if the rates of all methods were searched alike.
        too_few_methods: the reason why there are not two methods to compare, or empty.
        sources: number of data sets that the answer is based on.
        always: "worse" or "later" if each method is worse or later than some other method; else empty.
    """
    reasons = [] if searched else [NOT_SEARCHED]
    if too_few_methods:
        reasons.append(too_few_methods)
    elif sources < LEAST_DATA:
        there = f"there {'is' if sources == 1 else 'are'} {count(sources, 'data set')}"
        reasons.append(f"{there}, and {LEAST_DATA} are needed")
    elif always:
        reasons.append(
            f"no method is no {always} than every other on more than half of the data sets"
        )
    return tuple(reasons)


def count(number: int, what: str) -> str:
    """Return a number with its noun: `1 data set`, `2 data sets`."""
    return f"{number} {what}{'s' * (number != 1)}"
