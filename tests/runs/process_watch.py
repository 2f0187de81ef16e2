"""Finding the processes that a test started, and waiting for them to end."""

from __future__ import annotations

import time
from contextlib import suppress

import psutil


def until_gone(pids: list[int], limit: float = 5.0) -> None:
    end = time.monotonic() + limit
    while any(running(pid) for pid in pids):
        assert time.monotonic() < end, "a process outlived its run"
        time.sleep(0.05)


def running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def children_with(*words: str) -> list[psutil.Process]:
    """Find this process's children that run a command with all of these words.

    A child that ended meanwhile has no command line, and is none of them.
    """
    found = []
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            if {*words} <= {*child.cmdline()}:
                found.append(child)
    return found
