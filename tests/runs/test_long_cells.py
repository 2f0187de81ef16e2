"""Cells of an hour: they go on where a process ended, and one that takes too much ends alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fake_cells import identify, make_config

from svgpbench.results.records import (
    Record,
    checkpoint_path,
    record_files,
    record_path,
)
from svgpbench.results.store import records_in
from svgpbench.runs.cores import SHARE, job_memory, memory_limit
from svgpbench.runs.events import Event, SetAside, Summary

RunOne = Callable[..., Record]
Run = Callable[..., Summary]


def test_a_cell_goes_on_after_every_death_and_leaves_no_place(run: Run, tmp_path: Path) -> None:
    cell = make_config("die_with_place")
    place = checkpoint_path(tmp_path / "results", cell, identify(cell).cell_id)
    for deaths in range(1, 5):
        (record,) = run(cell).records
        assert record.status == "crashed"
        assert place.read_text() == str(deaths)
    (record,) = run(cell).records
    assert (record.status, record.worker.resumptions) == ("ok", 4)
    assert not place.exists()
    assert record_files(tmp_path / "results") == [
        record_path(tmp_path / "results", cell, record.cell_id)
    ]


def test_a_cell_that_is_forced_begins_anew(run: Run, tmp_path: Path) -> None:
    cell = make_config("die_with_place")
    place = checkpoint_path(tmp_path / "results", cell, identify(cell).cell_id)
    run(cell), run(cell)
    assert place.read_text() == "2"
    run(cell, force=True)
    assert place.read_text() == "1"


def test_a_cell_that_measures_keeps_no_place(run_one: RunOne, tmp_path: Path) -> None:
    assert run_one(make_config("tell_with_place", measures=True)).data["place"] == "None"
    told = run_one(make_config("tell_with_place", 1)).data["place"]
    assert Path(str(told)).parent == tmp_path / "results" / "fake" / "numpy"


def test_a_worker_that_holds_too_much_ends_oom_and_the_run_goes_on(run: Run) -> None:
    greedy, modest = make_config("hold_memory"), make_config("finish")
    summary = run(greedy, modest, memory=1.2 * 2**30)
    assert [record.status for record in summary.records] == ["oom", "ok"]
    assert summary.records[0].message == "the worker held more than 1.2 GiB"


def test_a_worker_may_hold_what_it_may(run_one: RunOne) -> None:
    assert run_one(make_config("hold_memory"), memory=6 * 2**30).metrics["held"] == 40.0


def test_the_memory_of_the_machine_is_shared_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert job_memory(1) == pytest.approx(2 * job_memory(2))
    assert job_memory(1) < 1e15
    file = tmp_path / "memory.max"
    assert memory_limit(file) is None
    file.write_text("max\n")
    assert memory_limit(file) is None
    file.write_text("4096\n")
    assert memory_limit(file) == 4096
    monkeypatch.setattr("svgpbench.runs.cores.memory_limit", lambda path: 4096)
    assert job_memory(2) == SHARE * 2048


def damaged(path: Path) -> str:
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    return text


def test_a_damaged_record_is_set_aside_and_its_cell_runs_again(run: Run, tmp_path: Path) -> None:
    cells = [make_config("finish", seed) for seed in range(3)]
    run(*cells)
    path = record_path(tmp_path / "results", cells[1], identify(cells[1]).cell_id)
    damaged(path)
    told: list[Event] = []
    again = run(*cells, on_event=told.append)
    assert (again.resumed, [record.cell_id for record in again.records]) == (2, [path.stem])
    (event,) = (event for event in told if isinstance(event, SetAside))
    assert event.path == path.with_suffix(".damaged")
    assert str(path) in event.reason and "\n" not in event.reason
    assert len(records_in(tmp_path / "results", "fake").records) == 3
    kept = event.path.read_text()
    damaged(path)
    run(*cells)
    assert event.path.read_text() == kept
    assert path.with_suffix(".damaged-1").exists()


def test_a_record_made_under_another_default_is_none_of_this_cell(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both leave the field out of their ids, so only the configurations tell them apart."""
    cell = make_config("finish")
    monkeypatch.setattr("fake_cells.digest", lambda content: "one-id")
    run(cell)
    assert run(cell).resumed == 1
    other = make_config("finish", jitter=1e-4)
    ran = run(other)
    assert (ran.resumed, len(ran.records)) == (0, 1)
    assert ran.records[0].config.jitter == 1e-4
    assert run(other).resumed == 1
