"""However a cell ends, it ends in a record, and the run goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fake_cells import make_config
from process_watch import until_gone

from svgpbench.results.records import Record
from svgpbench.results.store import records_in
from svgpbench.runs.events import Summary

RunOne = Callable[..., Record]
Run = Callable[..., Summary]


def test_a_finished_cell_keeps_every_digit(run_one: RunOne, tmp_path: Path) -> None:
    record = run_one(make_config("finish"))
    assert record.status == "ok"
    assert record.trace == {
        "iteration": [1, 2],
        "elbo": [-0.1 - 0.2, -1 / 3],
        "nlpd": [None, 0.5],
    }
    assert record.metrics == {"nlpd": 0.1 + 0.2}
    assert record.data["fingerprint"] == "fingerprint"
    assert record.data["n_train"] == 9
    assert record.peak_memory_bytes is not None and record.peak_memory_bytes > 1e6
    assert record.environment is not None
    assert "numpy" in record.environment.versions
    assert record.environment.affinity is None or len(record.environment.affinity) == 1
    assert all(pool.threads == 1 for pool in record.environment.thread_pools)
    assert records_in(tmp_path / "results", "fake").records == [record]


def test_nan_and_infinity_become_null(run_one: RunOne, tmp_path: Path) -> None:
    record = run_one(make_config("give_nan"))
    assert record.status == "diverged"
    assert record.metrics == {"nlpd": None, "rmse": None}
    assert record.trace == {"elbo": [None, None]}
    (file,) = (tmp_path / "results").rglob("*.json")
    assert not any(word in file.read_text() for word in ("NaN", "Infinity"))


@pytest.mark.parametrize(
    ("do", "status", "message"),
    [
        ("fail", "error", "RuntimeError: first line"),
        ("refuse", "skipped", "backend 'numpy' offers no dtype 'float32'"),
        ("run_out_of_host_memory", "oom", "MemoryError: Unable to allocate 8.00 TiB"),
        (
            "run_out_of_device_memory",
            "oom",
            "RuntimeError: CUDA out of memory. Tried to allocate 20.00 GiB",
        ),
        ("return_what_json_lacks", "error", "TypeError: object has no place in JSON"),
        ("exit", "crashed", "the worker exited with code 3"),
        ("segfault", "crashed", "the worker was killed by SIGSEGV"),
    ],
)
def test_a_failed_cell_is_recorded(run_one: RunOne, do: str, status: str, message: str) -> None:
    record = run_one(make_config(do))
    assert (record.status, record.message) == (status, message)
    has_stack = status in ("error", "oom") or do == "segfault"
    assert ("in answer_cell" in record.traceback) == has_stack


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("/bin/false", "the worker exited with code 1"),
        ("/bin/echo", "the worker's first line could not be read"),
    ],
)
def test_a_worker_that_does_not_start_is_recorded(
    run_one: RunOne, monkeypatch: pytest.MonkeyPatch, program: str, message: str
) -> None:
    monkeypatch.setattr("sys.executable", program)
    record = run_one(make_config("finish"))
    assert (record.status, record.message) == ("crashed", message)
    assert record.environment is None


def test_what_a_cell_prints_stays_out_of_the_protocol(run_one: RunOne) -> None:
    record = run_one(make_config("chatter"))
    assert (record.status, record.message) == ("ok", "read 0 characters")


def test_a_killed_worker_is_replaced_and_resume_runs_what_is_missing(
    run: Run, tmp_path: Path
) -> None:
    killed = make_config("get_killed_once", options={"mark": str(tmp_path / "mark")})
    cells = [make_config("finish", 1), killed, make_config("finish", 2)]

    first = run(*cells)
    assert [record.status for record in first.records] == ["ok", "crashed", "ok"]
    assert "SIGKILL" in first.records[1].message
    assert first.counts == {"ok": 2, "crashed": 1}

    second = run(*cells)
    assert second.resumed == 2
    assert [(r.config.method.name, r.status) for r in second.records] == [("get_killed_once", "ok")]
    assert run(*cells).records == []
    assert len(run(*cells, force=True).records) == 3


def test_a_cell_that_takes_too_long_is_killed_with_its_children(run: Run, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    slow = make_config("sleep_with_child", options={"pids": str(pids)})
    # long enough for the fake cell to start its child, far below what it sleeps
    summary = run(slow, make_config("finish"), timeout=5.0)
    assert [record.status for record in summary.records] == ["timeout", "ok"]
    assert summary.records[0].message == "no result within 5 s"
    until_gone([int(pid) for pid in pids.read_text().split()])
