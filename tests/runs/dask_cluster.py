"""A Dask scheduler and workers on the loopback, each a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def dask_cluster(folder: Path, workers: int, *options: str) -> Iterator[str]:
    """The scheduler's address; a worker that is killed is replaced by another after a while."""
    file = folder / "scheduler.json"
    scheduler = _started("distributed.cli.dask_scheduler", "--port", "0", *FILE, str(file))
    processes = [scheduler]
    try:
        address = _address(file)
        wanted = ("--nworkers", str(workers), "--nthreads", "1", "--local-directory", str(folder))
        processes.append(_started("distributed.cli.dask_worker", address, *wanted, *options))
        yield address
    finally:
        for process in reversed(processes):
            with_children = os.getpgid(process.pid)
            os.killpg(with_children, signal.SIGKILL)
            process.wait()


FILE = ("--no-dashboard", "--scheduler-file")


def _started(module: str, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", module, *arguments, "--host", "127.0.0.1"]
    if "worker" in module:
        command += ["--no-dashboard"]
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def _address(file: Path) -> str:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if file.exists() and (text := file.read_text()):
            return str(json.loads(text)["address"])
        time.sleep(0.1)
    raise TimeoutError("the scheduler did not start")
