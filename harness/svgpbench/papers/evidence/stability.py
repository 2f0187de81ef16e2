"""Walks of a survival map, for claims about the rates at which natural gradients survive."""

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
    """One row per walk.

    Columns include `data` (the problem), `method` (its name on the map), `rate`, `seed` and `lived`.
    """

    @property
    def condition(self) -> str:
        problems, walks = self.frame["data"].nunique(), len(self.frame)
        of_steps = f"{walks} walks of {read_stability_plan().steps} steps"
        return f"{of_steps}, {problems} problem{'s' * (problems > 1)}"


class StabilityEvidence(RecordedEvidence):
    """Walks of a survival map."""

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
        return f"walks of `svgpbench survive` in {self.folder}"

    @property
    def path(self) -> str:
        return self.folder

    def load(self, paper: Paper, artefact: Artefact, results: Path) -> StabilityFrame:
        return load_stability(results, self.folder)

    def command(self, paper: Paper, artefact: Artefact, results: Path) -> str:
        return f"svgpbench survive --results {results / self.folder}"


def load_stability(results: Path, folder: str) -> StabilityFrame:
    """Return the walks at the centre of the shipped plan and at all rates from there.

    Without any, `why_not` has the reason. Walks that ended by a time limit, a kill or an error are left
    out.
    """
    plan = read_stability_plan()
    rows = list(_rows(plan, folder, read_stability(results / folder).values()))
    if not rows:
        return StabilityFrame(pd.DataFrame(), f"no walks in {results / folder}")
    return StabilityFrame(pd.DataFrame(rows))


def _rows(plan: StabilityPlan, folder: str, records: Any) -> Iterator[dict[str, Any]]:
    record: StabilityRecord
    for record in records:
        cell, point = record.run, record.run.point
        along_rates = point == plan.centre.model_copy(update={"rate": point.rate})
        as_shipped = not cell.plan and cell.steps == plan.steps
        if along_rates and as_shipped and record.status not in NO_VERDICT:
            yield {
                "data": cell.problem,
                "method": title(cell.library, cell.method),
                "rate": point.rate,
                "seed": cell.seed,
                "lived": record.status == "ok",
                "cell_id": f"{folder}/{cell.library}.jsonl",
            }
