"""Walks of a survival map, as a claim about the rates that natural gradients live with reads them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from svgpbench.benchmarks.stability.libraries import title
from svgpbench.benchmarks.stability.plan import Plan, read_plan
from svgpbench.benchmarks.stability.records import NO_VERDICT, Record, read
from svgpbench.papers.evidence.records import Evidence


class Walked(Evidence):
    """A row a walk: `data` (its problem), `method` as the map calls it, `rate`, `seed` and `lived`."""

    @property
    def condition(self) -> str:
        problems, walks = self.frame["data"].nunique(), len(self.frame)
        return (
            f"{walks} walks of {read_plan().steps} steps, {problems} problem{'s' * (problems > 1)}"
        )


def walked(results: Path, folder: str) -> Walked:
    """The walks at the centre of the shipped plan and along its rates; or why there are none.

    A walk that ended for want of time, or by an error of its own, says nothing, and is left out.
    """
    plan = read_plan()
    rows = list(_rows(plan, folder, read(results / folder).values()))
    if not rows:
        return Walked(pd.DataFrame(), f"no walks in {results / folder}")
    return Walked(pd.DataFrame(rows))


def _rows(plan: Plan, folder: str, records: Any) -> Iterator[dict[str, Any]]:
    record: Record
    for record in records:
        cell, at = record.cell, record.cell.point
        along_rates = at == plan.centre.model_copy(update={"rate": at.rate})
        if along_rates and cell.steps == plan.steps and record.end not in NO_VERDICT:
            yield {
                "data": cell.problem,
                "method": title(cell.library, cell.method),
                "rate": at.rate,
                "seed": cell.seed,
                "lived": record.lived,
                "cell_id": f"{folder}/{cell.library}.jsonl",
            }


def command(folder: str, results: Path) -> str:
    """What walks them."""
    return f"svgpbench survive --results {results / folder}"
