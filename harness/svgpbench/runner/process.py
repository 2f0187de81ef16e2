"""A worker as its parent holds it: started, asked, timed out, buried."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from typing import NamedTuple

import psutil
from pydantic import ValidationError

from svgpbench.config import CellConfig
from svgpbench.environment import Environment
from svgpbench.runner.protocol import Answer, Hello, Request
from svgpbench.runner.worker_setup import worker_environment

START_LIMIT_S = 300.0  # importing a framework from a cold network disk takes minutes
GLANCE_S = 0.1  # how often a wait looks whether the run was stopped, and what the worker holds
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


class Stopped(Exception):  # noqa: N818 - not an error: the user stopped the run
    """The run was stopped while a cell ran; the cell has no result."""


class WorkerDied(Exception):  # noqa: N818 - as `Stopped`
    """The worker ended without an answer."""


class HoldsTooMuch(Exception):  # noqa: N818 - as `Stopped`
    """The worker held more memory than it may."""


class WorkerProcess:
    """One worker process and its process group, pinned to `cores`."""

    def __init__(self, kind: WorkerKind, cores: tuple[int, ...], target: str) -> None:
        self.kind = kind
        self.cells = 0  # that it has been asked to run
        self.environment: Environment | None = None
        self._buried = False
        self._ready = False
        self._unread = b""
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the worker
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-P", "-m", "svgpbench.runner.worker"),
                *("--backend", kind.backend, "--device", kind.device),
                *("--threads", str(kind.threads), "--cores", ",".join(map(str, cores))),
                *("--target", target, "--parent", str(os.getpid())),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=os.environ | worker_environment(kind.device, kind.threads),
            start_new_session=True,  # Ctrl-C reaches the parent alone; a kill reaches its children
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._answers, selectors.EVENT_READ)

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def run(
        self,
        request: Request,
        limits: Limits,
        stop: threading.Event,
    ) -> Answer:
        """Run a cell; a worker that dies, takes too much or does not answer in time is an answer too.

        Raises `Stopped` when `stop` is set meanwhile. The time does not count the worker's start.
        """
        try:
            self._wait_until_ready(stop)
            self.cells += 1
            self._send(request)
            answer = Answer.model_validate_json(self._line(limits, stop))
        except TimeoutError:
            self.kill()
            return Answer(status="timeout", message=f"no result within {limits.seconds:g} s")
        except HoldsTooMuch as excess:
            self.kill()
            return Answer(status="oom", message=str(excess))
        except ValidationError:
            self.kill()
            return Answer(status="crashed", message="the worker's answer could not be read")
        except WorkerDied as death:
            return Answer(status="crashed", message=str(death), traceback=self._stderr_tail())
        self.environment = answer.environment
        return answer

    def _wait_until_ready(self, stop: threading.Event) -> None:
        if self._ready:
            return
        try:
            hello = Hello.model_validate_json(self._line(Limits(START_LIMIT_S), stop))
        except TimeoutError:
            self.kill()
            raise WorkerDied(f"the worker did not start within {START_LIMIT_S:g} s") from None
        except ValidationError:
            self.kill()
            raise WorkerDied("the worker's first line could not be read") from None
        self.environment, self._ready = hello.environment, True

    def _send(self, request: Request) -> None:
        line = request.model_dump_json() + "\n"
        try:
            self._requests.write(line.encode())
            self._requests.flush()
        except BrokenPipeError:
            raise WorkerDied(self._cause_of_death()) from None

    def _line(self, limits: Limits, stop: threading.Event) -> bytes:
        """The next line.

        Raises `TimeoutError`, `HoldsTooMuch`, `WorkerDied` or `Stopped` where none comes.
        """
        end = None if limits.seconds is None else time.monotonic() + limits.seconds
        while b"\n" not in self._unread:
            left = GLANCE_S if end is None else min(GLANCE_S, end - time.monotonic())
            if left <= 0:
                raise TimeoutError
            if stop.is_set():
                self.kill()
                raise Stopped
            if limits.memory_bytes is not None and self.held_bytes() > limits.memory_bytes:
                raise HoldsTooMuch(
                    f"the worker held more than {limits.memory_bytes / 2**30:.3g} GiB"
                )
            # asked before the look: what a dying worker wrote last is still read
            dead = not self.alive
            if self._selector.select(left):
                part = os.read(self._answers.fileno(), 1 << 16)
                if not part:
                    raise WorkerDied(self._cause_of_death())
                self._unread += part
            elif dead:  # a child of the worker may hold the pipe open
                raise WorkerDied(self._cause_of_death())
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def held_bytes(self) -> int:
        """Resident memory of the worker; asked so often that a look at all processes would cost time."""
        try:
            return int(psutil.Process(self._process.pid).memory_info().rss)
        except psutil.Error:  # it ended meanwhile
            return 0

    def _cause_of_death(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        self.kill()
        code = self._process.returncode
        if code is None or code >= 0:
            return f"the worker exited with code {code}"
        name = signal.Signals(-code).name
        hint = " (the kernel does so when memory runs out)" if name == "SIGKILL" else ""
        return f"the worker was killed by {name}{hint}"

    def _stderr_tail(self) -> str:
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - STDERR_TAIL))
        return self._stderr.read().decode(errors="replace").strip()

    def close(self) -> None:
        """End an idle worker."""
        with suppress(OSError):
            self._requests.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        self.kill()
        self._selector.close()
        self._answers.close()
        self._stderr.close()

    def kill(self) -> None:
        """End the worker and every process it started, now."""
        if self._buried:  # its id may belong to another process by now
            return
        with suppress(ProcessLookupError, PermissionError):  # macOS: the group is only a zombie
            os.killpg(self._process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):  # a hung driver may hold it; nothing helps then
            self._process.wait(10)
        self._buried = True
