"""Cells that measure, or use a GPU, run one at a time after all others; measuring ones in fresh processes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from fake_cells import make_config

from svgpbench.config import CellConfig
from svgpbench.experiments.identity import CellIdentity
from svgpbench.results.records import Record
from svgpbench.runs import pool
from svgpbench.runs.cores import usable_cores
from svgpbench.runs.events import Event, Finished, Started, Summary
from svgpbench.runs.process import WorkerKind
from svgpbench.runs.queue import PlannedCell

Run = Callable[..., Summary]
CUDA = {
    "name": "numpy",
    "device": "cuda",
}  # a device by name: nothing of the fake cells asks for it


def slow(seed: int, seconds: float = 0.1, **changes: Any) -> CellConfig:
    return make_config("sleep", seed, options={"seconds": seconds}, **changes)


@pytest.fixture
def two_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for two jobs, on a machine of one core too."""
    core = usable_cores()[0]
    monkeypatch.setattr(pool, "job_cores", lambda *asked: [(core,), (core,)])


def intervals(records: list[Record]) -> list[tuple[datetime, datetime]]:
    return [(r.started, r.started + timedelta(seconds=r.wall_s)) for r in records]


def alone(record: Record) -> bool:
    return record.config.measures or record.config.backend.device != "cpu"


@pytest.mark.usefixtures("two_jobs")
def test_nothing_runs_beside_a_cell_that_measures_or_uses_the_gpu(run: Run) -> None:
    events: list[Event] = []
    cells = [
        slow(0, measures=True),
        slow(1, backend=CUDA),
        slow(2),
        slow(3, backend=CUDA),
        slow(4, measures=True),
        slow(5),
        slow(6),
    ]
    records = run(*cells, jobs=2, on_event=events.append).records
    assert [alone(record) for record in records] == [False] * 3 + [True] * 4
    assert [r.config.seed for r in records[3:]] == [0, 4, 1, 3]  # kind by kind
    spans = intervals(records)
    for at, (start, end) in enumerate(spans):
        others = [span for place, span in enumerate(spans) if place != at]
        if alone(records[at]):
            assert all(e <= start or s >= end for s, e in others)
    assert any(s < e2 and s2 < e for (s, e), (s2, e2) in pairwise(spans))
    running = 0
    for event in events:
        running += isinstance(event, Started) - isinstance(event, Finished)
        if isinstance(event, Started) and (
            event.config.measures or event.config.backend.device != "cpu"
        ):
            assert running == 1
    assert {
        event.job for event in events if isinstance(event, Finished) and alone(event.record)
    } == {0}


def test_gpu_cells_share_a_process_and_one_that_measures_there_has_its_own(run: Run) -> None:
    cells = [make_config("finish", seed, backend=CUDA) for seed in range(2)]
    cells += [make_config("finish", 2, backend=CUDA, measures=True)]
    cells += [make_config("finish", 3, backend=CUDA)]
    records = run(*cells).records
    used = {r.config.seed: (r.worker.fresh, r.worker.cells_before) for r in records}
    assert used == {0: (True, 0), 1: (False, 1), 3: (False, 2), 2: (True, 0)}
    assert len({r.data["pid"] for r in records}) == 2


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, False),
        ({"measures": True}, True),
        ({"backend": CUDA}, True),
        ({"backend": CUDA, "measures": True}, True),
    ],
)
def test_what_runs_alone(changes: dict[str, Any], expected: bool) -> None:
    assert (
        PlannedCell(CellIdentity("id", "", make_config("finish", **changes), 1)).alone is expected
    )


def test_a_worker_is_kept_for_cells_of_its_backend_mode_dtype_device_and_threads() -> None:
    config = make_config("finish")
    backends = [
        {"name": "torch"},
        {"name": "numpy", "mode": "eager"},
        {"name": "numpy", "dtype": "float32"},
        CUDA,
    ]
    others = [make_config("finish", backend=b) for b in backends] + [
        make_config("finish", threads=2)
    ]
    kinds = {WorkerKind.for_cell(each) for each in (config, *others)}
    assert len(kinds) == 6
    same = [make_config("fail"), make_config("finish", 7), make_config("finish", jitter=1e-4)]
    assert {WorkerKind.for_cell(each) for each in same} == {WorkerKind.for_cell(config)}


def test_cells_of_two_kinds_do_not_share_a_process(run: Run) -> None:
    eager = {"name": "numpy", "mode": "eager"}
    records = run(make_config("finish"), make_config("finish", backend=eager)).records
    assert [r.worker.fresh for r in records] == [True, True]
    assert len({r.data["pid"] for r in records}) == 2


def test_seconds_of_a_cell_are_its_own_as_seen_from_outside(run: Run) -> None:
    before = datetime.now(UTC)
    first, second, third = run(slow(0, 0.4), slow(1, 0.0), slow(2, 0.3)).records
    after = datetime.now(UTC)
    assert first.wall_s >= 0.4 and third.wall_s >= 0.3
    spans = intervals([first, second, third])
    assert before <= spans[0][0] and spans[-1][1] <= after + timedelta(seconds=0.1)
    assert sum(r.wall_s for r in (first, second, third)) <= (after - before).total_seconds()
    # one after the other: each starts when the one before has ended
    slack = timedelta(milliseconds=5)  # of two clocks
    assert spans[0][1] <= spans[1][0] + slack and spans[1][1] <= spans[2][0] + slack
    assert first.wall_s > second.wall_s  # the start of a fresh worker is its first cell's


def test_the_environment_is_that_of_the_worker_with_its_threads(run: Run) -> None:
    if len(usable_cores()) < 2:
        pytest.skip("two threads need two cores")
    (record,) = run(make_config("finish", threads=2)).records
    assert record.environment is not None
    assert record.environment.threads == 2
    assert record.environment.affinity is None or len(record.environment.affinity) == 2
    assert record.config.threads == 2
