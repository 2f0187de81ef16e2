"""Functions that run inside a Dask worker: describe the worker, and compute cells in fresh processes.

Tasks and results are JSON texts of the models here. Nothing is pickled but the names of these functions.
"""

from __future__ import annotations

import importlib
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from distributed import get_worker

import svgpbench
from svgpbench.backends import forget_changed
from svgpbench.config import Strict
from svgpbench.errors import UserError
from svgpbench.experiments.identity import OtherCode, cell_code
from svgpbench.results.cell_locks import FileLocks
from svgpbench.runs.core_locks import core_locks
from svgpbench.runs.cores import job_memory, usable_cores
from svgpbench.runs.line_process import POLL_INTERVAL_S
from svgpbench.runs.process import CellLimits, Stopped, StopSign, WorkerKind, WorkerProcess
from svgpbench.runs.protocol import Answer, Request

PROCESS = uuid.uuid4().hex
"""Identifies this process: a worker that was restarted under the same address has another value."""


class WorkerInfo(Strict):
    """Process, version and cores of a Dask worker."""

    process: str
    version: str  # of svgpbench there
    cores: int  # that the worker may use


class CellTask(Strict):
    """A cell to compute, with the id that the run expects."""

    process: str
    cell_id: str
    code: dict[str, str]  # of the run's plugins and of its svgpbench
    request: Request
    timeout: float | None
    memory: float | None
    target: str


class TaskResult(Strict):
    """The answer to a cell; None if the task was meant for another process."""

    answer: Answer | None
    shared_cores: str = ""  # why the worker's machine has no core locks; empty if it has


class Cancelled:
    """A stop sign that is set once the task of this thread is cancelled or its worker closes."""

    def __init__(self) -> None:
        self._worker: Any = get_worker()
        self._key = self._worker.get_current_task()

    def is_set(self) -> bool:
        """Return True if the task is cancelled, by the worker's own state."""
        task = self._worker.state.tasks.get(self._key)
        return task is None or task.state not in ("executing", "long-running")


def worker_info() -> str:
    """Return a `WorkerInfo` as JSON."""
    cores = len(usable_cores())
    return WorkerInfo(process=PROCESS, version=svgpbench.__version__, cores=cores).model_dump_json()


def compute(text: str) -> str:
    """Run a `CellTask` in a fresh worker process and return a `TaskResult`, both as JSON.

    Raises `Stopped` when the task is cancelled.
    """
    task = CellTask.model_validate_json(text)
    if task.process != PROCESS:
        return TaskResult(answer=None).model_dump_json()
    answer = _refusal(task) or _run_in_fresh_worker(task)
    return TaskResult(answer=answer, shared_cores=core_locks().missing).model_dump_json()


def _refusal(task: CellTask) -> Answer | None:
    """Return a refusal if this machine has other data, another version or other plugins, else None."""
    try:
        forget_changed()
        cell_id = importlib.import_module(task.target).identify(task.request.config).cell_id
        other = OtherCode.between(cell_code(task.request.config), task.code).plugins
    except UserError as error:
        return Answer(status="skipped", message=str(error))
    if cell_id == task.cell_id and not other:
        return None
    if other:
        return Answer(status="skipped", message=f"the Dask worker has other code of {other}")
    return Answer(
        status="skipped",
        message=f"the Dask worker gives this cell another id, {cell_id}: other data, "
        f"or another version than its svgpbench {svgpbench.__version__}",
    )


def _run_in_fresh_worker(task: CellTask) -> Answer:
    config, stop = task.request.config, Cancelled()
    memory = task.memory
    if not memory:  # an equal share of what this Dask worker has, for each of its threads
        dask_worker: Any = get_worker()
        limit = dask_worker.memory_manager.memory_limit
        available = min(job_memory(1), float(limit)) if limit else job_memory(1)
        memory = available / float(dask_worker.state.nthreads)
    limits = CellLimits(task.timeout, memory)
    with reserved_cores(config.threads, config.measures, stop) as cores:
        worker = WorkerProcess(WorkerKind.for_cell(config), cores, task.target)
        try:
            answer = worker.run(task.request, limits, stop)
        finally:
            worker.close()
    return answer.model_copy(update={"environment": worker.environment})


@contextmanager
def reserved_cores(count: int, all_of_them: bool, stop: StopSign) -> Iterator[tuple[int, ...]]:
    """Wait for `count` cores that no run, timing or other Dask task on this machine has, and reserve them.

    With `all_of_them`, no other cell runs on this machine at the same time. Raises `Stopped`.
    """
    locks, reserved = core_locks(), list[int]()
    needed = len(usable_cores()) if all_of_them else count
    try:
        while True:
            # in order, and not released if all are needed: of two such tasks, one gets the first core
            for core in usable_cores():
                if len(reserved) == needed:
                    break
                if core in reserved:
                    continue
                if locks.acquire(str(core)):
                    reserved.append(core)
                elif all_of_them:
                    break
            if len(reserved) == needed:
                break
            if not all_of_them:
                # two tasks that need two cores and hold one each would wait for each other for ever
                _release(locks, reserved)
            if stop.is_set():
                raise Stopped
            time.sleep(POLL_INTERVAL_S)
        yield tuple(reserved[:count])
    finally:
        _release(locks, reserved)


def _release(locks: FileLocks, cores: list[int]) -> None:
    while cores:
        locks.release(str(cores.pop()))
