"""Curves against seconds of training from records of `svgpbench learn`, for figures and claims."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import pandas as pd

from svgpbench.benchmarks.time_to_target.comparison import ContestantRuns, compare_contestants
from svgpbench.benchmarks.time_to_target.plan import Contestant, LearningPlan, read_learning_plan
from svgpbench.benchmarks.time_to_target.problems import sizes_of
from svgpbench.benchmarks.time_to_target.records import read_training
from svgpbench.config import Text
from svgpbench.environment import OURS
from svgpbench.papers.evidence.base import (
    EvidenceFrame,
    PartOfPaper,
    RecordedEvidence,
    TimesFrame,
)
from svgpbench.papers.report import WrittenFigure, add_suffix

if TYPE_CHECKING:
    from svgpbench.papers.loading import Paper
    from svgpbench.papers.schema import Artefact

LEARNING = "learning"
"""Folder of `svgpbench learn` below the results."""


class TrainingEvidence(RecordedEvidence):
    """Runs of a plan of `svgpbench learn`: bound and test NLPD against seconds of training."""

    part_of_paper: ClassVar[PartOfPaper] = "speed"

    kind: Literal["training"]
    plan: Text  # shipped

    @property
    def source(self) -> str:
        return f"`svgpbench learn`, `{self.plan}`"

    @property
    def description(self) -> str:
        return f"runs of `svgpbench learn --plan {self.plan}`"

    @property
    def path(self) -> str:
        return LEARNING

    def load(self, paper: Paper, artefact: Artefact, results: Path) -> TimesFrame:
        return load_curves(results, self.plan)

    def command(self, paper: Paper, artefact: Artefact, results: Path) -> str:
        libraries = (OURS, *read_learning_plan(Path(self.plan)).peer_methods)
        chosen = " ".join(f"--library {library}" for library in libraries)
        return f"svgpbench learn --plan {self.plan} {chosen} --results {results / LEARNING}"

    def write(
        self, paper: Paper, artefact: Artefact, loaded: EvidenceFrame, results: Path, folder: Path
    ) -> Iterator[WrittenFigure]:
        # Matplotlib takes a third of the time of `import svgpbench.api`
        from svgpbench.benchmarks.time_to_target import curves

        entries, plan = trained_entries(self.plan, results), read_learning_plan(Path(self.plan))
        folder.mkdir(parents=True, exist_ok=True)
        png, pdf = (add_suffix(folder / artefact.id, suffix) for suffix in ("png", "pdf"))
        curves.draw_learning(plan, entries, png, pdf)
        what = " and ".join(curves.AXES[curve] for curve in plan.curves)
        runs = sum(len(x.trained) for contestants in entries.values() for x in contestants)
        figure = WrittenFigure(
            artefact.id,
            f"{paper.name}, {artefact.id}: {what} against seconds of training on "
            f"{', '.join(entries)}: a curve for each of {runs} runs, a cross where one failed.",
            png,
            pdf,
            curves.__name__,
        )
        yield figure.with_caption()


def trained_entries(name: str, results: Path) -> dict[str, list[ContestantRuns]]:
    """Return the contestants of a plan that have trained, by problem; problems without any are left out."""
    plan, records = read_learning_plan(Path(name)), read_training(results / LEARNING)
    entries = {
        problem: [
            x
            for x in compare_contestants(plan, problem, contestants_of(plan), records.get)
            if x.trained
        ]
        for problem in plan.problems
    }
    return {problem: contestants for problem, contestants in entries.items() if contestants}


def contestants_of(plan: LearningPlan) -> list[Contestant]:
    """Return the contestants of a plan, ours first."""
    by_library = [(OURS, plan.methods), *plan.peer_methods.items()]
    return [Contestant(library, method) for library, methods in by_library for method in methods]


def load_curves(results: Path, name: str) -> TimesFrame:
    """Return the evaluations of every run of a plan that came to its end; without any, `why_not` says why.

    Columns include `problem`, `method`, `seed`, `seconds` of training, `elbo` and `nlpd`. `n_bound` is the
    number of data rows that the ELBO sums over.
    """
    entries = trained_entries(name, results)
    if not entries:
        return TimesFrame(pd.DataFrame(), f"no runs of plan {name} in {results / LEARNING}")
    frame = pd.DataFrame(list(_rows(name, entries)))
    return TimesFrame(frame, about=_about(entries), source=f"the runs of {name}")


def _rows(name: str, entries: dict[str, list[ContestantRuns]]) -> Iterator[dict[str, Any]]:
    plan = read_learning_plan(Path(name))
    for problem, contestants in entries.items():
        rows, _ = sizes_of(plan.problems[problem])
        for entry in contestants:
            # the last value of a run that failed is no quality to reach
            for record in (x for x in entry.trained if x.status == "ok"):
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
