"""Who runs which cell: jobs, cores, warm workers, events."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_cells import make_config

from svgpbench.errors import UserError
from svgpbench.experiments.identity import CellIdentity
from svgpbench.results.cell_locks import FileLocks
from svgpbench.results.records import Record
from svgpbench.results.store import records_in
from svgpbench.runs.cores import usable_cores
from svgpbench.runs.events import Event, Finished, Noticed, Planned, Started, Summary
from svgpbench.runs.queue import CellQueue, PlannedCell
from svgpbench.runs.scheduler import Scheduler

Run = Callable[..., Summary]


def test_a_warm_worker_is_reused_and_a_measuring_cell_gets_a_fresh_one(run: Run) -> None:
    cells = [make_config("finish", seed) for seed in range(3)]
    measuring = [make_config("finish", seed, measures=True) for seed in range(2)]
    records = run(*measuring, *cells).records
    assert [record.worker.cells_before for record in records] == [0, 1, 2, 0, 0]
    assert [record.worker.fresh for record in records] == [True, False, False, True, True]
    # measuring cells run last, when nothing else does
    assert [record.config.measures for record in records] == [False, False, False, True, True]
    assert len({record.data["pid"] for record in records}) == 3


def test_a_worker_is_replaced_after_a_failure_but_not_after_a_refusal(run: Run) -> None:
    names = ["finish", "refuse", "finish", "fail", "finish"]
    records = run(*(make_config(name, seed) for seed, name in enumerate(names))).records
    assert [record.worker.cells_before for record in records] == [0, 1, 2, 3, 0]


def test_a_cell_named_twice_runs_once(run: Run) -> None:
    events: list[Event] = []
    done = run(make_config("finish"), make_config("finish"), on_event=events.append)
    assert len(done.records) == 1
    assert events[0] == Planned(total=1, resumed=0, jobs=1)  # nor is it announced as two


def test_events_count_up_to_the_total(run: Run) -> None:
    """Also over cells that measure, which run when the others have ended."""
    cells = [make_config("finish", seed, measures=seed > 1) for seed in range(4)]
    run(cells[0], cells[2])
    events: list[Event] = []
    summary = run(*cells, on_event=events.append)
    # cores that another test's run holds are noted
    planned, *told = (x for x in events if not isinstance(x, Noticed))
    assert planned == Planned(total=2, resumed=2, jobs=1)
    assert [(type(x), x.done, x.total) for x in told if isinstance(x, Started | Finished)] == [
        *((Started, 0, 2), (Finished, 1, 2)),
        *((Started, 1, 2), (Finished, 2, 2)),
    ]
    started = [x.cell_id for x in told if isinstance(x, Started)]
    assert started == [x.record.cell_id for x in told if isinstance(x, Finished)]
    assert (summary.resumed, summary.total, summary.interrupted) == (2, 2, False)
    assert summary.counts == {"ok": 2}


def test_a_worker_sees_its_threads(run_one: Callable[..., Record]) -> None:
    data = run_one(make_config("tell_environment")).data
    for name in ("OMP", "OPENBLAS", "MKL"):
        assert data[f"{name}_NUM_THREADS"] == "1"
    assert data["TF_NUM_INTRAOP_THREADS"] == data["TF_NUM_INTEROP_THREADS"] == "1"
    assert (data["JAX_ENABLE_X64"], data["JAX_PLATFORMS"]) == ("1", "cpu")
    assert data["CUDA_VISIBLE_DEVICES"] == ""


@pytest.mark.skipif(len(usable_cores()) < 2, reason="two jobs need two cores")
def test_two_jobs_have_workers_of_their_own_cores(run: Run) -> None:
    cells = [make_config("sleep", seed, options={"seconds": 0.3}) for seed in range(4)]
    records = run(*cells, jobs=2).records
    affinities = [r.environment.affinity for r in records if r.environment is not None]
    assert len(affinities) == 4
    assert len(set(affinities)) == 2


def test_a_failing_listener_ends_the_run_but_not_its_records(run: Run, tmp_path: Path) -> None:
    def fail(event: Event) -> None:
        if isinstance(event, Finished):
            raise BrokenPipeError

    cells = [make_config("finish"), make_config("sleep", options={"seconds": 60})]
    with pytest.raises(BrokenPipeError):
        run(*cells, on_event=fail)
    assert [record.status for record in records_in(tmp_path / "results", "fake").records] == ["ok"]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("job")]


def test_jobs_keep_their_kind_and_spread_over_kinds() -> None:
    def planned(backend: str, seed: int) -> PlannedCell:
        config = make_config("finish", seed, backend={"name": backend})
        return PlannedCell(CellIdentity(f"{backend}{seed}", "", config, 1))

    order = [
        planned("torch", 0),
        planned("jax", 0),
        planned("torch", 1),
        planned("jax", 1),
        planned("torch", 2),
    ]
    cell_queue = CellQueue(order)
    taken = [cell_queue.take(job) for job in (0, 1, 0, 1, 1, 0)]
    ids = [planned.cell_id if planned else None for planned in taken]
    assert ids == ["torch0", "jax0", "torch1", "jax1", "torch2", None]


def test_a_cell_that_another_run_let_go_of_is_put_back_for_any_job(tmp_path: Path) -> None:
    """A lock that this run kept on it would leave it to nobody."""
    planned = PlannedCell(CellIdentity("one", "", make_config("finish"), 1))
    cells, locks = CellQueue([planned]), FileLocks.in_folder(tmp_path)
    scheduler = Scheduler(tmp_path, 1.0, locks, {}, total=1)
    scheduler._locked_by_others.append(cells.take(0))
    scheduler._requeue_unlocked(cells, queue.Queue())
    assert cells.take(1) == planned
    scheduler._requeue_unlocked(cells, queue.Queue())
    assert not cells.waiting()  # it is put back once
    assert locks.acquire(planned.cell_id)
    scheduler._locked_by_others.append(planned)  # somebody holds it still
    scheduler._requeue_unlocked(cells, queue.Queue())
    assert not cells.waiting()
    locks.close()


def test_a_broken_record_stops_a_resumed_run_before_it_starts(run: Run, tmp_path: Path) -> None:
    cell = make_config("finish")
    run(cell)
    (file,) = (tmp_path / "results").rglob("*.json")
    file.write_text(json.dumps(json.loads(file.read_text()) | {"schema_version": 0}))
    with pytest.raises(UserError, match="record schema 0"):
        run(cell)
    assert len(run(cell, force=True).records) == 1


def test_a_folder_that_cannot_be_written_is_a_users_mistake(run: Run, tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file, not a folder")
    with pytest.raises(UserError, match=r"results cannot be written \(Not a directory\)"):
        run(make_config("finish"))
