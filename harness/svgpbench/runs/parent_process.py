"""A child process's side of its pipes, its end when its parent ends, and an error as one line of an answer.

Peers import this file too, so it needs the standard library alone.
"""

from __future__ import annotations

import os
import queue
import select
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TextIO

POLL_INTERVAL_S = 0.5


def take_pipes() -> tuple[TextIO, TextIO]:
    """Keep stdin and stdout for the protocol; descriptors 0 and 1 become /dev/null and stderr."""
    requests, answers = os.dup(0), os.dup(1)  # dup: not inherited by a framework's own processes
    # a framework that reads stdin must not take a request
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return os.fdopen(requests, encoding="utf-8"), os.fdopen(answers, "w", encoding="utf-8")


def end_with(parent: int) -> None:
    """End this process as soon as the process `parent`, which started it, has ended; 0 is no parent.

    The end of the requests is no sufficient sign: a fork of the parent may hold their pipe open. And Linux's
    PR_SET_PDEATHSIG is of the *thread* that started this process, which may end long before its process.
    """

    def wait() -> None:
        # sleeps in the kernel, so that nothing wakes up beside a timed step
        with suppress(AttributeError, OSError):  # macOS, an old kernel
            select.select([os.pidfd_open(parent)], [], [])
        while os.getppid() == parent:
            time.sleep(POLL_INTERVAL_S)
        os._exit(1)

    if parent:
        threading.Thread(target=wait, daemon=True).start()


def listen(requests: TextIO) -> Iterator[str]:
    """Yield lines as they arrive. When the pipe closes, the process ends, even in the middle of a cell."""
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        for line in requests:
            lines.put(line)
        os._exit(0)  # the parent has ended, and frameworks are slow to exit

    threading.Thread(target=read, daemon=True).start()
    while True:
        yield lines.get()


def error_line(error: Exception) -> str:
    """Return an exception's type and the line of its message that says what happened; 300 characters at most.

    A first line that ends in a colon says nothing yet. torch.compile's next line has the cause. TensorFlow's
    message ends with the cause, after a traceback and before lines of `[[{{node}}]]`.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    causes = [line for line in lines[1:] if not line.startswith("[[")]
    line = lines[0]
    if line.endswith(":") and causes:
        of_tensorflow = len(causes) < len(lines[1:])
        line = causes[-1 if of_tensorflow else 0]
    return f"{type(error).__name__}: {line}"[:300].rstrip(": ")
