"""Run cells on slots and write their records. A cell that another run has locked waits for it."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple, TypeAlias

from svgpbench.errors import UserError
from svgpbench.experiments.identity import OtherCode
from svgpbench.results.cell_locks import FileLocks
from svgpbench.results.records import (
    DamagedRecordError,
    Record,
    WorkerFacts,
    checkpoint_path,
    is_final,
    read_record,
    record_path,
    set_aside,
    write_record,
)
from svgpbench.results.store import record_of
from svgpbench.runs.events import Event, Finished, Noticed, Started
from svgpbench.runs.process import Stopped
from svgpbench.runs.protocol import Answer, Request
from svgpbench.runs.queue import CellQueue, PlannedCell, other_code, record_for
from svgpbench.runs.slots import CellResult, Slot, SlotLost, SlotPool

UPDATE_INTERVAL_S = 0.5  # between checks for new slots and for cells that other runs have unlocked
MAX_LOST = 2
"""Number of lost machines after which a cell counts as crashed. Before, the cell runs again."""


class _SlotReleased(NamedTuple):
    """A message: a slot has no more cells."""

    slot: Slot


_Message: TypeAlias = Event | Exception | _SlotReleased


@dataclass
class Scheduler:
    """The cells of one run, its records, and the threads that serve its slots."""

    results: Path
    checkpoint_every: float
    locks: FileLocks
    started_before: Mapping[str, datetime | None] | None
    """Start time of the record that each cell had when the run began; None: run every cell."""
    total: int
    records: list[Record] = field(default_factory=list)
    done_by_others: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)
    _locked_by_others: list[PlannedCell] = field(default_factory=list)
    _lost: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _count_lock: threading.Lock = field(default_factory=threading.Lock)

    def run(
        self, cells: Sequence[PlannedCell], slots: SlotPool, on_event: Callable[[Event], None]
    ) -> None:
        """Run the cells, one thread per slot. `on_event` is called in the calling thread."""
        messages: queue.Queue[_Message] = queue.Queue()
        cell_queue = CellQueue(cells)
        busy: dict[int, threading.Thread] = {}
        next_update = 0.0
        try:
            # one loop in the calling thread handles all messages, so that `on_event` never runs in two
            # threads, and progress displays and callers need no locks of their own
            while True:
                if time.monotonic() >= next_update:
                    self._requeue_unlocked(cell_queue, messages)
                    self._start_slots(slots, cell_queue, busy, messages)
                    next_update = time.monotonic() + UPDATE_INTERVAL_S
                    # cells skipped or done elsewhere put messages from this thread, without a slot
                    if (
                        not busy
                        and not self._locked_by_others
                        and not cell_queue.waits_for()
                        and messages.empty()
                    ):
                        return
                try:
                    item = messages.get(timeout=max(0.0, next_update - time.monotonic()))
                except queue.Empty:
                    continue
                if isinstance(item, Exception):
                    raise item
                if isinstance(item, _SlotReleased):
                    # look for new slots at once: the released cores may allow a cell of another kind
                    busy.pop(item.slot.job).join()
                    next_update = 0.0
                else:
                    on_event(item)
        # Ctrl-C too: every thread sees the sign and ends its worker, which else would outlive the run
        except BaseException:
            self._stop.set()
            for thread in busy.values():
                thread.join()
            raise

    def _start_slots(
        self,
        slots: SlotPool,
        cell_queue: CellQueue,
        busy: dict[int, threading.Thread],
        messages: queue.Queue[_Message],
    ) -> None:
        """Start a thread for every idle slot that can run a waiting cell.

        Skip the waiting cells if no slot can ever run them.
        """
        for slot in slots.now():
            if slot.job not in busy and cell_queue.waits_for(slot.can_run):
                busy[slot.job] = threading.Thread(
                    target=self._serve, args=(slot, cell_queue, messages), name=f"job {slot.job}"
                )
                busy[slot.job].start()
        if (
            not busy
            and (waiting := cell_queue.waiting())
            and (why := slots.unschedulable_reason(waiting))
        ):
            while (planned := cell_queue.take(0)) is not None:
                self._skip(planned, why, messages)

    def _skip(self, planned: PlannedCell, why: str, messages: queue.Queue[_Message]) -> None:
        """Record a cell as skipped, unless another run computes it or has made its record."""
        if not self.locks.acquire(planned.cell_id):
            self._locked_by_others.append(planned)
            return
        try:
            if (record := self._record_by_others(planned)) is not None:
                self._count_done_by_others(record, 0, messages)
                return
            answer = Answer(status="skipped", message=why)
            ran = CellResult(answer, WorkerFacts(fresh=True, cells_before=0))
            self._write(planned, ran, self._start_time(planned), 0.0, 0, messages)
        finally:
            self.locks.release(planned.cell_id)

    def _requeue_unlocked(self, cell_queue: CellQueue, messages: queue.Queue[_Message]) -> None:
        """Queue the cells that another run has unlocked without making their records."""
        for planned in self._locked_by_others.copy():
            if not self.locks.acquire(planned.cell_id):
                continue
            self._locked_by_others.remove(planned)
            # read while it is locked: the other run writes the record before it unlocks the cell
            record = self._record_by_others(planned)
            self.locks.release(planned.cell_id)
            if record is None:
                cell_queue.put_back(planned)
            else:
                self._count_done_by_others(record, 0, messages)

    def _serve(self, slot: Slot, cell_queue: CellQueue, messages: queue.Queue[_Message]) -> None:
        """Run cell after cell on one slot."""
        try:
            while not self._stop.is_set():
                planned = cell_queue.take(slot.job, slot.can_run)
                if planned is None:
                    break
                if not self.locks.acquire(planned.cell_id):
                    # no waiting here: the slot would be idle while other cells are free
                    self._locked_by_others.append(planned)
                    continue
                try:
                    self._run_locked(planned, slot, messages)
                except SlotLost as loss:
                    self._requeue(planned, str(loss), cell_queue, messages)
                    break
                finally:
                    self.locks.release(planned.cell_id)
        except Stopped:
            pass
        except Exception as error:  # raised again in the calling thread
            messages.put(error)
        finally:
            # before the message: a worker of the next thread must not start beside this one
            slot.release()
            messages.put(_SlotReleased(slot))

    def _run_locked(
        self, planned: PlannedCell, slot: Slot, messages: queue.Queue[_Message]
    ) -> None:
        """Run one cell, which this run has locked."""
        # another run may have finished the cell between our planning and our lock
        if (record := self._record_by_others(planned)) is not None:
            self._count_done_by_others(record, slot.job, messages)
            return
        done = len(self.records) + self.done_by_others
        messages.put(Started(planned.cell_id, planned.config, slot.job, done, self.total))
        # a measured time must be of one process
        keeps = slot.supports_checkpoints and not planned.config.measures
        path = checkpoint_path(self.results, planned.config, planned.cell_id)
        started, clock = self._start_time(planned), time.monotonic()
        request = Request(
            config=planned.config,
            checkpoint=str(path) if keeps else None,
            every_s=self.checkpoint_every,
        )
        ran = slot.run(planned, request, self._stop)
        self._write(planned, ran, started, time.monotonic() - clock, slot.job, messages)

    def _write(
        self,
        planned: PlannedCell,
        ran: CellResult,
        started: datetime,
        wall_s: float,
        job: int,
        messages: queue.Queue[_Message],
    ) -> None:
        """Write the record of a cell and report it."""
        lost = self._lost.get(planned.cell_id, ())
        facts = ran.worker.model_copy(update={"lost": lost})
        record = make_record(planned, ran.answer, facts, started, wall_s)
        # only now that there is an answer: a run that is killed must not lose the older record
        self._set_aside_other_code(planned)
        write_record(self.results, record)
        # a failure that is not final is tried again by the next run, from this checkpoint
        if is_final(record):
            checkpoint_path(self.results, planned.config, planned.cell_id).unlink(missing_ok=True)
        with self._count_lock:
            # counted and sent under one lock, so that the numbers of done cells come in order
            self.records.append(record)
            messages.put(Finished(record, job, len(self.records) + self.done_by_others, self.total))

    def _set_aside_other_code(self, planned: PlannedCell) -> None:
        """Rename the working record that another form of a plugin made; no run can make it again."""
        path = record_path(self.results, planned.config, planned.cell_id)
        with suppress(UserError):  # there is none, or it is damaged or of another schema
            if other_code(read_record(path), planned).plugins:
                set_aside(path, "superseded")

    def _requeue(
        self, planned: PlannedCell, who: str, cell_queue: CellQueue, messages: queue.Queue[_Message]
    ) -> None:
        """Requeue a cell whose machine was lost, or record it as crashed after `MAX_LOST` machines."""
        lost = (*self._lost.get(planned.cell_id, ()), who)
        self._lost[planned.cell_id] = lost
        if len(lost) < MAX_LOST:
            messages.put(
                Noticed(f"{who} was lost; its cell {planned.cell_id} runs again elsewhere")
            )
            cell_queue.put_back(planned)
            return
        answer = Answer(status="crashed", message=f"lost with it: {' and '.join(lost)}")
        ran = CellResult(answer, WorkerFacts(fresh=True, cells_before=0))
        self._write(planned, ran, self._start_time(planned), 0.0, 0, messages)

    def _count_done_by_others(
        self, record: Record, job: int, messages: queue.Queue[_Message]
    ) -> None:
        with self._count_lock:
            self.done_by_others += 1
            done = len(self.records) + self.done_by_others
            messages.put(Finished(record, job, done, self.total, elsewhere=True))

    def _record_by_others(self, planned: PlannedCell) -> Record | None:
        """Return the record that another run has made of a cell since this run began, if any."""
        if self.started_before is None:
            return None
        with suppress(DamagedRecordError):  # it is written over
            record = record_for(self.results, planned)
            if record is None or record.started == self.started_before.get(planned.cell_id):
                return None
            if not other_code(record, planned).plugins:
                return record
        return None

    def _start_time(self, planned: PlannedCell) -> datetime:
        """Return the current time, or a time just after the start of the record to be replaced.

        Of two records, the one that started later counts, and the clock may have been set back.
        """
        now = datetime.now(UTC)
        with suppress(UserError):  # a record of another schema is replaced
            existing = record_of(self.results, planned.config, planned.cell_id)
            if existing is not None:
                return max(now, existing.started + timedelta(milliseconds=1))
        return now


def make_record(
    planned: PlannedCell, answer: Answer, worker: WorkerFacts, started: datetime, wall_s: float
) -> Record:
    """Return the record of a cell from its worker's answer."""
    answer = _refuse_other_inputs(planned, answer)
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


def _refuse_other_inputs(planned: PlannedCell, answer: Answer) -> Answer:
    """Return the answer, or `skipped` without numbers if the worker had other data or plugins than planned.

    A file may have changed since the run began, or may differ on the worker's machine.
    """
    expected = planned.identity.fingerprint
    fingerprint = answer.data.get("fingerprint", expected)
    code = answer.environment.code if answer.environment else {}
    other = OtherCode.between(code, planned.code).plugins
    if fingerprint != expected:
        why = f"data: fingerprint {fingerprint} where the run began with {expected}"
    elif other:
        why = f"code of {other} than the run began with; run it again"
    else:
        return answer
    return Answer(
        status="skipped",
        message=f"its worker found other {why}",
        environment=answer.environment,
        peak_memory_bytes=answer.peak_memory_bytes,
    )
