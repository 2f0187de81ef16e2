"""What machines do to runs: afterwards the same command completes, with the records of an undisturbed one."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fake_cells import identify, make_config
from process_watch import holder, until_gone, written_pids

from svgpbench.config import CellConfig
from svgpbench.results.parquet_file import write_parquet_records
from svgpbench.results.records import Record, record_path
from svgpbench.results.store import record_of, records_in
from svgpbench.runs import scheduler
from svgpbench.runs.core_locks import LOCKS_VARIABLE
from svgpbench.runs.events import Event, Finished, Noticed, Summary
from svgpbench.runs.pool import run_cells
from svgpbench.runs.slots import Slot

Run = Callable[..., Summary]
RUNNER = """
import os, signal, sys, time
from pathlib import Path
from fake_cells import make_config
from svgpbench.errors import UserError
from svgpbench.runs.pool import run_cells

folder, how = Path(sys.argv[1]), sys.argv[2]
cells = [make_config("note", seed, options={"notes": str(folder / "notes")}) for seed in range(8)]
if how == "stop in a write":
    write, fsync = os.write, os.fsync

    def stop(descriptor):
        if sum(1 for _ in folder.rglob("*.json")) == 3:
            print("in the middle", flush=True)
            time.sleep(60)
        fsync(descriptor)

    os.fsync = stop
try:
    summary = run_cells(cells, results=folder / "results", jobs=1, target="fake_cells")
    print(len(summary.records), summary.resumed, summary.elsewhere, summary.total)
except UserError as error:
    print(error)
    sys.exit(2)
