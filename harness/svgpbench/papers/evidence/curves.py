"""Curves against seconds of training from records of `svgpbench learn`, for figures and claims."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from svgpbench.benchmarks.time_to_target.comparison import ContestantRuns, compare
from svgpbench.benchmarks.time_to_target.plan import Contestant, LearningPlan, read_plan
from svgpbench.benchmarks.time_to_target.problems import sizes_of
from svgpbench.benchmarks.time_to_target.records import read_training
from svgpbench.environment import OURS
from svgpbench.papers.evidence.records import Evidence

LEARNING = "learning"
"""Folder of `svgpbench learn` below the results."""


@dataclass(frozen=True)
class CurveEvidence(Evidence):
    """Evidence from training runs, with one row per evaluation during a run.

    Columns include `problem`, `method`, `seed`, `seconds` of training, `elbo` and `nlpd`. `n_bound` is the
    number of data rows that the ELBO sums over.
    """

    about: str = ""

    @property
    def condition(self) -> str:
        return self.about


def entries_of(name: str, results: Path) -> dict[str, list[ContestantRuns]]:
    """Return the contestants of a plan that have trained, by problem; problems without any are left out."""
    plan, records = read_plan(Path(name)), read_training(results / LEARNING)
    entries = {
        problem: [x for x in compare(plan, problem, contestants_of(plan), records.get) if x.trained]
        for problem in plan.problems
    }
    return {problem: contestants for problem, contestants in entries.items() if contestants}


def contestants_of(plan: LearningPlan) -> list[Contestant]:
    """Return the contestants of a plan, ours first."""
    by_library = [(OURS, plan.methods), *plan.peer_methods.items()]
    return [Contestant(library, method) for library, methods in by_library for method in methods]


def load_curves(results: Path, name: str) -> CurveEvidence:
    """Return the evaluations of every run of a plan; without any, `why_not` has the reason."""
    entries = entries_of(name, results)
    if not entries:
        return CurveEvidence(pd.DataFrame(), f"no runs of plan {name} in {results / LEARNING}")
    frame = pd.DataFrame(list(_rows(name, entries)))
    return CurveEvidence(frame, about=_about(entries))


def _rows(name: str, entries: dict[str, list[ContestantRuns]]) -> Iterator[dict[str, Any]]:
    plan = read_plan(Path(name))
    for problem, contestants in entries.items():
        rows, _ = sizes_of(plan.problems[problem])
        for entry in contestants:
            for record in entry.trained:
                for evaluation in record.looks:
                    yield {
                        "problem": problem,
                        "method": entry.contestant.title,
                        "seed": record.run.seed,
                        **evaluation._asdict(),
                        "n_bound": rows,
                        "cell_id": f"{LEARNING}/{entry.contestant.library}.jsonl",
                    }


def _about(entries: dict[str, list[ContestantRuns]]) -> str:
    """Return the problems, number of seeds, our modes and the peers' versions as text."""
    contestants = list(chain.from_iterable(entries.values()))
    seeds = max(len(entry.trained) for entry in contestants)
    modes = dict.fromkeys(
        entry.choice.mode
        for entry in contestants
        if entry.choice and entry.contestant.library == OURS
    )
    peers = dict.fromkeys(
        f"{library} {versions.get(library, '')}".rstrip()
        for entry in contestants
        if (library := entry.contestant.library) != OURS
        for versions in [entry.trained[0].versions or {}]
    )
    text = f"{', '.join(entries)}, {seeds} seed{'s' * (seeds > 1)}, {', '.join(modes)}"
    return f"{text} beside {', '.join(peers)}" if peers else text


def command(name: str, results: Path) -> str:
    """Return the command that trains a plan."""
    libraries = " ".join(f"--library {x}" for x in (OURS, *read_plan(Path(name)).peer_methods))
    return f"svgpbench learn --plan {name} {libraries} --results {results / LEARNING}"
