"""A timed process as its parent holds it: one of a backend, or of a peer in its own environment."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from svgpbench.runner.worker_setup import worker_environment
from svgpbench.speed.meter import Load, Meter, between
from svgpbench.speed.peers import PEERS

LIMIT_S = 600.0  # XLA may compile for minutes
NOT_FOR_PEERS = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")


class ProcessFailed(Exception):  # noqa: N818 - a cell's outcome, reported and not raised further
    """The process ended, hung or answered with an error."""


class TimedProcess:
    """A fresh process with its threads pinned; a context manager that ends it."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        threads: int,
        cores: Sequence[int],
    ) -> None:
        self.name = name
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        pinning = ("--threads", str(threads), "--cores", ",".join(map(str, cores)))
        self._process = subprocess.Popen(
            [*command, *pinning, "--parent", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=environment,
            start_new_session=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._answers, selectors.EVENT_READ)
        self._unread = b""
        self._meter = Meter(self._process.pid, cores)
        self.environment: dict[str, Any] = {}

    @classmethod
    def of_backend(cls, backend: str, threads: int, cores: Sequence[int]) -> TimedProcess:
        """A process of `NAME[:MODE]` in this environment."""
        command = (sys.executable, "-P", "-m", "svgpbench.speed.worker", "--backend", backend)
        environment = os.environ | worker_environment("cpu", threads)
        return cls(backend, command, environment, threads, cores)

    @classmethod
    def of_peer(cls, peer: str, python: Path, threads: int, cores: Sequence[int]) -> TimedProcess:
        """A process of a peer's script under the Python that has the peer."""
        inherited = {k: v for k, v in os.environ.items() if k not in NOT_FOR_PEERS}
        # the variable and not -P, which a peer's older Python may not know
        environment = inherited | worker_environment("cpu", threads) | {"PYTHONSAFEPATH": "1"}
        return cls(peer, (str(python), str(PEERS[peer].script)), environment, threads, cores)

    def __enter__(self) -> TimedProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def wait_until_ready(self) -> None:
        """Wait for its first line; raises `ProcessFailed` where none comes."""
        self.environment = self._answer()["environment"]

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """One request and its answer; raises `ProcessFailed`."""
        try:
            self._requests.write((json.dumps(request) + "\n").encode())
            self._requests.flush()
        except OSError:
            raise ProcessFailed(self._cause_of_death()) from None
        return self._answer()

    def ask_metered(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], Load]:
        """As `ask`, with the CPU that others used meanwhile on this process's cores."""
        before = self._meter.read()
        answer = self.ask(request)
        return answer, between(before, self._meter.read())

    def _answer(self) -> dict[str, Any]:
        end = time.monotonic() + LIMIT_S
        while b"\n" not in self._unread:
            if not self._selector.select(max(0.0, end - time.monotonic())):
                self.close()
                raise ProcessFailed(f"no answer within {LIMIT_S:g} s")
            part = os.read(self._answers.fileno(), 1 << 16)
            if not part:
                raise ProcessFailed(self._cause_of_death())
            self._unread += part
        line, _, self._unread = self._unread.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ProcessFailed(answer["error"])
        return answer

    def _cause_of_death(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        last = f": {lines[-1]}" if lines else ""
        return f"the process ended with code {self._process.returncode}{last}"[:300]

    def close(self) -> None:
        """End the process and whatever it started."""
        if self._requests.closed:
            return
        with suppress(OSError):
            self._requests.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(10)
        self._selector.close()
        self._answers.close()
        self._stderr.close()
