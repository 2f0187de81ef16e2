"""Which cells a run has to do, and which of them a job takes next."""

from __future__ import annotations

import importlib
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from svgpbench.config import CellConfig
from svgpbench.experiments.identity import Identity, same_cell
from svgpbench.results.records import Record
from svgpbench.results.store import record_of
from svgpbench.runs.process import WorkerKind
from svgpbench.runs.protocol import TARGET


@dataclass(frozen=True)
class PlannedCell:
    """A cell to run."""

    identity: Identity

    @property
    def config(self) -> CellConfig:
        """The complete configuration."""
        return self.identity.config

    @property
    def cell_id(self) -> str:
        """The id that its record has."""
        return self.identity.cell_id

    @property
    def alone(self) -> bool:
        """Whether nothing else may run meanwhile."""
        return self.config.measures or self.config.backend.device != "cpu"


def identified(cells: Sequence[CellConfig], target: str = TARGET) -> list[PlannedCell]:
    """Each different cell once, in declared order, whole."""
    identify: Callable[[CellConfig], Identity] = importlib.import_module(target).identify
    plan: dict[str, PlannedCell] = {}
    for config in cells:
        planned = PlannedCell(identify(config))
        plan.setdefault(planned.cell_id, planned)
    return list(plan.values())


def record_for(results: Path, planned: PlannedCell) -> Record | None:
    """The record that an earlier run made of this cell, if there is one.

    An id leaves out what is at its default, so a record that says otherwise than the cell in any key was
    made when a default was another: it is none of this cell. Errors as of `record_of`.
    """
    record = record_of(results, planned.config, planned.cell_id)
    if record is None or not same_cell(record.config, planned.config):
        return None
    return record


class Backlog:
    """Cells that wait, by kind of worker; a job keeps to its kind while that lasts."""

    def __init__(self, cells: Sequence[PlannedCell]) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[WorkerKind, deque[PlannedCell]] = {}
        self._taken_by: dict[int, WorkerKind] = {}
        for planned in cells:
            self._waiting.setdefault(WorkerKind.of(planned.config), deque()).append(planned)

    def take(
        self, job: int, may_run: Callable[[WorkerKind], bool] = lambda kind: True
    ) -> PlannedCell | None:
        """The next cell of the job's kind, or else of the kind that the fewest jobs work on.

        None where no cell waits that the job may run.
        """
        with self._lock:
            kinds = [kind for kind in self._kinds() if may_run(kind)]
            if not kinds:
                return None
            kind = self._taken_by.pop(job, None)
            if kind not in kinds:
                crowd = Counter(self._taken_by.values())
                kind = min(kinds, key=lambda kind: crowd[kind])
            self._taken_by[job] = kind
            return self._waiting[kind].popleft()

    def put_back(self, planned: PlannedCell) -> None:
        """A cell that was taken waits again, before all others of its kind."""
        with self._lock:
            self._waiting[WorkerKind.of(planned.config)].appendleft(planned)

    def waiting(self) -> list[PlannedCell]:
        """The cells that nobody has taken."""
        with self._lock:
            return [planned for cells in self._waiting.values() for planned in cells]

    def waits_for(self, may_run: Callable[[WorkerKind], bool] = lambda kind: True) -> bool:
        """Whether a cell waits that may be run so."""
        with self._lock:
            return any(map(may_run, self._kinds()))

    def _kinds(self) -> list[WorkerKind]:
        return [kind for kind, queue in self._waiting.items() if queue]
