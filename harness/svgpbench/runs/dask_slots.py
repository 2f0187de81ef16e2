"""Cells computed by the workers of a Dask cluster; records stay with the run, which nothing else writes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from distributed import Client, Future
from distributed.scheduler import KilledWorker
from pydantic import ValidationError

import svgpbench
from svgpbench.errors import UserError
from svgpbench.results.records import WorkerFacts
from svgpbench.runs import dask_task
from svgpbench.runs.dask_task import Greeting, Order, Reply
from svgpbench.runs.process import Stopped, StopSign, WorkerKind
from svgpbench.runs.protocol import TARGET, Answer, Request
from svgpbench.runs.queue import PlannedCell
from svgpbench.runs.slots import Ran, Seat, SeatLost

GPU = "GPU"
"""The resource of a Dask worker that runs cells of a GPU: as many at a time as it says."""
GLANCE_S = 0.2


@dataclass
class Member:
    """A Dask worker."""

    address: str
    greeted: Any  # the future of its greeting
    slots: int
    gpus: float
    greeting: Greeting | None = None
    refused: str = ""
    gone: bool = False
    seats: list[DaskSeat] = field(default_factory=list)


class DaskSeat:
    """One of the cells at a time that a Dask worker takes."""

    keeps_places = False  # the disk of the records is not the worker's

    def __init__(self, job: int, member: Member, crew: DaskCrew) -> None:
        self.job = job
        self.member, self.crew = member, crew

    def may_run(self, kind: WorkerKind) -> bool:
        member = self.member
        if member.gone or member.greeting is None or kind.threads > member.greeting.cores:
            return False
        return kind.device == "cpu" or member.gpus >= 1

    def run(self, planned: PlannedCell, request: Request, stop: StopSign) -> Ran:
        member, crew = self.member, self.crew
        assert member.greeting is not None
        order = Order(
            process=member.greeting.process,
            cell_id=planned.cell_id,
            request=request,
            timeout=crew.timeout,
            memory=crew.memory,
            target=crew.target,
        )
        needs = {GPU: 1} if planned.config.backend.device != "cpu" else None
        future = crew.submit(member.address, dask_task.compute, order.model_dump_json(), needs)
        reply = self._reply(future, stop)
        if reply.answer is None:
            member.gone = True
            raise SeatLost(f"Dask worker {member.address}")
        return Ran(
            reply.answer,
            WorkerFacts(fresh=True, cells_before=0, resumptions=reply.answer.resumptions),
        )

    def _reply(self, future: Any, stop: StopSign) -> Reply:
        """What the worker answers; raises `Stopped`, `SeatLost`, `UserError` where Dask itself is gone."""
        done = threading.Event()
        future.add_done_callback(lambda _: done.set())
        try:
            while not done.wait(GLANCE_S):
                if stop.is_set():
                    raise Stopped
                if self.member.gone:
                    raise SeatLost(f"Dask worker {self.member.address}")
            if future.status == "finished":
                return Reply.model_validate_json(self._result(future, stop))
            if future.status == "error":
                error = future.exception(timeout=30)
                if isinstance(error, KilledWorker):
                    raise SeatLost(f"Dask worker {self.member.address}")
                said = f"{type(error).__name__}: {error}".splitlines()[0]
                return Reply(answer=Answer(status="crashed", message=f"in the Dask worker: {said}"))
            raise self.crew.lost_scheduler()
        except ValidationError:
            return Reply(answer=Answer(status="crashed", message="the answer could not be read"))
        finally:
            self.crew.release(future)

    def _result(self, future: Any, stop: StopSign) -> str:
        """The text of a finished future; its worker may be lost before it has been fetched."""
        while True:
            try:
                text: str = future.result(timeout=2.0)
                return text
            except TimeoutError:
                if stop.is_set():
                    raise Stopped from None
                if self.member.gone:
                    raise SeatLost(f"Dask worker {self.member.address}") from None

    def leave(self) -> None:
        pass


class DaskCrew:
    """The workers that a scheduler has at each moment: they may come late, and go."""

    def __init__(
        self,
        client: Client,
        *,
        timeout: float | None = None,
        memory: float | None = None,
        target: str = TARGET,
        patience_s: float | None = 60.0,
        on_notice: Callable[[str], None] = lambda line: None,
    ) -> None:
        """`patience_s` is how long to wait for a worker that fits; None: as long as it takes."""
        self.client = client
        self.timeout, self.memory, self.target = timeout, memory, target
        self.patience_s, self.on_notice = patience_s, on_notice
        self._members: dict[str, Member] = {}
        self._jobs = 0
        self._useful = time.monotonic()  # when a seat last could run something

    @property
    def size(self) -> int:
        self._look()
        return sum(member.slots for member in self._members.values())

    def seats(self, cells: Sequence[PlannedCell], alone: bool) -> DaskCrew:
        """Those of all workers, for cells that run alone too: these claim their machine's cores first."""
        self._useful = time.monotonic()
        return self

    def now(self) -> Sequence[Seat]:
        self._look()
        return [seat for member in self._members.values() for seat in member.seats]

    def despair(self, waiting: Sequence[PlannedCell]) -> str:
        kinds = {WorkerKind.of(planned.config) for planned in waiting}
        if any(seat.may_run(kind) for seat in self.now() for kind in kinds):
            self._useful = time.monotonic()
        if self.patience_s is None or time.monotonic() - self._useful < self.patience_s:
            return ""
        if not self.now():
            refused = [one.refused for one in self._members.values() if one.refused]
            why = f" ({refused[0]})" if refused else ""
            raise UserError(
                f"no Dask worker that can run cells came within {self.patience_s:g} s{why}; "
                "start one, and the same command goes on from here"
            )
        if any(kind.device != "cpu" for kind in kinds):
            return f"no Dask worker has a GPU: start one with --resources {GPU}=1"
        threads = max(kind.threads for kind in kinds)
        return f"no Dask worker has {threads} cores, which the cell wants"

    def submit(
        self, address: str, do: Callable[..., str], order: str | None, needs: dict[str, int] | None
    ) -> Any:
        """Have one worker do something; no other takes it over, so that a loss is known here."""
        return self.client.submit(
            do,
            *([] if order is None else [order]),
            pure=False,
            workers=[address],
            allow_other_workers=False,
            retries=0,
            resources=needs,
        )

    def release(self, future: Future) -> None:
        """Forget a task; one that still runs ends."""
        if self.client.status == "running":
            self.client.cancel([future], force=True)

    def lost_scheduler(self) -> UserError:
        """The Dask scheduler has left the run."""
        return UserError(
            "the Dask scheduler is gone; finished cells have their records, and the same command goes on"
        )

    def _look(self) -> None:
        """Who is there: new workers are greeted, and those that left are marked."""
        try:
            there = self.client.scheduler_info()["workers"]
        except (OSError, TimeoutError) as error:
            raise self.lost_scheduler() from error
        for address in [*self._members]:
            if address not in there or self._members[address].gone:
                self._members.pop(address).gone = True
        for address, facts in there.items():
            if address not in self._members:
                greeted = self.submit(address, dask_task.greet, None, None)
                gpus = float(facts.get("resources", {}).get(GPU, 0.0))
                self._members[address] = Member(address, greeted, facts["nthreads"], gpus)
        for member in self._members.values():
            if member.greeting is None and not member.refused and member.greeted.done():
                self._welcome(member)

    def _welcome(self, member: Member) -> None:
        """Give a worker seats if it can run our cells, else say why not."""
        if member.greeted.status == "finished":
            member.greeting = Greeting.model_validate_json(member.greeted.result(timeout=30))
            if member.greeting.version != svgpbench.__version__:
                member.refused = f"it has svgpbench {member.greeting.version}"
        else:
            error = member.greeted.exception(timeout=30)
            member.refused = f"{type(error).__name__}: {error}".splitlines()[0]
        if member.refused:
            member.greeting = None
            member.refused = f"Dask worker {member.address} is not used: {member.refused}"
            self.on_notice(member.refused)
            return
        jobs = range(self._jobs, self._jobs + member.slots)
        member.seats = [DaskSeat(job, member, self) for job in jobs]
        self._jobs = jobs.stop
