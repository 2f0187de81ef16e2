"""Processes that hold something while a test goes on, and waiting for others to end."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil


@contextmanager
def holder(code: str, *arguments: object) -> Iterator[tuple[int, str]]:
    """A process that runs this code until the block ends: its id and the first line that it prints.

    The code waits for the end of its standard input.
    """
    command = [sys.executable, "-c", code, *map(str, arguments)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        yield process.pid, process.stdout.readline().strip()
        process.kill()


def written_pids(file: Path, process: subprocess.Popen[str]) -> list[int]:
    """Wait until a process has written the ids of others into a file."""
    end = time.monotonic() + 60
    while not file.exists() or not file.read_text():
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.05)
    return [int(pid) for pid in file.read_text().split()]


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
