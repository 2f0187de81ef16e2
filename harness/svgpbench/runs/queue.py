"""The queue of cells of a run: which cell a slot runs next."""

from __future__ import annotations

import importlib
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from svgpbench.config import CellConfig
from svgpbench.experiments.identity import CellIdentity, OtherCode, cell_code, same_cell
from svgpbench.results.records import Record
from svgpbench.results.store import record_of
from svgpbench.runs.process import WorkerKind
from svgpbench.runs.protocol import TARGET


@dataclass(frozen=True)
class PlannedCell:
    """A cell to run, with its id and the code that is to compute it."""

    identity: CellIdentity
    code: Mapping[str, str] = field(default_factory=dict)  # of `cell_code`

    @property
    def config(self) -> CellConfig:
        """The complete configuration."""
        return self.identity.config

    @property
    def cell_id(self) -> str:
        """Id of the cell and of its record."""
        return self.identity.cell_id

    @property
    def alone(self) -> bool:
        """True if no other cell may run at the same time: it measures time, or uses a device."""
        return self.config.measures or self.config.backend.device != "cpu"


def identified(cells: Sequence[CellConfig], target: str = TARGET) -> list[PlannedCell]:
    """Return the distinct cells in declared order, with complete configurations and ids."""
    identify: Callable[[CellConfig], CellIdentity] = importlib.import_module(target).identify
    plan: dict[str, PlannedCell] = {}
    for config in cells:
        planned = PlannedCell(identify(config), cell_code(config))
        plan.setdefault(planned.cell_id, planned)
    return list(plan.values())


def record_for(results: Path, planned: PlannedCell) -> Record | None:
    """Return the record that an earlier run made of this cell, if any.

    An id leaves out fields at their defaults. A record whose configuration differs from the cell's was made
    under other defaults and does not belong to it. Raises as `record_of` does.
    """
    record = record_of(results, planned.config, planned.cell_id)
    if record is None or not same_cell(record.config, planned.config):
        return None
    return record


def other_code(record: Record, planned: PlannedCell) -> OtherCode:
    """Return in what the code that made a record differs from the code that is to compute its cell."""
    return OtherCode.between(record.code, planned.code)


class CellQueue:
    """Waiting cells by kind of worker. A job takes cells of the kind it ran last while there are any."""

    def __init__(self, cells: Sequence[PlannedCell]) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[WorkerKind, deque[PlannedCell]] = {}
        self._taken_by: dict[int, WorkerKind] = {}
        for planned in cells:
            self._waiting.setdefault(WorkerKind.for_cell(planned.config), deque()).append(planned)

    def take(
        self, job: int, can_run: Callable[[WorkerKind], bool] = lambda kind: True
    ) -> PlannedCell | None:
        """Return the next cell of the job's kind, or else of the kind that the fewest jobs run.

        None if no cell waits that the job can run.
        """
        with self._lock:
            kinds = [kind for kind in self._kinds() if can_run(kind)]
            if not kinds:
                return None
            # popped before the count, so that this job does not count for the kind that it leaves;
            # another kind needs a new worker, which imports and compiles anew
            kind = self._taken_by.pop(job, None)
            if kind not in kinds:
                jobs_by_kind = Counter(self._taken_by.values())
                kind = min(kinds, key=lambda kind: jobs_by_kind[kind])
            self._taken_by[job] = kind
            return self._waiting[kind].popleft()

    def put_back(self, planned: PlannedCell) -> None:
        """Put a cell back, before all others of its kind."""
        with self._lock:
            self._waiting[WorkerKind.for_cell(planned.config)].appendleft(planned)

    def waiting(self) -> list[PlannedCell]:
        """Return the cells that no job has taken."""
        with self._lock:
            return [planned for cells in self._waiting.values() for planned in cells]

    def waits_for(self, can_run: Callable[[WorkerKind], bool] = lambda kind: True) -> bool:
        """Return True if a cell waits of a kind that `can_run` accepts."""
        with self._lock:
            return any(map(can_run, self._kinds()))

    def _kinds(self) -> list[WorkerKind]:
        return [kind for kind, queue in self._waiting.items() if queue]
