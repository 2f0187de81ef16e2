"""Where cells are computed: a seat takes one at a time, and a crew is the seats that a run has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from svgpbench.results.records import WorkerFacts
from svgpbench.runs.cores import job_memory
from svgpbench.runs.process import Limits, StopSign, WorkerKind, WorkerProcess
from svgpbench.runs.protocol import Answer, Request
from svgpbench.runs.queue import PlannedCell

KEEPS_WORKER = frozenset({"ok", "not_pd", "diverged", "skipped"})
"""Statuses after which a worker may run another cell; after any other it is replaced."""


class Ran(NamedTuple):
    """How a cell ended, and in what process."""

    answer: Answer
    worker: WorkerFacts


class SeatLost(Exception):  # noqa: N818 - an outcome, not a fault of the caller
    """The machine of a seat is gone, and the cell that it ran with it; the message names it."""


class Seat(Protocol):
    """A place where one cell at a time is computed."""

    @property
    def job(self) -> int:
        """Its number, from 0, as events have it."""
        ...

    @property
    def keeps_places(self) -> bool:
        """Whether a cell's checkpoint may lie in the folder of records."""
        ...

    def may_run(self, kind: WorkerKind) -> bool:
        """Whether it has what cells of a kind need."""
        ...

    def run(self, planned: PlannedCell, request: Request, stop: StopSign) -> Ran:
        """Run a cell to its end; raises `Stopped` and `SeatLost`."""
        ...

    def leave(self) -> None:
        """There is nothing more to do here for now."""
        ...


class Seats(Protocol):
    """The seats of one part of a run."""

    def now(self) -> Sequence[Seat]:
        """Those that there are at this moment, each the same object every time."""
        ...

    def despair(self, waiting: Sequence[PlannedCell]) -> str:
        """Why no seat will come for cells for which there is none; empty while one may."""
        ...


class Crew(Protocol):
    """What a run has to compute with."""

    @property
    def size(self) -> int:
        """How many cells at a time."""
        ...

    def seats(self, cells: Sequence[PlannedCell], alone: bool) -> Seats:
        """Those for some cells, which run at the same time, or each `alone`."""
        ...


class LocalSeat:
    """Cores of this machine, with a worker that is kept while it fits and works."""

    keeps_places = True

    def __init__(self, job: int, cores: tuple[int, ...], limits: Limits, target: str) -> None:
        self.job = job
        self.cores, self.limits, self.target = cores, limits, target
        self.worker: WorkerProcess | None = None

    def may_run(self, kind: WorkerKind) -> bool:
        return True

    def run(self, planned: PlannedCell, request: Request, stop: StopSign) -> Ran:
        if self.worker is not None and not fits(self.worker, planned):
            self.leave()
        if self.worker is None:
            kind = WorkerKind.of(planned.config)
            self.worker = WorkerProcess(kind, self.cores[: kind.threads], self.target)
        worker, before = self.worker, self.worker.cells
        answer = worker.run(request, self.limits, stop)
        if answer.status not in KEEPS_WORKER or planned.config.measures or worker.worn:
            self.leave()
        return Ran(
            answer.model_copy(update={"environment": worker.environment}),
            WorkerFacts(fresh=before == 0, cells_before=before, resumptions=answer.resumptions),
        )

    def leave(self) -> None:
        if self.worker is not None:
            self.worker.close()
            self.worker = None


def fits(worker: WorkerProcess, planned: PlannedCell) -> bool:
    """Whether a warm worker may run the cell."""
    same_kind = worker.kind == WorkerKind.of(planned.config)
    return same_kind and worker.alive and not planned.config.measures


class LocalSeats(NamedTuple):
    """Seats that stay."""

    all: tuple[LocalSeat, ...]

    def now(self) -> Sequence[Seat]:
        return self.all

    def despair(self, waiting: Sequence[PlannedCell]) -> str:
        return ""


class LocalCrew(NamedTuple):
    """The cores of this machine, dealt out to jobs."""

    allotment: Sequence[tuple[int, ...]]
    timeout: float | None
    memory: float | None  # bytes that a worker may hold; None: a fair share
    target: str

    @property
    def size(self) -> int:
        return len(self.allotment)

    def seats(self, cells: Sequence[PlannedCell], alone: bool) -> Seats:
        jobs = self.allotment[: 1 if alone else len(cells)]
        limits = Limits(self.timeout, self.memory or job_memory(max(1, len(jobs))))
        return LocalSeats(
            tuple(LocalSeat(job, cores, limits, self.target) for job, cores in enumerate(jobs))
        )
