"""The parent's side of a worker process: start, request, time-out, end."""

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
from svgpbench.runs.worker_setup import compiled_programs, worker_environment

START_LIMIT_S = 300.0  # importing a framework from a cold network disk takes minutes
STDERR_TAIL = 4000  # bytes of stderr in the record of a worker that died


class WorkerKind(NamedTuple):
    """The settings that cells must share to run one after another in one process."""

    backend: str
    mode: str
    dtype: str
    device: str
    threads: int
    measures: bool

    @classmethod
    def for_cell(cls, config: CellConfig) -> WorkerKind:
        """Return the kind of worker that runs a cell."""
        backend = config.backend
        names = (backend.name, backend.mode, backend.dtype, backend.device)
        return cls(*names, config.threads, config.measures)


class CellLimits(NamedTuple):
    """Limits of one cell; None is no limit."""

    seconds: float | None = None
    memory_bytes: float | None = None


class StopSign(Protocol):
    """Anything that says whether a run should stop, such as a `threading.Event`."""

    def is_set(self) -> bool:
        """Return True to stop the run; polled every 0.1 s."""
        ...


class Stopped(Exception):  # noqa: N818 - not an error: the user stopped the run
    """The run was stopped while a cell ran; the cell has no result."""


class MemoryLimitExceeded(Exception):  # noqa: N818 - as `Stopped`
    """Raised when a worker uses more memory than its limit."""


class WorkerProcess:
    """One worker process and its process group, pinned to `cores`."""

    def __init__(self, kind: WorkerKind, cores: tuple[int, ...], target: str) -> None:
        self.kind = kind
        self.cells = 0  # run so far
        self.environment: Environment | None = None
        self.code: dict[str, str] = {}  # that it has loaded, by the cells that it ran
        self._ready = False
        self._process = LineProcess(
            "the worker",
            [
                # -P: a file of the user's folder such as random.py must not hide a module
                *(sys.executable, "-P", "-m", "svgpbench.runs.worker"),
                *("--backend", kind.backend, "--device", kind.device),
                *("--threads", str(kind.threads), "--cores", ",".join(map(str, cores))),
                *("--target", target),
            ],
            os.environ
            | worker_environment(kind.device, kind.threads)
            # a process that measures compiles by itself, else its times depend on what ran before
            | compiled_programs(kind.device, kind.threads, shared=not kind.measures),
        )

    @property
    def alive(self) -> bool:
        """True while the process runs."""
        return self._process.alive

    @property
    def needs_replacement(self) -> bool:
        """True if the process has compiled so much that a new one should run the next cell."""
        return near_mapping_limit(self._process.pid, self.cells)

    def run(self, request: Request, limits: CellLimits, stop: StopSign) -> Answer:
        """Run a cell. A worker that dies or exceeds a limit gives an answer with that status.

        The time limit does not count the worker's start. Raises `Stopped` when `stop` is set.
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
        self.code |= answer.environment.code if answer.environment else {}
        return answer

    def _wait_until_ready(self, stop: StopSign) -> None:
        if self._ready:
            return
        try:
            hello = Hello.model_validate_json(self._line(CellLimits(START_LIMIT_S), stop))
        except TimeoutError:
            self.kill()
            raise Died(f"the worker did not start within {START_LIMIT_S:g} s") from None
        except ValidationError:
            self.kill()
            raise Died("the worker's first line could not be read") from None
        self.environment, self._ready = hello.environment, True

    def _line(self, limits: CellLimits, stop: StopSign) -> bytes:
        """Return the next line. Raises `TimeoutError`, `MemoryLimitExceeded`, `Died` or `Stopped`."""

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
        """Return the resident memory of the worker in bytes; 0 once it has ended."""
        try:
            return int(psutil.Process(self._process.pid).memory_info().rss)
        except psutil.Error:
            return 0

    def close(self) -> None:
        """End an idle worker."""
        self._process.close()

    def kill(self) -> None:
        """Kill the worker and every process that it started."""
        self._process.kill()
