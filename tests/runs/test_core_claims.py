"""Runs, Dask tasks and timings on one machine take cores of their own as long as there are any."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fake_cells import make_config
from process_watch import holder

from svgpbench.results.records import Record
from svgpbench.runs import core_locks, cores
from svgpbench.runs.core_locks import CoreReservation
from svgpbench.runs.cores import usable_cores
from svgpbench.runs.events import Event, Noticed, Summary

OTHER = """
import sys
from pathlib import Path
from svgpbench.runs import core_locks
core_locks.core_file = lambda: Path(sys.argv[1])
print(core_locks.CoreReservation().choose(tuple(map(int, sys.argv[2:])), 1), flush=True)
sys.stdin.read()
"""


@contextmanager
def another_run(path: Path, *cores: int) -> Iterator[str]:
    """A process that has one of the cores, and what it says of it."""
    with holder(OTHER, path, *cores) as (_, said):
        yield said


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Core file of this process, which does not exist."""
    path = tmp_path / "new" / "cores"
    monkeypatch.setattr(core_locks, "core_file", lambda: path)
    return path


def chosen(cores: tuple[int, ...], count: int) -> tuple[tuple[int, ...], str]:
    reservation = CoreReservation()
    try:
        return reservation.choose(cores, count), reservation.note
    finally:
        reservation.close()


def test_the_lock_file_lies_in_the_cache_or_where_the_user_wants_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for given, folder in (
        (str(tmp_path / "given"), tmp_path / "given"),
        ("~/given", tmp_path / "home" / "given"),
        ("", tmp_path / "cache" / "svgpbench"),
    ):
        monkeypatch.setenv(core_locks.LOCKS_VARIABLE, given)
        assert core_locks.core_file().parent == folder / "locks"
        assert chosen((0, 1), 1) == ((0,), "")
        assert core_locks.core_file().is_file()


def test_a_run_takes_free_cores_first_and_says_which_it_shares(path: Path) -> None:
    with another_run(path, 0, 1, 2) as said:
        assert said == "(0,)"
        assert chosen((0, 1, 2), 1) == ((1,), "")
        assert chosen((0, 1, 2), 2) == ((1, 2), "")
        own = CoreReservation()
        assert own.choose((0, 1, 2), 3) == (1, 2, 0)
        assert own.note == "no free core: another run has core 0 too"
        with another_run(path, 0, 1, 2, 3) as left:
            assert left == "(3,)"
        second = CoreReservation()  # in this process: its handle is the same
        assert second.choose((0, 1, 2), 2) == (0, 1)
        assert second.note == "no free core: another run has cores 0, 1 too"
        second.close()
        with another_run(path, 1, 2, 3) as left:
            assert left == "(3,)"  # the first still has 1 and 2
        own.close()
    assert chosen((0, 1, 2), 2) == ((0, 1), "")  # whoever died has no core


def test_a_timing_takes_cores_that_no_run_has_and_keeps_runs_off_them(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cores, "usable_cores", lambda: (0, 1, 2))
    with another_run(path, 0, 1, 2) as run, core_locks.timing_cores(1) as timed:
        assert (run, timed) == ("(0,)", ((1,), ""))
        with another_run(path, 0, 1, 2) as later:
            assert later == "(2,)"
            with core_locks.timing_cores(2) as late:
                assert late.note == "no free core: another run has cores 0, 1 too"


def test_where_no_file_can_be_kept_this_process_alone_keeps_to_its_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(core_locks, "core_file", lambda: tmp_path / "file" / "cores")
    own, second = CoreReservation(), CoreReservation()
    assert own.choose((0, 1), 1) == (0,)
    assert own.note.startswith("cores cannot be reserved, another run may use them (")
    assert own.note.endswith(f"{tmp_path}/file/cores: File exists)")
    assert second.choose((0, 1), 1) == (1,)
    own.close()
    second.close()


def test_a_file_of_another_user_and_a_link_are_not_used(path: Path, tmp_path: Path) -> None:
    aim = tmp_path / "aim"
    aim.touch()
    path.parent.mkdir()
    path.symlink_to(aim)
    assert "Too many levels of symbolic links" in chosen((0,), 1)[1]
    assert aim.stat().st_mode & 0o777 == 0o644
    core_locks._locks_of.cache_clear()
    path.unlink()
    path.parent.rmdir()
    (tmp_path / "folder").mkdir(mode=0o755)
    path.parent.symlink_to(tmp_path / "folder")
    assert chosen((0,), 1)[1].endswith(f"{path}: it is a link or a special file)")
    assert (tmp_path / "folder").stat().st_mode & 0o777 == 0o755


def test_the_file_and_its_folder_are_closed_to_others(path: Path) -> None:
    path.parent.mkdir(mode=0o777)
    path.parent.chmod(0o777)
    path.touch(0o666)
    assert chosen((0,), 1) == ((0,), "")
    assert [x.stat().st_mode & 0o777 for x in (path.parent, path)] == [0o700, 0o600]


AS_ANOTHER = """
import os, sys
from pathlib import Path
from svgpbench.runs import core_locks
os.setgid(65534); os.setuid(65534)
core_locks.core_file = lambda: Path(sys.argv[1])
reservation = core_locks.CoreReservation()
print(reservation.choose((0, 1), 1), reservation.note, flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts a process of another user")
def test_another_user_can_neither_hold_nor_make_the_lock_file(path: Path, tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o011)
    assert chosen((0, 1), 1) == ((0,), "")  # the file is there, and it is ours
    with holder(AS_ANOTHER, path) as (_, said):
        assert said.startswith("(0,) cores cannot be reserved") and "user 0" in said
        assert chosen((0, 1), 1) == ((0,), "")
    core_locks._locks_of.cache_clear()
    os.chown(path, 65534, 65534)  # it was there first
    assert chosen((0, 1), 1)[1].endswith(f"{path}: it belongs to user 65534)")


@pytest.mark.skipif(len(usable_cores()) < 2, reason="one core cannot be left to another run")
def test_a_worker_is_pinned_beside_another_runs(
    path: Path, run: Callable[..., Summary], run_one: Callable[..., Record]
) -> None:
    first, second, *_ = usable_cores()
    with another_run(path, first):
        record = run_one(make_config("sleep", 0))
        assert record.worker.shared_cores == ""
        assert record.environment is not None and list(record.environment.affinity) == [second]
        events: list[Event] = []
        (record,) = run(
            make_config("finish"), jobs=len(usable_cores()), on_event=events.append
        ).records
        note = f"no free core: another run has core {first} too"
        assert record.worker.shared_cores == note
        assert [event.line for event in events if isinstance(event, Noticed)] == [note]
    record = run_one(make_config("sleep", 1))
    assert record.environment is not None and list(record.environment.affinity) == [first]
