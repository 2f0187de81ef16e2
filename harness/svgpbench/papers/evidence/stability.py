"""Runs of a stability map, for claims about the rates at which natural gradients fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import pandas as pd

from svgpbench.benchmarks.stability.libraries import title
from svgpbench.benchmarks.stability.plan import StabilityPlan, read_stability_plan
from svgpbench.benchmarks.stability.records import NO_VERDICT, StabilityRecord, read_stability
from svgpbench.config import Text
from svgpbench.papers.evidence.base import EvidenceFrame, RecordedEvidence

if TYPE_CHECKING:
    from svgpbench.papers.loading import Paper
    from svgpbench.papers.schema import Artefact


class StabilityFrame(EvidenceFrame):
    """One row per run.

    Columns include `data` (the problem), `method` (its name on the map), `rate`, `seed` and `lived`.
    """

    @property
    def condition(self) -> str:
        problems, runs = self.frame["data"].nunique(), len(self.frame)
        of_steps = f"{runs} runs of {read_stability_plan().steps} steps"
        return f"{of_steps}, {problems} problem{'s' * (problems > 1)}"


class StabilityEvidence(RecordedEvidence):
    """Runs of a stability map."""

    drawn_elsewhere: ClassVar[str] = (
        "Drawn as a map: [survival of natural gradients](../../docs/survival.md)."
    )

    kind: Literal["stability"]
    folder: Text  # of `svgpbench survive`, below the results

    @property
    def source(self) -> str:
        return f"`{self.folder}/`"

    @property
    def description(self) -> str:
        return f"runs of `svgpbench survive` in {self.folder}"

    @property
    def path(self) -> str:
        return self.folder

    def load(self, paper: Paper, artefact: Artefact, results: Path) -> StabilityFrame:
        return load_stability(results, self.folder)

    def command(self, paper: Paper, artefact: Artefact, results: Path) -> str:
        return f"svgpbench survive --results {results / self.folder}"


def load_stability(results: Path, folder: str) -> StabilityFrame:
    """Return the runs at the centre of the shipped plan and at all rates from there.

    Without any, `why_not` has the reason. Runs that ended by a time limit, a kill or an error are left
    out.
    """
    plan = read_stability_plan()
    rows = list(_rows(plan, folder, read_stability(results / folder).values()))
    if not rows:
        return StabilityFrame(pd.DataFrame(), f"no runs in {results / folder}")
    return StabilityFrame(pd.DataFrame(rows))


def _rows(plan: StabilityPlan, folder: str, records: Any) -> Iterator[dict[str, Any]]:
    record: StabilityRecord
    for record in records:
        run = record.run
        if run.problem not in plan.problems or record.status in NO_VERDICT:
            continue
        along_rates = plan.centre.model_copy(update={"rate": run.point.rate})
        declared = plan.cell(run.problem, run.library, run.method, along_rates, run.seed)
        if run == declared:
            yield {
                "data": run.problem,
                "method": title(run.library, run.method),
                "rate": run.point.rate,
                "seed": run.seed,
                "lived": record.status == "ok",
                "cell_id": f"{folder}/{run.library}.jsonl",
            }
