"""A process that is asked and answers by lines: started, waited for, and ended with all that it started."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

POLL_INTERVAL_S = 0.1  # how often a wait looks at what its caller watches


class Died(Exception):  # noqa: N818 - an outcome of the process, not a fault of the caller
    """The process ended without an answer; the message is how."""


class LineProcess:
    """A process in a group of its own, with pipes to it; `who` is what messages call it."""

    def __init__(self, who: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.who = who
        self._buried = False
        self._unread = b""
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
        """Its process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def send(self, line: str) -> None:
        """Write one line to it; raises `Died`."""
        try:
            self._requests.write(f"{line}\n".encode())
            self._requests.flush()
        except OSError:
            raise Died(self._cause_of_death()) from None

    def line(self, seconds: float | None, on_poll: Callable[[], object] | None = None) -> bytes:
        """Its next line.

        A `on_poll` is called ten times a second, and ends the wait by what it raises; without one the
        caller sleeps, so that a clock that runs meanwhile is not disturbed.

        Raises:
            TimeoutError: none came in so many seconds; None is no limit.
            Died: it ended before.
        """
        end = None if seconds is None else time.monotonic() + seconds
        while b"\n" not in self._unread:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError
            if on_poll is not None:
                on_poll()
                left = POLL_INTERVAL_S if left is None else min(POLL_INTERVAL_S, left)
            # asked before the look: what a dying process wrote last is still read
            dead = not self.alive
            if self._selector.select(left):
                part = os.read(self._answers.fileno(), 1 << 16)
                if not part:
                    raise Died(self._cause_of_death())
                self._unread += part
            elif dead:  # a child of it may hold the pipe open
                raise Died(self._cause_of_death())
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def errors(self, most: int) -> str:
        """The end of what it wrote to stderr, so many bytes."""
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - most))
        return self._stderr.read().decode(errors="replace").strip()

    def _cause_of_death(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        self.kill()
        code = self._process.returncode
        if code is None or code >= 0:
            return f"{self.who} exited with code {code}"
        name = signal.Signals(-code).name
        hint = " (the kernel does so when memory runs out)" if name == "SIGKILL" else ""
        return f"{self.who} was killed by {name}{hint}"

    def close(self) -> None:
        """Let an idle process end, and whatever it started."""
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
        """End the process and every process it started, now."""
        if self._buried:  # its id may belong to another process by now
            return
        with suppress(ProcessLookupError, PermissionError):  # macOS: the group is only a zombie
            os.killpg(self._process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):  # a hung driver may hold it; nothing helps then
            self._process.wait(10)
        self._buried = True
