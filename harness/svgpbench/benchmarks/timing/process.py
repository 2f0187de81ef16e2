"""Processes of benchmarks, controlled by their parent: of a backend, or of a library's script."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from svgpbench.benchmarks.timing.meter import Load, Meter, between
from svgpbench.benchmarks.timing.peers import SERVE
from svgpbench.benchmarks.timing.peers.environments import NOT_INHERITED
from svgpbench.runs.line_process import Died, LineProcess
from svgpbench.runs.worker_setup import compiled_programs, worker_environment

LIMIT_S = 600.0  # XLA may compile for minutes
STDERR_TAIL = 4000


class ProcessFailed(Exception):  # noqa: N818 - a cell's outcome, reported and not raised further
    """Failure of a process that ended, hung or answered with an error."""


class ProcessSilent(ProcessFailed):
    """Failure of a process that did not answer in time and was killed."""


class ProcessEnded(ProcessFailed):
    """Failure of a process that ended before its answer."""


class StepRefused(Exception):  # noqa: N818 - as above
    """Refusal of a step, with the reason as its message.

    A peer has no step with the same result, or a backend has no autodiff for it.
    """


def _environment(device: str, threads: int) -> dict[str, str]:
    """Return a timed process's variables. It shares no compiled programs, so that first calls compile."""
    return worker_environment(device, threads) | compiled_programs(device, threads, shared=False)


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
        environment = os.environ | _environment(device, threads)
        return cls(backend, command, environment, threads, cores)

    @classmethod
    def of_script(
        cls,
        name: str,
        python: Path,
        script: Path,
        device: str,
        threads: int,
        cores: Sequence[int] = (),
    ) -> TimedProcess:
        """Start a process of a script of `serve.py` with the Python that has its library.

        Another Python than this one inherits no Python variable. No module is imported from the
        script's folder.
        """
        removed = () if str(python) == sys.executable else NOT_INHERITED
        inherited = {k: v for k, v in os.environ.items() if k not in removed}
        # not -P, which a peer's older Python may not know
        environment = inherited | _environment(device, threads) | {"PYTHONSAFEPATH": "1"}
        return cls(name, (str(python), str(SERVE), str(script)), environment, threads, cores)

    def __enter__(self) -> TimedProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def wait_until_ready(self, limit_s: float = LIMIT_S) -> None:
        """Wait for the first line. Raises `ProcessFailed` if none comes."""
        self.environment = self.answer(limit_s)["environment"]

    def ask(self, request: Mapping[str, Any], limit_s: float = LIMIT_S) -> dict[str, Any]:
        """Send one request and return its answer. Raises `ProcessFailed` and `StepRefused`."""
        self.send(request)
        return self.answer(limit_s)

    def send(self, request: Mapping[str, Any]) -> None:
        """Send one request. Raises `ProcessEnded`."""
        try:
            self._process.send(json.dumps(request))
        except Died as death:
            raise ProcessEnded(self._last_words(death)) from None

    def ask_metered(
        self, request: Mapping[str, Any], limit_s: float = LIMIT_S
    ) -> tuple[dict[str, Any], Load]:
        """Return the answer of `ask`, and the load of this process's cores meanwhile."""
        before = self._meter.read()
        answer = self.ask(request, limit_s)
        return answer, between(before, self._meter.read())

    def answer(self, limit_s: float = LIMIT_S) -> dict[str, Any]:
        """Return the next answer.

        Raises:
            ProcessSilent: none came within `limit_s`.
            ProcessEnded: the process ended first.
            ProcessFailed: the request failed.
            StepRefused: the library has no such step.
        """
        try:
            answer: dict[str, Any] = json.loads(self._process.line(max(limit_s, 0.0)))
        except TimeoutError:
            # an answer that came later would be taken for that of the next request
            self._process.kill()
            raise ProcessSilent(f"no answer within {limit_s:g} s") from None
        except Died as death:
            raise ProcessEnded(self._last_words(death)) from None
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
