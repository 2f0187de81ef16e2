"""A worker as its parent holds it: started, asked, timed out, buried."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple, Protocol

import psutil
from pydantic import ValidationError

from svgpbench.config import CellConfig
from svgpbench.environment import Environment
from svgpbench.runs.line_process import Died, LineProcess
from svgpbench.runs.memory_mappings import near_mapping_limit
from svgpbench.runs.protocol import Answer, Hello, Request
from svgpbench.runs.worker_setup import worker_environment

START_LIMIT_S = 300.0  # importing a framework from a cold network disk takes minutes
STDERR_TAIL = 4000


class WorkerKind(NamedTuple):
    """What cells must share to run one after another in one process."""

    backend: str
    mode: str
    dtype: str
    device: str
    threads: int

    @classmethod
    def of(cls, config: CellConfig) -> WorkerKind:
        """The kind of worker that runs a cell."""
        backend = config.backend
        return cls(backend.name, backend.mode, backend.dtype, backend.device, config.threads)


class Limits(NamedTuple):
    """What a worker may take for one cell; None is no limit."""

    seconds: float | None = None
    memory_bytes: float | None = None


class StopSign(Protocol):
    """Says whether a run is to end; a `threading.Event` does."""

    def is_set(self) -> bool:
        """Whether it is; asked ten times a second."""
        ...


class Stopped(Exception):  # noqa: N818 - not an error: the user stopped the run
    """The run was stopped while a cell ran; the cell has no result."""


class MemoryLimitExceeded(Exception):  # noqa: N818 - as `Stopped`
    """The worker held more memory than it may."""


class WorkerProcess:
    """One worker process and its process group, pinned to `cores`."""

    def __init__(self, kind: WorkerKind, cores: tuple[int, ...], target: str) -> None:
        self.kind = kind
        self.cells = 0  # that it has been asked to run
        self.environment: Environment | None = None
        self._ready = False
        self._process = LineProcess(
            "the worker",
            [
                *(sys.executable, "-P", "-m", "svgpbench.runs.worker"),
                *("--backend", kind.backend, "--device", kind.device),
                *("--threads", str(kind.threads), "--cores", ",".join(map(str, cores))),
                *("--target", target),
            ],
            os.environ | worker_environment(kind.device, kind.threads),
        )

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.alive

    @property
    def needs_replacement(self) -> bool:
        """Whether it has compiled so much that another process should run the next cell."""
        return near_mapping_limit(self._process.pid, self.cells)

    def run(
        self,
        request: Request,
        limits: Limits,
        stop: StopSign,
    ) -> Answer:
        """Run a cell; a worker that dies, takes too much or does not answer in time is an answer too.

        Raises `Stopped` when `stop` is set meanwhile. The time does not count the worker's start.
        """
        try:
            self._wait_until_ready(stop)
            self.cells += 1
            self._process.send(request.model_dump_json())
            answer = Answer.model_validate_json(self._line(limits, stop))
        except TimeoutError:
            self.kill()
            return Answer(status="timeout", message=f"no result within {limits.seconds:g} s")
        except MemoryLimitExceeded as excess:
            self.kill()
            return Answer(status="oom", message=str(excess))
        except ValidationError:
            self.kill()
            return Answer(status="crashed", message="the worker's answer could not be read")
        except Died as death:
            tail = self._process.errors(STDERR_TAIL)
            return Answer(status="crashed", message=str(death), traceback=tail)
        self.environment = answer.environment
        return answer

    def _wait_until_ready(self, stop: StopSign) -> None:
        if self._ready:
            return
        try:
            hello = Hello.model_validate_json(self._line(Limits(START_LIMIT_S), stop))
        except TimeoutError:
            self.kill()
            raise Died(f"the worker did not start within {START_LIMIT_S:g} s") from None
        except ValidationError:
            self.kill()
            raise Died("the worker's first line could not be read") from None
        self.environment, self._ready = hello.environment, True

    def _line(self, limits: Limits, stop: StopSign) -> bytes:
        """The next line.

        Raises `TimeoutError`, `MemoryLimitExceeded`, `Died` or `Stopped` where none comes.
        """

        def on_poll() -> None:
            if stop.is_set():
                self.kill()
                raise Stopped
            if limits.memory_bytes is not None and self.held_bytes() > limits.memory_bytes:
                raise MemoryLimitExceeded(
                    f"the worker held more than {limits.memory_bytes / 2**30:.3g} GiB"
                )

        return self._process.line(limits.seconds, on_poll)

    def held_bytes(self) -> int:
        """Resident memory of the worker; asked so often that a look at all processes would cost time."""
        try:
            return int(psutil.Process(self._process.pid).memory_info().rss)
        except psutil.Error:  # it ended meanwhile
            return 0

    def close(self) -> None:
        """End an idle worker."""
        self._process.close()

    def kill(self) -> None:
        """End the worker and every process it started, now."""
        self._process.kill()
