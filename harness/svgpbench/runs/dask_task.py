"""What a Dask worker does for a run: says what it is, and computes cells in fresh processes of ours.

Orders and replies are text, JSON of the models here: nothing of ours is pickled but the names of these
functions.
"""

from __future__ import annotations

import functools
import importlib
import os
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from distributed import get_worker

import svgpbench
from svgpbench.config import Strict
from svgpbench.errors import UserError
from svgpbench.results.cell_locks import Claims
from svgpbench.runs.cores import job_memory, usable_cores
from svgpbench.runs.line_process import GLANCE_S
from svgpbench.runs.process import Limits, Stopped, StopSign, WorkerKind, WorkerProcess
from svgpbench.runs.protocol import Answer, Request

PROCESS = uuid.uuid4().hex
"""Of this process: one that took the place of another under its address has another."""


class Greeting(Strict):
    """What a Dask worker is."""

    process: str
    version: str  # of svgpbench there
    cores: int  # that it may use


class Order(Strict):
    """A cell to compute, under the id that the run knows it by."""

    process: str
    cell_id: str
    request: Request
    timeout: float | None
    memory: float | None
    target: str


class Reply(Strict):
    """How the cell ended; None where the process is not the one that the order was for."""

    answer: Answer | None


class Cancelled:
    """Whether the task of this thread is wanted no more: its run has ended, or the worker closes."""

    def __init__(self) -> None:
        self._worker: Any = get_worker()
        self._key = self._worker.get_current_task()

    def is_set(self) -> bool:
        """Looks at the worker's own state; asks nobody."""
        task = self._worker.state.tasks.get(self._key)
        return task is None or task.state not in ("executing", "long-running")


def greet() -> str:
    """A `Greeting`."""
    cores = len(usable_cores())
    return Greeting(process=PROCESS, version=svgpbench.__version__, cores=cores).model_dump_json()


def compute(order: str) -> str:
    """Run a cell in a fresh worker process; a `Reply` to an `Order`; raises `Stopped` when cancelled."""
    asked = Order.model_validate_json(order)
    if asked.process != PROCESS:
        return Reply(answer=None).model_dump_json()
    answer = _refused(asked) or _ran(asked)
    return Reply(answer=answer).model_dump_json()


def _refused(asked: Order) -> Answer | None:
    """The answer where this machine would make another cell of the order: other data, or another version."""
    try:
        found = importlib.import_module(asked.target).identify(asked.request.config).cell_id
    except UserError as error:
        return Answer(status="skipped", message=str(error))
    if found == asked.cell_id:
        return None
    return Answer(
        status="skipped",
        message=f"the Dask worker gives this cell another id, {found}: other data, "
        f"or another version than its svgpbench {svgpbench.__version__}",
    )


def _ran(asked: Order) -> Answer:
    config, stop = asked.request.config, Cancelled()
    limits = Limits(asked.timeout, asked.memory or _share_of_memory())
    with claimed_cores(config.threads, config.measures, stop) as cores:
        worker = WorkerProcess(WorkerKind.of(config), cores, asked.target)
        try:
            answer = worker.run(asked.request, limits, stop)
        finally:
            worker.close()
    return answer.model_copy(update={"environment": worker.environment})


def _share_of_memory() -> float:
    """Bytes for each of this Dask worker's threads, of what it may hold and the machine has."""
    worker: Any = get_worker()
    limit = worker.memory_manager.memory_limit
    most = job_memory(1)
    return (most if not limit else min(most, float(limit))) / float(worker.state.nthreads)


@contextmanager
def claimed_cores(count: int, all_of_them: bool, stop: StopSign) -> Iterator[tuple[int, ...]]:
    """So many cores that nothing else of a Dask run has on this machine, waited for.

    With `all_of_them` no other cell runs here meanwhile. Raises `Stopped`.
    """
    claims, mine = _core_claims(), list[int]()
    wanted = len(usable_cores()) if all_of_them else count
    try:
        while True:
            # in order, and kept where all are wanted: of two that want all, one gets the first core
            for core in usable_cores():
                if len(mine) == wanted:
                    break
                if core in mine:
                    continue
                if claims.take(str(core)):
                    mine.append(core)
                elif all_of_them:
                    break
            if len(mine) == wanted:
                break
            if not all_of_them:
                _give_back(claims, mine)
            if stop.is_set():
                raise Stopped
            time.sleep(GLANCE_S)
        yield tuple(mine[:count])
    finally:
        _give_back(claims, mine)


def _give_back(claims: Claims, cores: list[int]) -> None:
    while cores:
        claims.drop(str(cores.pop()))


@functools.cache
def _core_claims() -> Claims:
    """Between all Dask workers of a user on this machine."""
    return Claims(Path(tempfile.gettempdir()) / f"svgpbench-cores-{os.getuid()}")
