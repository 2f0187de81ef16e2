"""How many processes of pytest `--numprocesses auto` starts: what the cores and the memory allow."""

from __future__ import annotations

from types import SimpleNamespace

import psutil
import pytest

GIB = 2**30
pytest.importorskip("xdist")


@pytest.mark.parametrize(
    ("cores", "available", "workers"),
    [(16, 7.9, 3), (16, 64.0, 16), (2, 64.0, 2), (16, 1.0, 1), (1, 1.0, 1)],
)
def test_a_worker_has_a_core_and_two_gigabytes(
    monkeypatch: pytest.MonkeyPatch,
    pytestconfig: pytest.Config,
    cores: int,
    available: float,
    workers: int,
) -> None:
    monkeypatch.delenv("PYTEST_XDIST_AUTO_NUM_WORKERS", raising=False)
    memory = SimpleNamespace(available=int(available * GIB))
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    monkeypatch.setattr("svgpbench.runs.cores.affinity", lambda: tuple(range(cores)))
    monkeypatch.setattr("svgpbench.runs.cores._siblings", str)
    monkeypatch.setattr("svgpbench.runs.cores.cpu_quota", lambda _: None)
    assert pytestconfig.hook.pytest_xdist_auto_num_workers(config=pytestconfig) == workers


def test_a_number_of_one_s_own_is_taken(
    monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    monkeypatch.setenv("PYTEST_XDIST_AUTO_NUM_WORKERS", "7")
    assert pytestconfig.hook.pytest_xdist_auto_num_workers(config=pytestconfig) == 7
