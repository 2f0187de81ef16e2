"""A real cell whose worker is killed in the middle goes on, and its record has the same bits."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from process_watch import children_with
from small_cell import config

from svgpbench.config import InducingConfig, TrainingConfig
from svgpbench.experiments.cell import identify
from svgpbench.results.records import checkpoint_path
from svgpbench.runs.pool import run_cells

CELL = config(
    inducing=InducingConfig(count=20),
    training=TrainingConfig(em_iterations=30, m_steps=3, batch_size=100, e_rate=0.5),
)


def kill_worker_when(place: Path) -> None:
    """Kill this process's worker as soon as there is a file."""
    end = time.monotonic() + 120
    while not place.exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    for worker in children_with("svgpbench.runs.worker"):
        worker.kill()


def test_a_cell_whose_worker_is_killed_goes_on_bit_for_bit(tmp_path: Path) -> None:
    (whole,) = run_cells([CELL], results=tmp_path / "whole", jobs=1).records
    assert whole.status == "ok"
    place = checkpoint_path(tmp_path / "killed", CELL, identify(CELL).cell_id)
    killer = threading.Thread(target=kill_worker_when, args=(place,))
    killer.start()
    (dead,) = run_cells([CELL], results=tmp_path / "killed", jobs=1, checkpoint_every=0.0).records
    killer.join()
    assert dead.status == "crashed"
    assert place.exists()
    (again,) = run_cells([CELL], results=tmp_path / "killed", jobs=1).records
    assert (again.status, again.worker.resumptions) == ("ok", 1)
    assert again.trace_without_times() == whole.trace_without_times()
    assert again.metrics == whole.metrics
    assert not place.exists()


def test_a_cell_says_in_its_record_why_it_did_not_go_on(tmp_path: Path) -> None:
    place = checkpoint_path(tmp_path, CELL, identify(CELL).cell_id)
    place.parent.mkdir(parents=True)
    place.write_bytes(b"cut off")
    (record,) = run_cells([CELL], results=tmp_path, jobs=1).records
    assert (record.status, record.worker.resumptions) == ("ok", 0)
    assert record.message == "began anew: its checkpoint was damaged"
