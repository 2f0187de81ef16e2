"""Which cores a run may use, and which of them each job gets: one a physical core, none shared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from svgpbench.errors import UserError
from svgpbench.runs import cores
from svgpbench.runs.cores import cpu_quota, job_cores, usable_cores

Machine = Callable[..., None]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with these logical cores allowed, siblings in pairs, and a limit in a container."""

    def make(
        *allowed: int, siblings: dict[int, str] | None = None, quota: int | None = None
    ) -> None:
        pairs = siblings or {}
        monkeypatch.setattr(cores, "affinity", lambda: allowed)
        monkeypatch.setattr(cores, "_siblings", lambda core: pairs.get(core, str(core)))
        monkeypatch.setattr(cores, "cpu_quota", lambda path: quota)

    return make


def test_of_two_logical_cores_on_one_physical_core_the_first_is_used(machine: Machine) -> None:
    machine(0, 1, 2, 3, siblings={0: "0,2", 2: "0,2", 1: "1,3", 3: "1,3"})
    assert usable_cores() == (0, 1)
    machine(2, 3, 5, siblings={2: "2-3", 3: "2-3", 5: "4-5"})
    assert usable_cores() == (2, 5)  # among those that the process may use


def test_a_quota_takes_cores_away_but_never_the_last(machine: Machine) -> None:
    machine(0, 1, 2, 3, quota=3)
    assert usable_cores() == (0, 1, 2)
    machine(0, 1, 2, 3, quota=0)
    assert usable_cores() == (0,)
    machine(0, 1, quota=8)
    assert usable_cores() == (0, 1)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("250000 100000\n", 2),
        ("399999 100000", 3),
        ("400000 100000", 4),
        ("50000 100000", 0),
        ("max 100000\n", None),
        ("", None),
    ],
)
def test_a_quota_is_in_whole_cores_rounded_down(
    tmp_path: Path, text: str, count: int | None
) -> None:
    (tmp_path / "cpu.max").write_text(text)
    assert cpu_quota(tmp_path / "cpu.max") == count
    assert cpu_quota(tmp_path / "absent") is None


def test_each_job_has_its_threads_of_cores_to_itself(machine: Machine) -> None:
    machine(0, 2, 4, 6, 8)
    assert job_cores(None, 1) == [(0,), (2,), (4,), (6,), (8,)]
    assert job_cores(None, 2) == [(0, 2), (4, 6)]  # one core is left over
    assert job_cores(1, 2) == [(0, 2)]
    assert job_cores(2, 1) == [(0,), (2,)]
    assert job_cores(None, 5) == [(0, 2, 4, 6, 8)]


@pytest.mark.parametrize(
    ("jobs", "threads", "message"),
    [
        (3, 2, "--jobs 3 of 2 threads need 6 cores, this machine has 5: at most --jobs 2"),
        (None, 6, "a cell needs 6 threads, this machine has 5 cores"),
        (0, 1, "--jobs 0: at least 1"),
        (-1, 1, "--jobs -1: at least 1"),
    ],
)
def test_what_does_not_fit_is_refused(
    machine: Machine, jobs: int | None, threads: int, message: str
) -> None:
    machine(0, 2, 4, 6, 8)
    with pytest.raises(UserError, match=message):
        job_cores(jobs, threads)
