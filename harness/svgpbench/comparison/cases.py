"""Data sets that the records of a folder have methods on, and which of them are near a question.

A variant that leaks its target is none. Variants, outputs and problems of one table are cases of one source,
and an answer counts sources.
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
"""Data sets that a recommendation rests on at least."""

NOT_SEARCHED: Final = "rates were not searched"


@dataclass(frozen=True)
class Question:
    """Which data somebody has; what is None or empty is any."""

    likelihoods: tuple[str, ...] = ()
    n: int | None = None  # rows to train on
    dimensions: int | None = None
    inducing: int | None = None  # M
    within: float = 3.0  # a factor: how far N, D and M of a case may be

    def distance(self, case: Case) -> float:
        """The largest factor by which N, D or M of a case differ; infinite with another likelihood."""
        if self.likelihoods and case.likelihood not in self.likelihoods:
            return math.inf
        apart = [
            _factor(asked, there)
            for asked, there in ((self.n, case.n), (self.dimensions, case.dimensions))
            if asked is not None
        ]
        if self.inducing is not None:
            apart.append(min(_factor(self.inducing, count) for count in case.inducing))
        return max(apart, default=1.0)

    def takes(self, record: Record) -> bool:
        """Whether a method of a near case has about as many inducing points as asked for."""
        count = record.config.inducing.count
        return self.inducing is None or _factor(self.inducing, count) <= self.within

    @property
    def text(self) -> str:
        """`gaussian, N = 1000, D = 8`."""
        sizes = (("N", self.n), ("D", self.dimensions), ("M", self.inducing))
        listed = [f"{name} = {size}" for name, size in sizes if size is not None]
        return ", ".join([" or ".join(self.likelihoods) or "any likelihood", *listed])

    def to_json(self) -> dict[str, Any]:
        """Its parts."""
        return {
            "likelihoods": list(self.likelihoods),
            "N": self.n,
            "D": self.dimensions,
            "M": self.inducing,
            "within": self.within,
        }


@dataclass(frozen=True)
class Case:
    """A data set of an experiment, with the records of its methods on the backend that stands for all."""

    experiment: str
    data: str
    likelihood: str
    n: int
    dimensions: int
    inducing: tuple[int, ...]
    records: tuple[Record, ...]  # perturbed replicas too
    name: str = ""  # of the data in a registry, where there are no records

    @property
    def source(self) -> str:
        """The table behind the case: `magic` of `magic:row-number`, `sarcos` of `sarcos@torque1`."""
        name = self.records[0].config.data.name if self.records else self.name or self.data
        return name.partition("@")[0].partition(":")[0]

    @property
    def text(self) -> str:
        """`airfoil (N = 1202, D = 5, M = 50)`."""
        counts = "/".join(map(str, self.inducing))
        return f"{self.data} (N = {self.n}, D = {self.dimensions}, M = {counts})"


def _factor(asked: int, there: int) -> float:
    return max(asked / there, there / asked)


def cases_in(results: Path) -> tuple[list[Case], list[str]]:
    """Every case that a folder's current records have, and notes on what is left out.

    Raises `UserError` as `collected_in` does.
    """
    every, notes = collected_in(results)
    cases = [case for collected in every for case in _cases_of(collected)]
    leaking = dict.fromkeys(case.data for case in cases if leaks(case))
    if leaking:
        notes.append(f"left out, since an input gives the target away: {', '.join(leaking)}")
    return [case for case in cases if not leaks(case)], notes


def leaks(case: Case) -> bool:
    """Whether the registry marks the data of a case as a variant that gives the target away."""
    data = case.records[0].config.data if case.records else None
    if data is None or data.path is not None:
        return False
    try:
        return bool(registry_of(data.name).describe(data.name).leaks)
    except (UserError, DataError):
        return False  # of a registry that is not installed here


def _cases_of(collected: Collected) -> Iterator[Case]:
    """A case a data set; one whose records ended before its size was known is none."""
    backend = reference_backend(final_frame(collected.records))
    of_data: dict[str, list[Record]] = {}
    for record in collected.records:
        if record.config.backend.title == backend:
            of_data.setdefault(record.config.data.title, []).append(record)
    for data, records in of_data.items():
        sized = [r for r in records if r.data.get("n_train") and r.data.get("dimensions")]
        if sized:
            facts = pd.DataFrame([(_rows(r), int(r.data["dimensions"])) for r in sized])
            yield Case(
                collected.experiment,
                data,
                sized[0].config.likelihood.name,
                int(facts[0].median()),
                int(facts[1].median()),
                tuple(sorted({r.config.inducing.count for r in sized})),
                tuple(records),
            )


def _rows(record: Record) -> int:
    """How many rows a cell trained on."""
    return record.config.training.rows or int(record.data["n_train"])


def near(cases: Sequence[Case], question: Question) -> list[Case]:
    """The cases that a question is near to, in their order."""
    return [case for case in cases if question.distance(case) <= question.within]


def nearest(cases: Sequence[Case], question: Question, count: int = 3) -> list[Case]:
    """Where no case is near: those of the same likelihood that are least far."""
    known = [case for case in cases if math.isfinite(question.distance(case))]
    return sorted(known, key=question.distance)[:count]


def why_no_advice(
    searched: bool, too_few_methods: str, sources: int, always: str
) -> tuple[str, ...]:
    """Return why no method is recommended, each reason in a phrase; nothing where one is.

    Args:
        searched: whether the rates of the methods were searched alike.
        too_few_methods: why there are not two methods to compare, or empty.
        sources: data sets that an answer rests on.
        always: what every method is on half of the data sets or more, such as "worse"; empty
            where one is not.
    """
    reasons = [] if searched else [NOT_SEARCHED]
    if too_few_methods:
        reasons.append(too_few_methods)
    elif sources < LEAST_DATA:
        reasons.append(f"{count(sources, 'data set')}, fewer than {LEAST_DATA}")
    elif always:
        reasons.append(
            f"no method is no {always} than each other on more than half of the data sets"
        )
    return tuple(reasons)


def count(number: int, what: str) -> str:
    """`1 data set`, `2 data sets`."""
    return f"{number} {what}{'s' * (number != 1)}"
