"""A run on a Dask cluster: the same cells and records, whatever becomes of the workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="the extra `dask` is not installed")

from dask_cluster import dask_cluster
from distributed import Client
from fake_cells import make_config
from process_watch import children_with, until_gone, written_pids
from test_killed_cell import CELL

from svgpbench.errors import UserError
from svgpbench.experiments.identity import CellIdentity
from svgpbench.runs import dask_task
from svgpbench.runs.core_locks import CoreReservation, timing_cores
from svgpbench.runs.cores import usable_cores
from svgpbench.runs.dask_slots import DaskExecutor
from svgpbench.runs.dask_task import CellTask, TaskResult, reserved_cores
from svgpbench.runs.events import Event, Noticed, Started, Summary
from svgpbench.runs.pool import run_cells
from svgpbench.runs.process import Stopped
from svgpbench.runs.protocol import Request

Run = Callable[..., Summary]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    here = str(Path(__file__).parent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]))
        with dask_cluster(tmp_path_factory.mktemp("dask"), 3) as address:
            yield address


@pytest.fixture
def client(address: str) -> Iterator[Client]:
    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(3, timeout=120)
        yield client


@pytest.fixture
def run_there(run: Run, client: Client) -> Run:
    """`run`, on the cluster."""

    def call(*cells: object, timeout: float | None = None, **options: object) -> Summary:
        settings = {"target": "fake_cells", "patience_s": 30.0} | {
            name: options.pop(name)
            for name in ("target", "patience_s", "memory", "on_notice")
            if name in options
        }
        executor = DaskExecutor(client, timeout=timeout, **settings)  # type: ignore[arg-type]
        return run(*cells, executor=executor, target=settings["target"], **options)

    return call


def test_a_worker_that_is_killed_costs_its_cell_a_second_try_and_no_other(
    run_there: Run, tmp_path: Path
) -> None:
    notes = {"notes": str(tmp_path / "notes")}
    cells = [make_config("note", seed, options=notes) for seed in range(6)]
    killer = make_config("kill_dask_worker", options={"marks": str(tmp_path / "m"), "times": 1})
    told: list[Event] = []
    summary = run_there(cells[0], killer, *cells[1:], on_event=told.append)
    assert summary.counts == {"ok": 7}
    assert sorted((tmp_path / "notes").read_text().split()) == list("012345")
    lost = {r.config.method.name: r.worker.lost for r in summary.records if r.worker.lost}
    assert list(lost) == ["kill_dask_worker"]
    ((who,),) = lost.values()
    assert who.startswith("Dask worker tcp://127.0.0.1:")
    (line,) = [event.line for event in told if isinstance(event, Noticed)]
    assert line.startswith(f"{who} was lost; its cell ")
    assert all(r.worker.fresh and r.worker.cells_before == 0 for r in summary.records)
    assert all(r.environment is not None and r.environment.affinity for r in summary.records)
    assert run_there(*cells, killer).resumed == 7


def test_a_cell_that_takes_two_workers_with_it_has_crashed(run_there: Run, tmp_path: Path) -> None:
    options = {"marks": str(tmp_path / "m"), "times": 9}
    (record,) = run_there(make_config("kill_dask_worker", options=options)).records
    assert record.status == "crashed"
    assert len(record.worker.lost) == 2
    assert record.message == f"lost with it: {' and '.join(record.worker.lost)}"
    assert (tmp_path / "m").read_text() == "xx"


def test_time_and_memory_are_limited_there_and_failures_recorded(run_there: Run) -> None:
    slow = make_config("sleep", options={"seconds": 60})
    (late,) = run_there(slow, timeout=1.0).records
    assert (late.status, late.message) == ("timeout", "no result within 1 s")
    greedy, failing = make_config("hold_memory"), make_config("fail")
    records = run_there(greedy, failing, memory=1.2 * 2**30).records
    assert sorted((r.status, r.message) for r in records) == [
        ("error", "RuntimeError: first line"),
        ("oom", "the worker held more than 1.2 GiB"),
    ]


def test_a_gpu_cell_without_a_gpu_worker_is_skipped_with_the_reason(run_there: Run) -> None:
    cuda = {"name": "numpy", "device": "cuda"}
    summary = run_there(make_config("finish", backend=cuda), make_config("finish"), patience_s=0.5)
    by_device = {r.config.backend.device: r for r in summary.records}
    assert by_device["cpu"].status == "ok"
    assert by_device["cuda"].status == "skipped"
    assert "no Dask worker has a GPU: start one with --resources GPU=1" in by_device["cuda"].message


def test_a_gpu_cell_goes_to_the_worker_that_has_one(run: Run, tmp_path: Path) -> None:
    cuda = {"name": "numpy", "device": "cuda"}
    with (
        dask_cluster(tmp_path, 1, "--resources", "GPU=1") as address,
        Client(address, set_as_default=False) as client,
    ):
        executor = DaskExecutor(client, target="fake_cells", patience_s=60.0)
        summary = run(make_config("finish", backend=cuda), executor=executor)
    assert summary.counts == {"ok": 1}


def test_a_scheduler_that_dies_is_one_line_and_its_cells_run_here_then(
    run: Run, tmp_path: Path
) -> None:
    slow = make_config("sleep", options={"seconds": 3.0})
    with (
        dask_cluster(tmp_path, 1) as address,
        Client(address, timeout=2.0, set_as_default=False) as client,
    ):
        (scheduler,) = children_with(
            "distributed.cli.dask_scheduler", str(tmp_path / "scheduler.json")
        )
        executor = DaskExecutor(client, target="fake_cells")

        def on_event(event: Event) -> None:
            if isinstance(event, Started):
                threading.Timer(0.5, scheduler.kill).start()

        with pytest.raises(UserError, match="the Dask scheduler is gone; finished cells have"):
            run(slow, executor=executor, on_event=on_event)
    assert run(slow).counts == {"ok": 1}


def test_a_worker_of_another_version_or_with_other_data_makes_no_number(
    run_there: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config("finish")
    monkeypatch.setattr(
        "fake_cells.identify", lambda config: CellIdentity("a" * 16, "fingerprint", config, 2)
    )
    (record,) = run_there(config).records
    assert (record.status, record.metrics) == ("skipped", {})
    assert record.message.startswith("the Dask worker gives this cell another id, ")


def test_an_order_for_a_worker_whose_place_another_took_is_not_carried_out() -> None:
    """Under its address, so that Dask itself takes the one for the other."""
    order = CellTask(
        process="that is gone",
        cell_id="",
        code={},
        request=Request(config=make_config("finish")),
        timeout=None,
        memory=None,
        target="fake_cells",
    )
    assert dask_task.compute(order.model_dump_json()) == TaskResult(answer=None).model_dump_json()


def test_a_worker_without_what_is_run_is_not_used_and_named(
    run_there: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svgpbench.__version__", "9.9")
    told: list[str] = []
    with pytest.raises(UserError, match=r"no Dask worker that can .* it has svgpbench 0"):
        run_there(make_config("finish"), patience_s=1.0, on_notice=told.append)
    assert len(told) == 3 and all("is not used: it has svgpbench 0" in line for line in told)


RUN = """
import signal, sys
from pathlib import Path
from distributed import Client
from fake_cells import make_config
from svgpbench.runs.dask_slots import DaskExecutor
from svgpbench.runs.pool import run_cells

