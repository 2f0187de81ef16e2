"""A run that is stopped, politely or not, loses no finished cell and leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_cells import make_config
from process_watch import running, until_gone, written_pids

from svgpbench.results.store import records_in
from svgpbench.runs.events import Summary

RUN = """
import signal
import sys
from pathlib import Path
from fake_cells import make_config
from svgpbench.runs.pool import run_cells

# a shell that runs the tests in the background has turned Ctrl-C off
signal.signal(signal.SIGINT, signal.default_int_handler)
folder = Path(sys.argv[1])
slow = make_config("sleep_with_child", options={"pids": str(folder / "pids")})
cells = [make_config("finish"), slow, make_config("finish", 1)]
summary = run_cells(cells, results=folder, jobs=1, target="fake_cells")
print(summary.interrupted, len(summary.records), summary.total)
"""


def start_run(folder: Path) -> tuple[subprocess.Popen[str], list[int]]:
    """A process that runs cells, in its second one by now, and the ids of what that started."""
    parent = subprocess.Popen(
        [sys.executable, "-c", RUN, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
    )
    return parent, written_pids(folder / "pids", parent)


def test_ctrl_c_keeps_finished_records(tmp_path: Path, run: Callable[..., Summary]) -> None:
    parent, pids = start_run(tmp_path)
    parent.send_signal(signal.SIGINT)
    printed, _ = parent.communicate(timeout=10)
    assert printed.split() == ["True", "1", "3"]
    assert parent.returncode == 0
    until_gone(pids)
    (record,) = records_in(tmp_path, "fake").records
    assert record.status == "ok"

    rest = run(make_config("finish"), make_config("finish", 1), results=tmp_path)
    assert (rest.resumed, len(rest.records)) == (1, 1)


def test_a_worker_does_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    parent, (worker, child) = start_run(tmp_path)
    try:
        parent.kill()
        parent.communicate(timeout=10)
        until_gone([worker])
    finally:
        if running(child):
            os.kill(child, signal.SIGKILL)
    assert [record.status for record in records_in(tmp_path, "fake").records] == ["ok"]


@pytest.mark.parametrize("parent_is_known", [True, False])
def test_a_worker_ends_when_its_requests_do(parent_is_known: bool) -> None:
    parent = ["--parent", str(os.getpid())] if parent_is_known else []
    arguments = ["--backend", "numpy", "--target", "fake_cells", *parent]
    worker = subprocess.Popen(
        [sys.executable, "-m", "svgpbench.runs.worker", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    printed, _ = worker.communicate(timeout=20)
    assert worker.returncode == 0
    assert printed.startswith(b'{"environment"') or printed == b""
