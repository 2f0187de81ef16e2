"""Hands cells to seats, and writes the record of each; cells that another run has claimed wait for it."""

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
from svgpbench.results.cell_locks import Claims
from svgpbench.results.records import (
    DamagedRecordError,
    Record,
    WorkerFacts,
    checkpoint_path,
    is_final,
    write_record,
)
from svgpbench.results.store import record_of
from svgpbench.runs.events import Event, Finished, Noticed, Started
from svgpbench.runs.process import Stopped
from svgpbench.runs.protocol import Answer, Request
from svgpbench.runs.queue import Backlog, PlannedCell, record_for
from svgpbench.runs.slots import Ran, Seat, SeatLost, Seats

LOOK_S = 0.5  # how often new seats and cells of other runs are looked for
MOST_LOST = 2
"""Machines that may be lost with one cell: after the first it runs again, after the second it has crashed."""


class _Left(NamedTuple):
    """A seat has nothing to do."""

    seat: Seat


_News: TypeAlias = Event | Exception | _Left


@dataclass
class Foreman:
    """State that the seats of one run share."""

    results: Path
    checkpoint_every: float
    claims: Claims
    before: Mapping[str, datetime | None] | None
    """By cell, when the record that was there at the start was begun; None: every cell is to be run."""
    total: int
    records: list[Record] = field(default_factory=list)
    elsewhere: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)
    _held: list[PlannedCell] = field(default_factory=list)  # that other runs have claimed
    _lost: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _counting: threading.Lock = field(default_factory=threading.Lock)

    def work_through(
        self, cells: Sequence[PlannedCell], seats: Seats, on_event: Callable[[Event], None]
    ) -> None:
        """Run `cells` in a thread a seat; events are handed out here, in the calling thread."""
        news: queue.Queue[_News] = queue.Queue()
        backlog = Backlog(cells)
        busy: dict[int, threading.Thread] = {}
        next_look = 0.0
        try:
            while True:
                if time.monotonic() >= next_look:
                    self._free_held(backlog, news)
                    self._seat_all(seats, backlog, busy, news)
                    next_look = time.monotonic() + LOOK_S
                    if not busy and not self._held and not backlog.waits_for() and news.empty():
                        return
                try:
                    item = news.get(timeout=max(0.0, next_look - time.monotonic()))
                except queue.Empty:
                    continue
                if isinstance(item, Exception):
                    raise item
                if isinstance(item, _Left):
                    busy.pop(item.seat.job).join()
                    next_look = 0.0
                else:
                    on_event(item)
        except BaseException:
            self._stop.set()
            for thread in busy.values():
                thread.join()
            raise

    def _seat_all(
        self,
        seats: Seats,
        backlog: Backlog,
        busy: dict[int, threading.Thread],
        news: queue.Queue[_News],
    ) -> None:
        """A thread for every seat that has none and could do something."""
        for seat in seats.now():
            if seat.job not in busy and backlog.waits_for(seat.may_run):
                busy[seat.job] = threading.Thread(
                    target=self._serve, args=(seat, backlog, news), name=f"job {seat.job}"
                )
                busy[seat.job].start()
        if not busy and (waiting := backlog.waiting()) and (why := seats.despair(waiting)):
            while (planned := backlog.take(0)) is not None:
                ran = Ran(
                    Answer(status="skipped", message=why), WorkerFacts(fresh=True, cells_before=0)
                )
                self._keep(planned, ran, datetime.now(UTC), 0.0, 0, news)

    def _free_held(self, backlog: Backlog, news: queue.Queue[_News]) -> None:
        """Cells that another run has given up wait again, but for those that it has made a record of."""
        for planned in self._held.copy():
            if not self.claims.take(planned.cell_id):
                continue
            self._held.remove(planned)
            made = self._made_meanwhile(planned)
            self.claims.drop(planned.cell_id)
            if made is None:
                backlog.put_back(planned)
            else:
                self._count_elsewhere(made, 0, news)

    def _serve(self, seat: Seat, backlog: Backlog, news: queue.Queue[_News]) -> None:
        """One seat: cell after cell."""
        try:
            while not self._stop.is_set():
                planned = backlog.take(seat.job, seat.may_run)
                if planned is None:
                    break
                if not self.claims.take(planned.cell_id):
                    self._held.append(planned)
                    continue
                try:
                    self._do(planned, seat, news)
                except SeatLost as loss:
                    self._lose(planned, str(loss), backlog, news)
                    break
                finally:
                    self.claims.drop(planned.cell_id)
        except Stopped:
            pass
        except Exception as error:  # raised again in the calling thread
            news.put(error)
        finally:
            seat.leave()
            news.put(_Left(seat))

    def _do(self, planned: PlannedCell, seat: Seat, news: queue.Queue[_News]) -> None:
        """One cell that is claimed."""
        if (made := self._made_meanwhile(planned)) is not None:
            self._count_elsewhere(made, seat.job, news)
            return
        done = len(self.records) + self.elsewhere
        news.put(Started(planned.cell_id, planned.config, seat.job, done, self.total))
        # a time that is measured is that of one process
        keeps = seat.keeps_places and not planned.config.measures
        place = checkpoint_path(self.results, planned.config, planned.cell_id)
        started, clock = self._begun(planned), time.monotonic()
        request = Request(
            config=planned.config,
            checkpoint=str(place) if keeps else None,
            every_s=self.checkpoint_every,
        )
        ran = seat.run(planned, request, self._stop)
        self._keep(planned, ran, started, time.monotonic() - clock, seat.job, news)

    def _keep(
        self,
        planned: PlannedCell,
        ran: Ran,
        started: datetime,
        wall_s: float,
        job: int,
        news: queue.Queue[_News],
    ) -> None:
        """Write a cell's record and say so."""
        lost = self._lost.get(planned.cell_id, ())
        facts = ran.worker.model_copy(update={"lost": lost})
        record = make_record(planned, ran.answer, facts, started, wall_s)
        write_record(self.results, record)
        if is_final(record):
            checkpoint_path(self.results, planned.config, planned.cell_id).unlink(missing_ok=True)
        with self._counting:
            self.records.append(record)
            news.put(Finished(record, job, len(self.records) + self.elsewhere, self.total))

    def _lose(
        self, planned: PlannedCell, who: str, backlog: Backlog, news: queue.Queue[_News]
    ) -> None:
        """A cell whose machine was lost: it waits again, or has crashed where that is not the first."""
        lost = (*self._lost.get(planned.cell_id, ()), who)
        self._lost[planned.cell_id] = lost
        if len(lost) < MOST_LOST:
            news.put(Noticed(f"{who} was lost; its cell {planned.cell_id} runs again elsewhere"))
            backlog.put_back(planned)
            return
        answer = Answer(status="crashed", message=f"lost with it: {' and '.join(lost)}")
        ran = Ran(answer, WorkerFacts(fresh=True, cells_before=0))
        self._keep(planned, ran, self._begun(planned), 0.0, 0, news)

    def _count_elsewhere(self, made: Record, job: int, news: queue.Queue[_News]) -> None:
        with self._counting:
            self.elsewhere += 1
            done = len(self.records) + self.elsewhere
            news.put(Finished(made, job, done, self.total, elsewhere=True))

    def _made_meanwhile(self, planned: PlannedCell) -> Record | None:
        """The record that another run has made of a cell since this one began."""
        if self.before is None:
            return None
        with suppress(DamagedRecordError):  # it is written over
            record = record_for(self.results, planned)
            if record is not None and record.started != self.before.get(planned.cell_id):
                return record
        return None

    def _begun(self, planned: PlannedCell) -> datetime:
        """Now; after the record that is there in any case, whose place the new one takes.

        A clock may have been put back, and of two records that one counts which was begun last.
        """
        now = datetime.now(UTC)
        with suppress(UserError):  # of another schema: it goes, as what `--force` runs again
            there = record_of(self.results, planned.config, planned.cell_id)
            if there is not None:
                return max(now, there.started + timedelta(milliseconds=1))
        return now


def make_record(
    planned: PlannedCell, answer: Answer, worker: WorkerFacts, started: datetime, wall_s: float
) -> Record:
    """The record of a cell from its worker's answer."""
    answer = _of_its_data(planned, answer)
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


def _of_its_data(planned: PlannedCell, answer: Answer) -> Answer:
    """The answer, but for its numbers where a worker found other data than the cell is of.

    A file may have changed since the run was planned, or be another one on the worker's machine.
    """
    expected = planned.identity.fingerprint
    found = answer.data.get("fingerprint", expected)
    if found == expected:
        return answer
    return Answer(
        status="skipped",
        message=f"its worker found other data: fingerprint {found} where the run began with {expected}",
        environment=answer.environment,
        peak_memory_bytes=answer.peak_memory_bytes,
    )
