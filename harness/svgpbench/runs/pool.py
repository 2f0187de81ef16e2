"""Run cells in local worker processes, several at a time, and write a record of each.

A run has two parts. The first part has the cells that only compute; jobs with their own cores and warm
workers share them. The second part has the cells that measure time or memory or use a GPU; they run one
at a time. A cell with a final record (`svgpbench.results.records.FINAL`) is not run again, so that a run
that was stopped resumes. If the code of a plugin has changed since, its cells do run again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from svgpbench.atomic import refuse_unwritable
from svgpbench.backends import forget_changed
from svgpbench.config import CellConfig
from svgpbench.results.cell_locks import FileLocks
from svgpbench.results.records import (
    DamagedRecordError,
    checkpoint_path,
    is_final,
    record_path,
    set_aside,
)
from svgpbench.runs.core_locks import CoreReservation
from svgpbench.runs.cores import job_cores
from svgpbench.runs.events import Event, Noticed, Planned, SetAside, Summary
from svgpbench.runs.protocol import TARGET
from svgpbench.runs.queue import PlannedCell, identified, other_code, record_for
from svgpbench.runs.scheduler import Scheduler
from svgpbench.runs.slots import Executor, LocalExecutor
from svgpbench.runs.worker_setup import refuse_absent_devices
from svgpbench.training.checkpoints import EVERY_S


class RecordState(NamedTuple):
    """State of a cell's record before this run."""

    is_final: bool  # and made by the plugins as they are
    started: datetime | None
    other_plugins: str = ""  # whose code made it, in another form than theirs now
    other_ours: str = ""  # what of svgpbench has other code now, with the commit then


NO_RECORD = RecordState(is_final=False, started=None)


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
    executor: Executor | None = None,
) -> Summary:
    """Run every cell that has no final record under `results`, `jobs` at a time.

    Several runs may work on one folder at the same time. Each cell runs in one of them.

    Args:
        cells: the cells; two of the same id run once.
        results: folder of records.
        jobs: number of workers, each with its own cores; None: as many as fit.
        timeout: seconds that a cell may take, without its worker's start; None: no limit.
        memory: bytes that a worker may use; None: an equal share of the machine's memory.
        checkpoint_every: least seconds between two checkpoints of a cell.
        on_event: called in the calling thread.
        force: also run cells that have a final record, and ignore checkpoints.
        target: module that offers `run_cell` and `identify`.
        executor: computes in place of this machine; `jobs`, `timeout` and `memory` are then its own.

    Returns:
        A summary; after Ctrl-C it is marked `interrupted`, and every finished cell has its record.

    Raises:
        UserError: for a device that is not there, more jobs than cores, an existing record of another
            schema, a cell that cannot be identified, or a folder that cannot be written.
    """
    forget_changed()
    with ExitStack() as stack:
        if executor is None:
            refuse_absent_devices(cell.backend for cell in cells)
            reservation = stack.enter_context(closing(CoreReservation()))
            threads = max((cell.threads for cell in cells), default=1)
            allotment = job_cores(jobs, threads, reservation.choose)
            if reservation.note:
                on_event(Noticed(reservation.note))
            executor = LocalExecutor(allotment, timeout, memory, target, reservation.note)
        # identities need data and plugins, so that a mistake in either is found before the first cell starts
        plan = identified(cells, target)
        refuse_unwritable(results, str(results))
        resumable = [] if force else plan
        states = {cell.cell_id: _record_state(results, cell, on_event) for cell in resumable}
        for line in _lines_on_other_code(states.values()):
            on_event(Noticed(line))
        waiting = [cell for cell in plan if not states.get(cell.cell_id, NO_RECORD).is_final]
        locks = stack.enter_context(closing(FileLocks.in_folder(results)))
        if locks.missing:
            on_event(
                Noticed(
                    f"the disk of {results} keeps no locks ({locks.missing}): "
                    "start no second run on this folder meanwhile"
                )
            )
        else:
            # without locks nobody could tell a dead run's drafts from those that another run is writing
            sweep_drafts(results, plan, locks)
        if force:
            for planned in waiting:
                checkpoint_path(results, planned.config, planned.cell_id).unlink(missing_ok=True)
        started_before = (
            None if force else {cell_id: state.started for cell_id, state in states.items()}
        )
        scheduler = Scheduler(results, checkpoint_every, locks, started_before, total=len(waiting))
        resumed = len(plan) - len(waiting)
        on_event(Planned(len(waiting), resumed, executor.size))
        try:
            # cells that measure come last, one at a time: by then no other cell of this run loads the machine
            for alone in (False, True):
                part = [planned for planned in waiting if planned.alone == alone]
                if part:
                    scheduler.run(part, executor.slots(part, alone), on_event)
            interrupted = False
        except KeyboardInterrupt:
            interrupted = True
    return Summary(
        cells=tuple(planned.identity for planned in plan),
        records=scheduler.records,
        resumed=resumed,
        total=len(waiting),
        interrupted=interrupted,
        elsewhere=scheduler.done_by_others,
    )


def _record_state(
    results: Path, planned: PlannedCell, on_event: Callable[[Event], None]
) -> RecordState:
    """Return the state of a cell's record. A damaged record is renamed and reported."""
    try:
        record = record_for(results, planned)
    except DamagedRecordError as damage:
        new_path = set_aside(record_path(results, planned.config, planned.cell_id))
        on_event(SetAside(new_path, str(damage)))
        return NO_RECORD
    if record is None:
        return RecordState(is_final=False, started=None)
    other = other_code(record, planned)
    if other.plugins:
        return RecordState(is_final=False, started=record.started, other_plugins=other.plugins)
    ours = ""
    if other.ours and is_final(record):
        commit = (record.environment and record.environment.commit) or "unknown"
        ours = f"{other.ours} of svgpbench (commit {commit[:8]})"
    return RecordState(is_final(record), record.started, other_ours=ours)


def _lines_on_other_code(states: Iterable[RecordState]) -> Iterator[str]:
    """Yield a line for each plugin, and each part of svgpbench, whose code is not that of the records."""
    plugins = Counter(state.other_plugins for state in states if state.other_plugins)
    for name, count in plugins.items():
        yield f"{count} cells run again: their records were made by other code of {name}"
    for name, count in Counter(state.other_ours for state in states if state.other_ours).items():
        yield f"{count} records were made by other code of {name}; --force runs their cells again"


def sweep_drafts(results: Path, plan: Sequence[PlannedCell], locks: FileLocks) -> None:
    """Remove unfinished files of killed runs, except those of cells that another run has locked."""
    folders = {record_path(results, planned.config, planned.cell_id).parent for planned in plan}
    for draft in (path for folder in sorted(folders) for path in folder.glob(".*.tmp")):
        # `write_whole` names drafts .CELL_ID.json.PID.tmp
        cell_id = draft.name.split(".")[1]
        if locks.acquire(cell_id):
            draft.unlink(missing_ok=True)
            locks.release(cell_id)
