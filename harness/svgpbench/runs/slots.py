"""Slots, each of which computes one cell at a time, and the executor that provides them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from svgpbench.results.records import WorkerFacts
from svgpbench.runs.cores import job_memory
from svgpbench.runs.process import CellLimits, StopSign, WorkerKind, WorkerProcess
from svgpbench.runs.protocol import Answer, Request
from svgpbench.runs.queue import PlannedCell

KEEPS_WORKER = frozenset({"ok", "not_pd", "diverged", "skipped"})
"""Statuses after which a worker may run another cell; after any other it is replaced."""


class CellResult(NamedTuple):
    """The answer to a cell, and the process that gave it."""

    answer: Answer
    worker: WorkerFacts


class SlotLost(Exception):  # noqa: N818 - an outcome, not a fault of the caller
    """Raised when the machine of a slot is gone, and with it the cell; the message names the machine."""


class Slot(Protocol):
    """A place where one cell at a time is computed."""

    @property
    def job(self) -> int:
        """Number of the slot, from 0, as events show it."""
        ...

    @property
    def supports_checkpoints(self) -> bool:
        """True if it can write checkpoints into the folder of records."""
        ...

    def can_run(self, kind: WorkerKind) -> bool:
        """Return True if it has the cores and the device that cells of this kind need."""
        ...

    def run(self, planned: PlannedCell, request: Request, stop: StopSign) -> CellResult:
        """Run a cell to its end. Raises `Stopped` and `SlotLost`."""
        ...

    def release(self) -> None:
        """Free what the slot holds; it may be used again."""
        ...


class SlotPool(Protocol):
    """The slots of one part of a run."""

    def now(self) -> Sequence[Slot]:
        """Return the slots that exist at this moment; a slot is the same object every time."""
        ...

    def unschedulable_reason(self, waiting: Sequence[PlannedCell]) -> str:
        """Return why these cells can never be run; empty while a slot may still come."""
        ...


class Executor(Protocol):
    """The slots of a run: cores of this machine, or the workers of a cluster."""

    @property
    def size(self) -> int:
        """Number of cells that run at a time."""
        ...

    def slots(self, cells: Sequence[PlannedCell], alone: bool) -> SlotPool:
        """Return slots for these cells. With `alone` only one cell runs at a time."""
        ...


class LocalSlot:
    """A set of cores of this machine. Its worker process is reused while it fits the next cell."""

    supports_checkpoints = True

    def __init__(
        self,
        job: int,
        cores: tuple[int, ...],
        limits: CellLimits,
        target: str,
        shared_cores: str = "",
    ) -> None:
        self.job = job
        self.cores, self.limits, self.target = cores, limits, target
        self.shared_cores = shared_cores
        self.worker: WorkerProcess | None = None

    def can_run(self, kind: WorkerKind) -> bool:
        return True

    def run(self, planned: PlannedCell, request: Request, stop: StopSign) -> CellResult:
        kind = WorkerKind.for_cell(planned.config)
        if self.worker is not None and not (self.worker.alive and self.worker.kind == kind):
            self.release()
        if self.worker is None:
            # a slot has the cores of the cell with most threads
            self.worker = WorkerProcess(kind, self.cores[: kind.threads], self.target)
        worker, cells_before = self.worker, self.worker.cells
        answer = worker.run(request, self.limits, stop)
        # a worker that timed out or ran out of memory may hold locks or gigabytes: do not trust it again;
        # a peak of memory is of the process since its start, and a warm one has compiled already
        if answer.status not in KEEPS_WORKER or planned.config.measures or worker.needs_replacement:
            self.release()
        return CellResult(
            answer.model_copy(update={"environment": worker.environment}),
            WorkerFacts(
                fresh=cells_before == 0,
                cells_before=cells_before,
                resumptions=answer.resumptions,
                shared_cores=self.shared_cores,
            ),
        )

    def release(self) -> None:
        if self.worker is not None:
            self.worker.close()
            self.worker = None


class LocalSlots(NamedTuple):
    """The slots of this machine, which neither come nor go."""

    local_slots: tuple[LocalSlot, ...]

    def now(self) -> Sequence[Slot]:
        return self.local_slots

    def unschedulable_reason(self, waiting: Sequence[PlannedCell]) -> str:
        return ""


class LocalExecutor(NamedTuple):
    """The cores of this machine, divided among jobs."""

    allotment: Sequence[tuple[int, ...]]
    timeout: float | None
    memory: float | None  # bytes that a worker may use; None: an equal share of the memory
    target: str
    shared_cores: str = ""  # note of the reservation; empty if no other run has these cores

    @property
    def size(self) -> int:
        return len(self.allotment)

    def slots(self, cells: Sequence[PlannedCell], alone: bool) -> SlotPool:
        # fewer cells than jobs: each of them may use more of the memory
        jobs = self.allotment[: 1 if alone else len(cells)]
        limits = CellLimits(self.timeout, self.memory or job_memory(max(1, len(jobs))))
        return LocalSlots(
            tuple(
                LocalSlot(job, cores, limits, self.target, self.shared_cores)
                for job, cores in enumerate(jobs)
            )
        )
