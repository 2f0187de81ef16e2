"""A child lives as long as its parent process: no thread ends it early, and no fork keeps it after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from process_watch import running, until_gone

from svgpbench.benchmarks.timing.peers import serve
from svgpbench.runs import line_process
from svgpbench.runs.line_process import Died, LineProcess

PEER = """
import time
VERSIONS = ("numpy",)

def start(threads):
    time.sleep(0.0)
"""
PARENT = """
import json, os, sys, time
from svgpbench.runs.line_process import LineProcess

child = LineProcess("the child", json.loads(sys.argv[1]), os.environ)
child.line(60)  # it has started
fork = os.fork()  # as of a data loader: it holds the pipe to the child open
if fork:
    print(child.pid, fork, flush=True)
time.sleep(600)
"""
CHILDREN = ("worker", "timed worker", "peer")


def command(child: str, folder: Path) -> list[str]:
    if child == "peer":
        (folder / "peer.py").write_text(PEER)
        return [sys.executable, serve.__file__, str(folder / "peer.py"), "--threads", "1"]
    module = {"worker": "runs.worker", "timed worker": "benchmarks.timing.worker"}[child]
    return [sys.executable, "-m", f"svgpbench.{module}", "--backend", "numpy", "--threads", "1"]


@pytest.mark.parametrize("child", CHILDREN)
def test_a_child_ends_with_its_killed_parent_though_a_fork_holds_its_pipe(
    child: str, tmp_path: Path
) -> None:
    import json

    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, json.dumps(command(child, tmp_path))],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    child_id, fork = map(int, parent.stdout.readline().split())
    try:
        assert running(child_id)
        parent.kill()
        parent.wait(10)
        until_gone([child_id])
        assert running(fork)  # so the pipe did not end
    finally:
        os.kill(fork, signal.SIGKILL)
        parent.stdout.close()


@pytest.mark.parametrize("child", CHILDREN)
def test_a_child_outlives_the_thread_that_started_it(child: str, tmp_path: Path) -> None:
    with ExitStack() as closed:
        started: list[LineProcess] = []

        def start() -> None:
            started.append(LineProcess("the child", command(child, tmp_path), os.environ))

        thread = threading.Thread(target=start)
        thread.start()
        thread.join()
        (process,) = started
        closed.callback(process.close)
        process.line(60)
        time.sleep(1.0)
        assert process.alive


def killed(before: int | None, after: int | None, monkeypatch: pytest.MonkeyPatch) -> str:
    """The cause of death of a killed child, where the kernel's count of kills for memory was as given."""
    counts = iter([before, after])
    monkeypatch.setattr(line_process, "oom_kills", lambda: next(counts))
    sleeper = LineProcess(
        "the sleeper", [sys.executable, "-c", "import time; time.sleep(60)"], os.environ
    )
    try:
        os.kill(sleeper.pid, signal.SIGKILL)
        with pytest.raises(Died) as death:
            sleeper.line(10)
    finally:
        sleeper.close()
    return str(death.value)


def test_memory_is_blamed_only_where_the_kernel_has_killed_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    by_another = "(by another program: the kernel has killed none for memory)"
    assert killed(3, 3, monkeypatch) == f"the sleeper was killed by SIGKILL {by_another}"
    assert "the kernel killed a process as memory ran out" in killed(3, 4, monkeypatch)
    assert "by the kernel if memory ran out, else by another" in killed(None, None, monkeypatch)


@pytest.mark.skipif(not Path("/proc/vmstat").exists(), reason="Linux counts them there")
def test_the_kernel_counts_its_kills() -> None:
    assert isinstance(line_process.oom_kills(), int)
