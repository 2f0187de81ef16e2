"""Run cells on the workers of a Dask cluster. Only the run itself writes records."""

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
from svgpbench.runs.dask_task import CellTask, TaskResult, WorkerInfo
from svgpbench.runs.process import Stopped, StopSign, WorkerKind
from svgpbench.runs.protocol import TARGET, Answer, Request
from svgpbench.runs.queue import PlannedCell
from svgpbench.runs.slots import CellResult, Slot, SlotLost

GPU = "GPU"
"""Dask resource of a worker with GPUs: the number of GPU cells that it runs at a time."""
POLL_INTERVAL_S = 0.2


@dataclass
class ClusterWorker:
    """A Dask worker and its state."""

    address: str
    info_future: Any  # of `worker_info`
    capacity: int  # cells at a time
    gpus: float
    info: WorkerInfo | None = None
    refused: str = ""
    gone: bool = False
    slots: list[DaskSlot] = field(default_factory=list)

    def lost(self) -> SlotLost:
        """Return the error that says that this worker is gone."""
        return SlotLost(f"Dask worker {self.address}")


class DaskSlot:
    """One of the cells that a Dask worker runs at a time."""

    supports_checkpoints = False  # the disk of the records is not the worker's

    def __init__(self, job: int, worker: ClusterWorker, executor: DaskExecutor) -> None:
        self.job = job
        self.worker, self.executor = worker, executor

    def can_run(self, kind: WorkerKind) -> bool:
        worker = self.worker
        if worker.gone or worker.info is None or kind.threads > worker.info.cores:
            return False
        return kind.device == "cpu" or worker.gpus >= 1

    def run(self, planned: PlannedCell, request: Request, stop: StopSign) -> CellResult:
        worker, executor = self.worker, self.executor
        assert worker.info is not None
        task = CellTask(
            process=worker.info.process,
            cell_id=planned.cell_id,
            code=dict(planned.code),
            request=request,
            timeout=executor.timeout,
            memory=executor.memory,
            target=executor.target,
        )
        needs = {GPU: 1} if planned.config.backend.device != "cpu" else None
        future = executor.submit(worker.address, dask_task.compute, task.model_dump_json(), needs)
        reply = self._reply(future, stop)
        # a restarted worker keeps its address, but this process has not been asked for its version
        if reply.answer is None:
            worker.gone = True
            raise worker.lost()
        return CellResult(
            reply.answer,
            WorkerFacts(
                fresh=True,
                cells_before=0,
                resumptions=reply.answer.resumptions,
                shared_cores=reply.shared_cores,
            ),
        )

    def _reply(self, future: Any, stop: StopSign) -> TaskResult:
        """Wait for the worker's answer.

        Raises `Stopped`, `SlotLost`, and `UserError` if the Dask scheduler is gone.
        """
        done = threading.Event()
        future.add_done_callback(lambda _: done.set())
        try:
            while not done.wait(POLL_INTERVAL_S):
                if stop.is_set():
                    raise Stopped
                if self.worker.gone:
                    raise self.worker.lost()
            if future.status == "finished":
                return TaskResult.model_validate_json(self._result(future, stop))
            if future.status == "error":
                error = future.exception(timeout=30)
                # Dask's word for a task whose worker died, not for a fault of the task
                if isinstance(error, KilledWorker):
                    raise self.worker.lost()
                first_line = f"{type(error).__name__}: {error}".splitlines()[0]
                return TaskResult(
                    answer=Answer(status="crashed", message=f"in the Dask worker: {first_line}")
                )
            raise self.executor.lost_scheduler()
        except ValidationError:
            return TaskResult(
                answer=Answer(status="crashed", message="the answer could not be read")
            )
        finally:
            self.executor.release(future)

    def _result(self, future: Any, stop: StopSign) -> str:
        """Return the text of a finished future. Its worker may be lost before the text is fetched."""
        while True:
            try:
                text: str = future.result(timeout=2.0)
                return text
            except TimeoutError:
                if stop.is_set():
                    raise Stopped from None
                if self.worker.gone:
                    raise self.worker.lost() from None

    def release(self) -> None:
        pass


