"""How often a decision at a part of the budget comes out otherwise at the end, by the widening of intervals.

    python tests/papers/lasting_check.py

Runs are cut off at a half and at a quarter of their steps, as if they had ended there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Final, NamedTuple

import pandas as pd

from svgpbench.experiments import load_experiment
from svgpbench.papers import load_paper
from svgpbench.papers.evidence.experiment import constant_error, gather
from svgpbench.results.last_quarter import columns_of_ends
from svgpbench.results.records import Record
from svgpbench.results.trace_measures import frame_of
from svgpbench.stats.effects import Outcome
from svgpbench.stats.over_sets import data_sets
from svgpbench.stats.pairs import PairedRuns
from svgpbench.stats.rules import Rules

RESULTS: Final = Path(__file__).parents[2] / "results"
FACTORS: Final = (0.0, 1.0, 3.0, 5.0)
SHARES: Final = (0.5, 0.25)
DECIDED: Final = (Outcome.better, Outcome.worse, Outcome.equal)
OPPOSITE: Final = {Outcome.better: Outcome.worse, Outcome.worse: Outcome.better}


class Line(NamedTuple):
    """Decisions at a share of the budget, and what became of them at the end."""

    runs: str
    share: float
    measure: str
    factor: float
    cases: int
    decided: int
    otherwise: int  # at the end another decision, or none
    opposite: int


def cut(record: Record, share: float) -> Record:
    """Return a record as if its run had ended at a share of its iterations."""
    iterations = [x or 0 for x in record.trace.get("iteration", ())]
    last = share * max(iterations, default=0)
    count = sum(x <= last for x in iterations)
    trace = {key: values[:count] for key, values in record.trace.items()}
    finals = {key: values[-1] for key, values in trace.items() if values}
    metrics = {key: finals.get(key, x) for key, x in record.metrics.items()}
    return record.model_copy(update={"trace": trace, "metrics": metrics})


def cases(records: Sequence[Record], measure: str) -> dict[str, PairedRuns]:
    """Return the data sets of some records by name."""
    frame = frame_of(records)
    ends = pd.DataFrame(columns_of_ends(records, frame), frame.index)
    frame = pd.concat([frame, ends], axis="columns")
    frame["constant_error"] = [constant_error(record) for record in records]
    return {case.data: case for case in data_sets(frame.copy(), measure)}


def outcome(case: PairedRuns, pair: tuple[str, str], factor: float) -> str:
    """Return the outcome of a comparison; of single runs, where the difference lies."""
    rules = Rules(drift=factor, chaos=False)
    compared = case.every_run if case.lacks_interval(*pair) else case.effect
    return compared(*pair, rules).outcome


def lines(
    name: str, records: Sequence[Record], pairs: Sequence[tuple[str, str]], measures: Sequence[str]
) -> Iterator[Line]:
    """Yield a line for each share, measure and factor."""
    for measure in measures:
        at_end = cases(records, measure)
        for share in SHARES:
            early = cases([cut(record, share) for record in records], measure)
            compared = [
                (early[data], case, pair)
                for data, case in at_end.items()
                for pair in pairs
                if case.has(*pair)
            ]
            last = [outcome(case, pair, 0.0) for _, case, pair in compared]
            for factor in FACTORS:
                first = [outcome(case, pair, factor) for case, _, pair in compared]
                both = [(a, b) for a, b in zip(first, last, strict=True) if a in DECIDED]
                otherwise = sum(a != b for a, b in both)
                opposite = sum(OPPOSITE.get(Outcome(a)) == b for a, b in both)
                yield Line(
                    name, share, measure, factor, len(compared), len(both), otherwise, opposite
                )


def table() -> Iterator[Line]:
    """Yield the lines of both experiments that are long enough."""
    titsias = load_paper("titsias2025")
    bounds = gather(RESULTS, titsias.experiments["bounds"], "scaled")
    long = gather(RESULTS, load_experiment("salimbeni2018-table1"), "long")
    stated = {
        pair
        for claim in titsias.claims
        for part in claim.parts
        if part.artefact == "bounds"
        for pair in getattr(part, "settings", {}).values()
    }
    plain = [x for x in bounds.records if not x.config.is_replica]
    yield from lines("titsias2025-bounds", plain, sorted(stated), ("elbo", "nlpd"))
    methods = sorted({x.config.method.title for x in long.records})
    every = list(combinations(methods, 2))
    yield from lines("salimbeni2018-table1, long", long.records, every, ("elbo", "mae", "nlpd"))


if __name__ == "__main__":
    print(
        "| runs | stopped at | measure | k | comparisons | decided | otherwise at the end | opposite |"
    )
    print("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    for line in table():
        print("| " + " | ".join(f"{x:g}" if isinstance(x, float) else str(x) for x in line) + " |")
