"""A child process that reads requests and writes answers, one line each."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

POLL_INTERVAL_S = 0.1  # between calls of `on_poll`


class Died(Exception):  # noqa: N818 - an outcome of the process, not a fault of the caller
    """Raised when the process ends without an answer; the message says how it ended."""


class LineProcess:
    """A child in a process group of its own, with pipes to it. Messages call it `who`."""

    def __init__(self, who: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.who = who
        self._reaped = False
        self._unread = b""
        # before the start: only kills that the kernel counts from here on can be of this process
        self._oom_kills = oom_kills()
        # a file: a pipe that nobody reads meanwhile would fill and block the child
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._process = subprocess.Popen(
            [*command, "--parent", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=environment,
            start_new_session=True,  # Ctrl-C reaches the parent alone; a kill reaches its children
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._answers, selectors.EVENT_READ)

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """True while the process runs."""
        return self._process.poll() is None

    def send(self, line: str) -> None:
        """Write one line. Raises `Died`."""
        try:
            self._requests.write(f"{line}\n".encode())
            self._requests.flush()
        except OSError:
            raise Died(self._cause_of_death()) from None

    def line(self, seconds: float | None, on_poll: Callable[[], object] | None = None) -> bytes:
        """Return the next line.

        `on_poll` is called every 0.1 s and may end the wait by raising. Without `on_poll`, the caller sleeps
        and does not disturb a timing.

        Raises:
            TimeoutError: no line came within `seconds`; None is no limit.
            Died: the process ended first.
        """
        end = None if seconds is None else time.monotonic() + seconds
        while b"\n" not in self._unread:
            wait_s = None if end is None else end - time.monotonic()
            if wait_s is not None and wait_s <= 0:
                raise TimeoutError
            if on_poll is not None:
                on_poll()
                wait_s = POLL_INTERVAL_S if wait_s is None else min(POLL_INTERVAL_S, wait_s)
            # checked before reading: the last line of a dying process is still read
            dead = not self.alive
            if self._selector.select(wait_s):
                part = os.read(self._answers.fileno(), 1 << 16)
                if not part:
                    raise Died(self._cause_of_death())
                self._unread += part
            elif dead:  # one of its children may hold the pipe open
                raise Died(self._cause_of_death())
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def errors(self, limit: int) -> str:
        """Return the last `limit` bytes of its stderr."""
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - limit))
        return self._stderr.read().decode(errors="replace").strip()

    def _cause_of_death(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        # also its children, which may outlive it
        self.kill()
        code = self._process.returncode
        if code is None or code >= 0:
            return f"{self.who} exited with code {code}"
        name = signal.Signals(-code).name
        if name != "SIGKILL":
            return f"{self.who} was killed by {name}"
        kills = oom_kills()
        if kills is None or self._oom_kills is None:
            by = "by the kernel if memory ran out, else by another program"
        elif kills > self._oom_kills:
            by = "the kernel killed a process as memory ran out"
        else:
            by = "by another program: the kernel has killed none for memory"
        return f"{self.who} was killed by {name} ({by})"

    def close(self) -> None:
        """End an idle process and its children."""
        if self._requests.closed:
            return
        with suppress(OSError):
            self._requests.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        self.kill()
        self._selector.close()
        self._answers.close()
        self._stderr.close()

    def kill(self) -> None:
        """Kill the process and its children."""
        if self._reaped:  # its id may belong to another process by now
            return
        with suppress(ProcessLookupError, PermissionError):  # macOS: the group is only a zombie
            os.killpg(self._process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):  # a hung driver may hold it; nothing helps then
            self._process.wait(10)
        self._reaped = True


def oom_kills() -> int | None:
    """Return how many processes the kernel has killed for memory since it booted; None if it is unknown."""
    try:
        lines = Path("/proc/vmstat").read_text("ascii").splitlines()
    except OSError:  # not Linux
        return None
    counts = dict(line.split() for line in lines)
    return int(counts["oom_kill"]) if "oom_kill" in counts else None