class DaskExecutor:
    """The workers of a Dask scheduler, which may join late and leave early."""

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
        """Take the workers of `client`.

        `patience_s` is the number of seconds to wait for a worker that can run a cell; None: for ever.
        """
        self.client = client
        self.timeout, self.memory, self.target = timeout, memory, target
        self.patience_s, self.on_notice = patience_s, on_notice
        self._workers: dict[str, ClusterWorker] = {}
        self._jobs = 0
        self._last_runnable = time.monotonic()  # last time that a slot could run a cell

    @property
    def size(self) -> int:
        self._update_workers()
        return sum(worker.capacity for worker in self._workers.values())

    def slots(self, cells: Sequence[PlannedCell], alone: bool) -> DaskExecutor:
        """Return the slots of all workers. A cell that runs alone locks its machine's cores first."""
        self._last_runnable = time.monotonic()
        return self

    def now(self) -> Sequence[Slot]:
        self._update_workers()
        return [slot for worker in self._workers.values() for slot in worker.slots]

    def unschedulable_reason(self, waiting: Sequence[PlannedCell]) -> str:
        kinds = {WorkerKind.for_cell(planned.config) for planned in waiting}
        if any(slot.can_run(kind) for slot in self.now() for kind in kinds):
            self._last_runnable = time.monotonic()
        if self.patience_s is None or time.monotonic() - self._last_runnable < self.patience_s:
            return ""
        if not self.now():
            refused = [worker.refused for worker in self._workers.values() if worker.refused]
            why = f" ({refused[0]})" if refused else ""
            raise UserError(
                f"no Dask worker that can run cells came within {self.patience_s:g} s{why}; "
                "start one, and the same command goes on from here"
            )
        if any(kind.device != "cpu" for kind in kinds):
            return f"no Dask worker has a GPU: start one with --resources {GPU}=1"
        threads = max(kind.threads for kind in kinds)
        return f"no Dask worker has the {threads} cores that the cell needs"

    def submit(
        self, address: str, do: Callable[..., str], order: str | None, needs: dict[str, int] | None
    ) -> Any:
        """Submit a task to one worker. No other worker takes it over, so that this run notices a loss."""
        # pure tasks of equal arguments have one key: `worker_info` would run on one worker alone
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
        """Cancel a task, also one that is running."""
        if self.client.status == "running":
            self.client.cancel([future], force=True)

    def lost_scheduler(self) -> UserError:
        """Return the error that says that the Dask scheduler is gone."""
        return UserError(
            "the Dask scheduler is gone; finished cells have their records, and the same command goes on"
        )

    def _update_workers(self) -> None:
        """Update the list of workers: ask new ones for their properties, and mark those that left."""
        try:
            # all of them: before Dask 2026.7 the default was five
            present = self.client.scheduler_info(n_workers=-1)["workers"]
        except (OSError, TimeoutError) as error:
            raise self.lost_scheduler() from error
        for address in [*self._workers]:
            if address not in present or self._workers[address].gone:
                self._workers.pop(address).gone = True
        for address, facts in present.items():
            if address not in self._workers:
                info_future = self.submit(address, dask_task.worker_info, None, None)
                gpus = float(facts.get("resources", {}).get(GPU, 0.0))
                self._workers[address] = ClusterWorker(
                    address, info_future, facts["nthreads"], gpus
                )
        for worker in self._workers.values():
            if worker.info is None and not worker.refused and worker.info_future.done():
                self._register(worker)

    def _register(self, worker: ClusterWorker) -> None:
        """Create the slots of a worker if it can run cells of this version, else report the reason."""
        if worker.info_future.status == "finished":
            worker.info = WorkerInfo.model_validate_json(worker.info_future.result(timeout=30))
            if worker.info.version != svgpbench.__version__:
                worker.refused = f"it has svgpbench {worker.info.version}"
        else:
            error = worker.info_future.exception(timeout=30)
            worker.refused = f"{type(error).__name__}: {error}".splitlines()[0]
        if worker.refused:
            worker.info = None
            worker.refused = f"Dask worker {worker.address} is not used: {worker.refused}"
            self.on_notice(worker.refused)
            return
        jobs = range(self._jobs, self._jobs + worker.capacity)
        worker.slots = [DaskSlot(job, worker, self) for job in jobs]
        self._jobs = jobs.stop
