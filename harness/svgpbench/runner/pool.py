"""Run cells in local worker processes, some at a time, and keep a record of each.

A run goes in two parts: the cells that only compute, spread over jobs with cores of their own and
warm workers, then one at a time those that measure time or memory or use the GPU. A cell whose
record is final (`svgpbench.runner.records.FINAL`) is not run again, so a run stopped anywhere resumes.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from svgpbench.config import CellConfig
from svgpbench.errors import UserError
from svgpbench.runner.backlog import Backlog, PlannedCell, final_record, identified
from svgpbench.runner.cores import job_cores, job_memory
from svgpbench.runner.events import Event, Finished, Planned, SetAside, Started, Summary
from svgpbench.runner.process import Limits, Stopped, WorkerKind, WorkerProcess
from svgpbench.runner.protocol import TARGET, Answer, Request
from svgpbench.runner.records import (
    DamagedRecordError,
    Record,
    WorkerFacts,
    checkpoint_path,
    is_final,
    record_path,
    set_aside,
    write_record,
)
from svgpbench.training.checkpoints import EVERY_S

__all__ = [
    "Event",
    "Finished",
    "Planned",
    "SetAside",
    "Started",
    "Summary",
    "identified",
    "run_cells",
]

KEEPS_WORKER = frozenset({"ok", "not_pd", "diverged", "skipped"})
"""Statuses after which a worker may run another cell; after any other it is replaced."""


def run_cells(
    cells: Sequence[CellConfig],
    *,
    results: Path,
    jobs: int | None = None,
    timeout: float | None = None,
    memory: float | None = None,
    checkpoint_every: float = EVERY_S,
    on_event: Callable[[Event], None] = lambda event: None,
    force: bool = False,
    target: str = TARGET,
) -> Summary:
    """Run every cell that has no final record under `results`, `jobs` at a time.

    Args:
        cells: the cells; two of the same id run once.
        results: folder of records.
        jobs: workers at a time, each with cores of its own; None: as many as fit.
        timeout: seconds that a cell may take, its worker's start not counted; None: any.
        memory: bytes that a worker may hold; None: a fair share of the machine's.
        checkpoint_every: least seconds between two writes of a cell's place.
        on_event: called in the calling thread.
        force: run cells that have a final record too, and those begun from their start.
        target: module that offers `run_cell` and `identify`.

    Returns:
        A summary; after Ctrl-C it is marked `interrupted`, and every finished cell has its record.

    Raises:
        UserError: for more jobs than cores, an existing record of another schema, a cell that
            cannot be identified, or a folder that cannot be written.
    """
    allotment = job_cores(jobs, max((cell.threads for cell in cells), default=1))
    plan = identified(cells, target)
    check_writable(results)
    waiting = [planned for planned in plan if force or not _is_done(results, planned, on_event)]
    if force:
        for planned in waiting:
            checkpoint_path(results, planned.config, planned.cell_id).unlink(missing_ok=True)
    run = _Run(results, timeout, memory, checkpoint_every, target, total=len(waiting))
    resumed = len(plan) - len(waiting)
    on_event(Planned(len(waiting), resumed, len(allotment)))
    try:
        run.work_through([planned for planned in waiting if not planned.alone], allotment, on_event)
        run.work_through([planned for planned in waiting if planned.alone], allotment[:1], on_event)
        interrupted = False
    except KeyboardInterrupt:
        interrupted = True
    asked = tuple(planned.identity for planned in plan)
    return Summary(asked, run.records, resumed, len(waiting), interrupted)


def _is_done(results: Path, planned: PlannedCell, on_event: Callable[[Event], None]) -> bool:
    """Whether a cell has its final record; what lies there and is none is set aside."""
    try:
        return final_record(results, planned) is not None
    except DamagedRecordError as damage:
        aside = set_aside(record_path(results, planned.config, planned.cell_id))
        on_event(SetAside(aside, str(damage)))
        return False


def check_writable(results: Path) -> None:
    """Make the folder of records, so that one that cannot be written is known before hours pass."""
    try:
        results.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write into {results}: {error.strerror}") from error
    if not os.access(results, os.W_OK | os.X_OK):
        raise UserError(f"cannot write into {results}: permission denied")


_News: TypeAlias = Event | Exception | None  # None: the job has no more to say


@dataclass
class _Run:
    """State that the jobs of one run share."""

    results: Path
    timeout: float | None
    memory: float | None
    checkpoint_every: float
    target: str
    total: int
    records: list[Record] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def work_through(
        self,
        cells: Sequence[PlannedCell],
        allotment: Sequence[tuple[int, ...]],
        on_event: Callable[[Event], None],
    ) -> None:
        """Run `cells` in a thread a job; events are handed out here, in the calling thread."""
        news: queue.Queue[_News] = queue.Queue()
        backlog = Backlog(cells)
        allotment = allotment[: len(cells)]
        limits = Limits(self.timeout, self.memory or job_memory(max(1, len(allotment))))
        threads = [
            threading.Thread(
                target=self._job, args=(job, cores, limits, backlog, news), name=f"job {job}"
            )
            for job, cores in enumerate(allotment)
        ]
        try:
            for thread in threads:
                thread.start()
            for _ in threads:
                while (item := news.get()) is not None:
                    if isinstance(item, Exception):
                        raise item
                    on_event(item)
        except BaseException:
            self.stop.set()
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
            raise

    def _job(
        self,
        job: int,
        cores: tuple[int, ...],
        limits: Limits,
        backlog: Backlog,
        news: queue.Queue[_News],
    ) -> None:
        """One job: cell after cell, in a worker that is kept while it fits and works."""
        worker: WorkerProcess | None = None
        try:
            while not self.stop.is_set() and (planned := backlog.take(job)) is not None:
                if worker is not None and not fits(worker, planned):
                    worker.close()
                    worker = None
                if worker is None:
                    kind = WorkerKind.of(planned.config)
                    worker = WorkerProcess(kind, cores[: kind.threads], self.target)
                done = len(self.records)
                news.put(Started(planned.cell_id, planned.config, job, done, self.total))
                record = self._run_one(planned, worker, limits)
                self.records.append(record)
                news.put(Finished(record, job, len(self.records), self.total))
                if record.status not in KEEPS_WORKER or planned.config.measures:
                    worker.close()
                    worker = None
        except Stopped:
            pass
        except Exception as error:  # raised again in the calling thread
            news.put(error)
        finally:
            if worker is not None:
                worker.close()
            news.put(None)

    def _run_one(self, planned: PlannedCell, worker: WorkerProcess, limits: Limits) -> Record:
        cells_before = worker.cells
        place = checkpoint_path(self.results, planned.config, planned.cell_id)
        started, clock = datetime.now(UTC), time.monotonic()
        # a time that is measured is that of one process
        kept = None if planned.config.measures else str(place)
        request = Request(config=planned.config, checkpoint=kept, every_s=self.checkpoint_every)
        answer = worker.run(request, limits, self.stop)
        record = make_record(
            planned,
            answer.model_copy(update={"environment": worker.environment}),
            WorkerFacts(
                fresh=cells_before == 0,
                cells_before=cells_before,
                resumptions=answer.resumptions,
            ),
            started,
            time.monotonic() - clock,
        )
        write_record(self.results, record)
        if is_final(record):
            place.unlink(missing_ok=True)
        return record


def fits(worker: WorkerProcess, planned: PlannedCell) -> bool:
    """Whether a warm worker may run the cell."""
    same_kind = worker.kind == WorkerKind.of(planned.config)
    return same_kind and worker.alive and not planned.config.measures


def make_record(
    planned: PlannedCell, answer: Answer, worker: WorkerFacts, started: datetime, wall_s: float
) -> Record:
    """The record of a cell from its worker's answer."""
    return Record(
        cell_id=planned.cell_id,
        method_version=planned.identity.method_version,
        config=planned.config,
        status=answer.status,
        message=answer.message,
        traceback=answer.traceback,
        data={"fingerprint": planned.identity.fingerprint} | answer.data,
        environment=answer.environment,
        trace=answer.trace,
        metrics=answer.metrics,
        timing=answer.timing,
        started=started,
        wall_s=wall_s,
        peak_memory_bytes=answer.peak_memory_bytes,
        worker=worker,
    )