"""
CELLS = 8


def runner(folder: Path, how: str = "", **options: object) -> subprocess.Popen[str]:
    """A process that runs eight cells, each of which adds a line to `notes`."""
    folder.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-c", RUNNER, str(folder), how],
        stdout=subprocess.PIPE,
        text=True,
        **options,  # type: ignore[call-overload]
    )


def finished(folder: Path, how: str = "", **options: object) -> tuple[int, str]:
    process = runner(folder, how, **options)
    printed, _ = process.communicate(timeout=120)
    return process.returncode, printed.strip()


def numbers(folder: Path) -> list[tuple[object, ...]]:
    """What tables are made of. Notes lie in each folder, so ids of cells differ between folders."""
    records = records_in(folder / "results", "fake").records
    return sorted(
        ((r.status, r.trace, r.metrics, r.data["fingerprint"]) for r in records), key=repr
    )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[object, ...]]:
    folder = tmp_path_factory.mktemp("undisturbed")
    with pytest.MonkeyPatch.context() as patch:
        here = str(Path(__file__).parent)
        patch.setenv("PYTHONPATH", os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]))
        assert finished(folder) == (0, f"{CELLS} 0 0 {CELLS}")
    return numbers(folder)


def all_as(undisturbed: list[tuple[object, ...]], folder: Path) -> bool:
    """Whether every cell has the undisturbed record, and no draft is left."""
    left = [path.name for path in (folder / "results").rglob("*.tmp")]
    return not left and numbers(folder) == undisturbed


def kill_in_a_write(folder: Path) -> None:
    """Start a run and kill it and its workers while it writes its fourth record."""
    process = runner(folder, "stop in a write", start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "in the middle\n"
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=10)


def test_all_that_is_killed_in_the_middle_of_a_write_leaves_nothing_torn(
    tmp_path: Path, undisturbed: list[tuple[object, ...]]
) -> None:
    kill_in_a_write(tmp_path)
    assert len(list((tmp_path / "results").rglob("*.tmp"))) == 1
    assert len(numbers(tmp_path)) == 3
    assert finished(tmp_path) == (0, "5 3 0 5")
    assert all_as(undisturbed, tmp_path)


def test_a_full_disk_is_one_line_and_the_run_goes_on_when_there_is_room(
    tmp_path: Path, undisturbed: list[tuple[object, ...]]
) -> None:
    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))

    code, printed = finished(tmp_path, preexec_fn=full)
    assert code == 2
    assert printed.startswith("cannot write ") and printed.endswith(": File too large")
    assert "\n" not in printed
    assert not list((tmp_path / "results").rglob("*.json"))
    assert finished(tmp_path)[0] == 0
    assert all_as(undisturbed, tmp_path)


PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1


def without_privileges() -> None:
    """What root may write is decided by permissions too."""
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="capabilities are Linux's")
def test_a_folder_that_becomes_read_only_is_one_line(
    tmp_path: Path, undisturbed: list[tuple[object, ...]]
) -> None:
    kill_in_a_write(tmp_path)
    folders = [tmp_path / "results", *(p for p in (tmp_path / "results").rglob("*") if p.is_dir())]
    for folder in folders:
        folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        code, printed = finished(tmp_path, preexec_fn=without_privileges)
    finally:
        for folder in folders:
            folder.chmod(stat.S_IRWXU)
    said = f"{tmp_path / 'results'} cannot be written (Permission denied); name another folder"
    assert (code, printed) == (2, said)
    assert finished(tmp_path)[0] == 0
    assert all_as(undisturbed, tmp_path)


def test_two_runs_on_one_folder_run_each_cell_once(
    tmp_path: Path, undisturbed: list[tuple[object, ...]]
) -> None:
    both = [runner(tmp_path), runner(tmp_path)]
    printed = [process.communicate(timeout=120)[0].split() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sum(int(words[0]) for words in printed) == CELLS
    for made, resumed, elsewhere, _ in (map(int, words) for words in printed):
        assert made + resumed + elsewhere == CELLS
        assert made > 0
    assert len((tmp_path / "notes").read_text().split()) == CELLS
    assert all_as(undisturbed, tmp_path)


def test_the_cells_of_a_run_that_is_killed_go_to_the_other(tmp_path: Path, run: Run) -> None:
    slow = make_config("sleep_with_child", options={"pids": str(tmp_path / "pids")})
    script = (
        "import sys; from pathlib import Path; from fake_cells import make_config\n"
        "from svgpbench.runs.pool import run_cells\n"
        "slow = make_config('sleep_with_child', options={'pids': sys.argv[1] + '/pids'})\n"
        "run_cells([slow], results=Path(sys.argv[1]) / 'results', jobs=1, target='fake_cells')\n"
    )
    other = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], text=True)
    worker, child = written_pids(tmp_path / "pids", other)
    told: list[Event] = []

    def on_event(event: Event) -> None:
        told.append(event)
        if isinstance(event, Finished) and event.record.config.method.name == "finish":
            other.kill()  # its cell was held back until now, and comes free

    summary = run(slow, make_config("finish"), on_event=on_event, timeout=2.0)
    other.wait()
    os.kill(child, signal.SIGKILL)
    until_gone([worker])
    assert [record.status for record in summary.records] == ["ok", "timeout"]
    assert summary.elsewhere == 0


def test_a_clock_that_was_put_back_makes_no_new_record_the_older(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = make_config("finish")
    (first,) = run(cell).records
    results = tmp_path / "results"
    write_parquet_records(results, [first.model_copy(update={"metrics": {"nlpd": 9.0}})])
    record_path(results, first.config, first.cell_id).unlink()

    class Back(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return first.started - timedelta(days=400)

    monkeypatch.setattr(scheduler, "datetime", Back)
    (again,) = run(cell, force=True).records
    assert again.started > first.started
    assert 0.0 < again.wall_s < 60.0
    counts = record_of(results, first.config, first.cell_id)
    assert counts is not None and counts.metrics == {"nlpd": 0.1 + 0.2}


def test_a_disk_without_locks_is_told_and_the_run_goes_on(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def none(*arguments: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setenv(LOCKS_VARIABLE, str(tmp_path / "locks"))  # locks that are open stay open

    monkeypatch.setattr(fcntl, "lockf", none)
    told: list[Event] = []
    assert len(run(make_config("finish"), on_event=told.append).records) == 1
    of_cores, of_cells = (event.line for event in told if isinstance(event, Noticed))
    assert of_cores == ("cores cannot be reserved, another run may use them (No locks available)")
    assert "keeps no locks (No locks available): start no second run" in of_cells


KEEPS_A_LOCK = """
import sys
from pathlib import Path
from svgpbench.results.cell_locks import FileLocks
locks = FileLocks.in_folder(Path(sys.argv[1]))
print(locks.acquire(sys.argv[2]), flush=True)
sys.stdin.read()
"""


def test_drafts_of_killed_runs_are_removed_but_not_those_of_a_run_that_goes_on(
    run: Run, tmp_path: Path
) -> None:
    cell, other = make_config("finish"), make_config("finish", 1)
    path = record_path(tmp_path / "results", cell, identify(cell).cell_id)
    path.parent.mkdir(parents=True)
    drafts = [path.with_name(f".{identify(one).cell_id}.99999.tmp") for one in (cell, other)]
    for draft in drafts:
        draft.write_text("{")
    with holder(KEEPS_A_LOCK, tmp_path / "results", identify(other).cell_id) as (_, said):
        assert said == "True"
        run(cell)
        assert [draft.exists() for draft in drafts] == [False, True]


def test_a_file_that_changes_while_a_run_goes_on_gives_no_number_under_the_old_name(
    run_one: Callable[..., Record],
) -> None:
    record = run_one(make_config("find_other_data"))
    assert (record.status, record.metrics, record.trace) == ("skipped", {}, {})
    assert record.message == (
        "its worker found other data: fingerprint another where the run began with fingerprint"
    )
    assert record.data == {"fingerprint": "fingerprint"}


def test_a_cell_that_another_run_failed_at_meanwhile_is_not_run_again(
    run: Run, tmp_path: Path
) -> None:
    """Each run once: the one that began later has it run in its place when it is asked again."""
    cells: list[CellConfig] = [make_config("finish"), make_config("fail")]
    inner: list[Summary] = []

    def on_event(event: Event) -> None:
        if isinstance(event, Finished) and not inner:
            inner.append(Summary((), [], 0, 0, False))
            made = event.record.model_copy(
                update={
                    "cell_id": identify(cells[1]).cell_id,
                    "config": cells[1],
                    "status": "crashed",
                    "started": datetime(2030, 1, 1, tzinfo=UTC),
                }
            )
            scheduler.write_record(tmp_path / "results", made)

    slow = make_config("sleep", options={"seconds": 1.0})
    summary = run(cells[0], slow, cells[1], on_event=on_event)
    assert (len(summary.records), summary.elsewhere) == (2, 1)
    assert run(cells[1]).records[0].status == "error"


class NowhereToRun:
    """An executor without a slot, for whose cells another run writes records before they are given up."""

    size = 0

    def __init__(self, made_elsewhere: Callable[[], None]) -> None:
        self.made_elsewhere = made_elsewhere

    def slots(self, cells: object, alone: bool) -> NowhereToRun:
        return self

    def now(self) -> list[Slot]:
        return []

    def unschedulable_reason(self, waiting: object) -> str:
        self.made_elsewhere()
        return "no worker has a GPU"


def test_a_cell_that_no_slot_can_run_keeps_the_record_that_another_run_made_meanwhile(
    run: Run, tmp_path: Path
) -> None:
    made, never = make_config("finish"), make_config("finish", seed=1)

    def make_one() -> None:
        run_cells([made], results=tmp_path / "results", jobs=1, target="fake_cells")

    summary = run(made, never, executor=NowhereToRun(make_one))
    assert (summary.counts, summary.elsewhere) == ({"skipped": 1}, 1)
    ended = {r.config.seed: r.status for r in records_in(tmp_path / "results", "fake").records}
    assert ended == {0: "ok", 1: "skipped"}
