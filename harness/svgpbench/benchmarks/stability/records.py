"""Records of a stability map."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from svgpbench.benchmarks.records import BenchmarkRecord, Status, read
from svgpbench.benchmarks.stability.plan import AxisPoint, StabilityCell

NO_VERDICT: tuple[Status, ...] = ("error", "timeout", "crashed")
"""Statuses that say nothing about the natural gradient."""


class StabilityRecord(BenchmarkRecord):
    """Result of a cell's run. `ok`: it completed all its steps without diverging."""

    kind: ClassVar[str] = "stability"

    run: StabilityCell
    step: int = 0  # the last one, from 1; 0 if the run failed before the first
    bounds: tuple[float, ...] = ()  # at the start and at each check
    smallest_variance: float | None = None  # of q(f) at the failing minibatch, before it
    seconds: float = 0.0  # of the whole process
    n: int = 0  # number of data

    @property
    def bound_a_datum(self) -> float:
        """Last computed bound, in nats per datum."""
        return self.bounds[-1] / self.n

    def stopped_short(self, limit_s: float) -> bool:
        """Return True if it timed out before `limit_s`. It has no verdict and may run again."""
        return self.status == "timeout" and self.seconds < limit_s

    @classmethod
    def nested_run(cls, facts: Mapping[str, Any]) -> dict[str, Any]:
        point = {axis: facts[axis] for axis in AxisPoint.model_fields}
        names = ("problem", "library", "method", "steps", "seed", "plan")
        return {"point": point} | {name: facts[name] for name in names}


def read_stability(folder: Path) -> dict[StabilityCell, StabilityRecord]:
    """Return the last record of every cell in a folder."""
    return {record.run: record for record in read(folder, StabilityRecord)}