signal.signal(signal.SIGINT, signal.default_int_handler)
folder = Path(sys.argv[1])
slow = make_config("sleep_with_child", options={"pids": str(folder / "pids")})
with Client(sys.argv[2], set_as_default=False) as client:
    executor = DaskExecutor(client, target="fake_cells")
    print(run_cells([slow], results=folder, target="fake_cells", executor=executor).interrupted)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_cells_end_with_their_run(
    client: Client, tmp_path: Path, address: str, how: signal.Signals
) -> None:
    command = [sys.executable, "-c", RUN, str(tmp_path), address]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    pids = written_pids(tmp_path / "pids", parent)
    parent.send_signal(how)
    printed, _ = parent.communicate(timeout=20)
    assert printed.split() == (["True"] if how == signal.SIGINT else [])
    until_gone(pids, limit=30.0)


def test_cells_that_measure_do_not_share_their_machine(run_there: Run, tmp_path: Path) -> None:
    notes = {"notes": str(tmp_path / "notes")}
    cells = [make_config("span", seed, options=notes, measures=True) for seed in range(3)]
    assert run_there(*cells).counts == {"ok": 3}
    lines = (tmp_path / "notes").read_text().splitlines()
    spans = sorted(tuple(map(float, line.split())) for line in lines)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def test_a_real_cell_gives_the_bits_that_it_gives_here(client: Client, tmp_path: Path) -> None:
    (here,) = run_cells([CELL], results=tmp_path / "here", jobs=1).records
    executor = DaskExecutor(client)
    (there,) = run_cells([CELL], results=tmp_path / "there", executor=executor).records
    assert there.cell_id == here.cell_id
    assert (there.status, there.trace_without_times()) == ("ok", here.trace_without_times())
    assert there.data == here.data


class Stop:
    """Says that the run is over, so that nobody waits for cores."""

    def is_set(self) -> bool:
        return True


@pytest.mark.long
def test_cores_are_claimed_between_cells_and_all_of_them_for_one_that_measures() -> None:
    cores, stop = usable_cores(), Stop()
    with reserved_cores(1, False, stop) as mine:
        assert mine == cores[:1]
        with pytest.raises(Stopped), reserved_cores(1, True, stop):
            pass
        with pytest.raises(Stopped), reserved_cores(len(cores), False, stop):
            pass
    with reserved_cores(1, True, stop) as mine:
        assert mine == cores[:1]
        with pytest.raises(Stopped), reserved_cores(1, False, stop):
            pass
    with reserved_cores(len(cores), False, stop) as mine:
        assert mine == cores


def test_a_task_waits_for_the_cores_of_a_run_and_of_a_timing() -> None:
    cores, run = usable_cores(), CoreReservation()
    assert run.choose(cores, len(cores)) == cores and run.note == ""
    with pytest.raises(Stopped), reserved_cores(1, False, Stop()):
        pass
    run.close()
    with timing_cores(len(cores)), pytest.raises(Stopped), reserved_cores(1, False, Stop()):
        pass
    with reserved_cores(1, False, Stop()) as mine, timing_cores(len(cores)) as timed:
        assert timed.note == f"no free core: another run has core {mine[0]} too"


class ManyWorkers:
    """A client of an older Dask, which tells of five workers unless it is asked for all."""

    status = "running"

    def scheduler_info(self, n_workers: int = 5) -> dict[str, object]:
        workers = {f"tcp://host:{port}": {"nthreads": 2} for port in range(8)}
        told = workers if n_workers < 0 else dict([*workers.items()][:n_workers])
        return {"workers": told}

    def submit(self, *task: object, **options: object) -> Future:
        return Future()


def test_every_worker_of_a_large_cluster_is_used() -> None:
    assert DaskExecutor(ManyWorkers()).size == 16
