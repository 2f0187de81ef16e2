"""Two runs on one machine take cores of their own as long as there are any."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fake_cells import make_config

from svgpbench.results.records import Record
from svgpbench.runs import core_locks, cores
from svgpbench.runs.core_locks import CoreReservation
from svgpbench.runs.cores import usable_cores

OTHER = """
import sys
from pathlib import Path
from svgpbench.runs import core_locks, cores
from svgpbench.runs.core_locks import CoreReservation
print(CoreReservation(Path(sys.argv[1])).choose(tuple(map(int, sys.argv[2:])), 1), flush=True)
sys.stdin.read()
"""


@contextmanager
def another_run(path: Path, *cores: int) -> Iterator[str]:
    """A process that has one of the cores, and what it says of it."""
    command = [sys.executable, "-c", OTHER, str(path), *map(str, cores)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        yield other.stdout.readline().strip()
        other.kill()


def test_a_run_takes_free_cores_first_and_shares_where_there_are_too_few(tmp_path: Path) -> None:
    path = tmp_path / "new" / "cores"
    with another_run(path, 0, 1, 2) as said:
        assert said == "(0,)"
        own = CoreReservation(path)
        assert own.choose((0, 1, 2), 1) == (1,)
        own.close()
        own = CoreReservation(path)
        assert own.choose((0, 1, 2), 2) == (1, 2)
        own.close()
        own = CoreReservation(path)
        assert own.choose((0, 1, 2), 3) == (1, 2, 0)
        with another_run(path, 0, 1, 2, 3) as left:
            assert left == "(3,)"
        own.close()
    own = CoreReservation(path)
    assert own.choose((0, 1, 2), 2) == (0, 1)  # whoever died has no core
    own.close()


def test_a_timing_takes_cores_that_no_run_has_and_keeps_runs_off_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core_locks, "core_file", lambda: tmp_path / "cores")
    monkeypatch.setattr(cores, "usable_cores", lambda: (0, 1, 2))
    with another_run(tmp_path / "cores", 0, 1, 2) as run, core_locks.timing_cores(1) as timed:
        assert (run, timed) == ("(0,)", (1,))
        with another_run(tmp_path / "cores", 0, 1, 2) as later:
            assert later == "(2,)"


def test_where_no_file_can_be_kept_every_core_is_free(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    own = CoreReservation(tmp_path / "file" / "cores")
    assert own.choose((0, 1), 1) == (0,)
    own.close()


@pytest.mark.skipif(len(usable_cores()) < 2, reason="one core cannot be left to another run")
def test_a_worker_is_pinned_beside_another_runs(
    tmp_path: Path, run_one: Callable[..., Record]
) -> None:
    first, second, *_ = usable_cores()
    with another_run(tmp_path / "cores", first):
        record = run_one(make_config("sleep", 0))
    assert record.environment is not None and list(record.environment.affinity) == [second]
    record = run_one(make_config("sleep", 1))
    assert record.environment is not None and list(record.environment.affinity) == [first]
