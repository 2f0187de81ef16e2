"""Timed processes, controlled by their parent: of a backend, or of a peer in its own environment."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from svgpbench.benchmarks.timing.meter import Load, Meter, between
from svgpbench.benchmarks.timing.peers import SERVE, Located
from svgpbench.runs.line_process import Died, LineProcess
from svgpbench.runs.worker_setup import worker_environment

LIMIT_S = 600.0  # XLA may compile for minutes
STDERR_TAIL = 4000
NOT_FOR_PEERS = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")


class ProcessFailed(Exception):  # noqa: N818 - a cell's outcome, reported and not raised further
    """Failure of a process that ended, hung or answered with an error."""


class StepRefused(Exception):  # noqa: N818 - as above
    """Refusal of a step, with the reason as its message.

    A peer has no step with the same result, or a backend has no autodiff for it.
    """


class TimedProcess:
    """Fresh process with pinned threads. As a context manager, it ends the process."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        threads: int,
        cores: Sequence[int],
    ) -> None:
        self.name = name
        pinning = ("--threads", str(threads), "--cores", ",".join(map(str, cores)))
        self._process = LineProcess("the process", [*command, *pinning], environment)
        self._meter = Meter(self._process.pid, cores)
        self.environment: dict[str, Any] = {}

    @classmethod
    def of_backend(
        cls, backend: str, device: str, threads: int, cores: Sequence[int]
    ) -> TimedProcess:
        """Start a process of `NAME[:MODE]` in this environment."""
        worker = (sys.executable, "-P", "-m", "svgpbench.benchmarks.timing.worker")
        command = (*worker, "--backend", backend, "--device", device)
        environment = os.environ | worker_environment(device, threads)
        return cls(backend, command, environment, threads, cores)

    @classmethod
    def of_peer(
        cls, name: str, located: Located, device: str, threads: int, cores: Sequence[int]
    ) -> TimedProcess:
        """Start a process of a peer's script with the Python that has the peer."""
        inherited = {k: v for k, v in os.environ.items() if k not in NOT_FOR_PEERS}
        # not -P, which a peer's older Python may not know
        environment = inherited | worker_environment(device, threads) | {"PYTHONSAFEPATH": "1"}
        command = (str(located.python), str(SERVE), str(located.peer.script))
        return cls(name, command, environment, threads, cores)

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
        """Wait for the first line. Raises `ProcessFailed` if none comes."""
        self.environment = self._answer()["environment"]

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Send one request and return its answer. Raises `ProcessFailed` and `StepRefused`."""
        try:
            self._process.send(json.dumps(request))
        except Died as death:
            raise ProcessFailed(self._last_words(death)) from None
        return self._answer()

    def ask_metered(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], Load]:
        """Return the answer of `ask`, and the load of this process's cores meanwhile."""
        before = self._meter.read()
        answer = self.ask(request)
        return answer, between(before, self._meter.read())

    def _answer(self) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = json.loads(self._process.line(LIMIT_S))
        except TimeoutError:
            self.close()
            raise ProcessFailed(f"no answer within {LIMIT_S:g} s") from None
        except Died as death:
            raise ProcessFailed(self._last_words(death)) from None
        if "error" in answer:
            raise ProcessFailed(answer["error"])
        if "refused" in answer:
            raise StepRefused(answer["refused"])
        return answer

    def _last_words(self, death: Died) -> str:
        lines = self._process.errors(STDERR_TAIL).splitlines()
        return (f"{death}: {lines[-1]}" if lines else str(death))[:300]

    def close(self) -> None:
        """End the process and all that it started."""
        self._process.close()
