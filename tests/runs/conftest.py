from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from svgpbench.config import CellConfig
from svgpbench.results.records import Record
from svgpbench.runs import pool
from svgpbench.runs.events import Summary
from svgpbench.runs.pool import run_cells


@pytest.fixture(autouse=True)
def workers_find_the_fake_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    here = str(Path(__file__).parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]))
    monkeypatch.syspath_prepend(here)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Summary]:
    """`run_cells` with the fake cells, which need no device, one job, into a temporary folder."""
    monkeypatch.setattr(pool, "refuse_absent_devices", lambda backends: None)

    def call(*cells: CellConfig, **options: object) -> Summary:
        settings = {"results": tmp_path / "results", "jobs": 1, "target": "fake_cells"} | options
        return run_cells(cells, **settings)  # type: ignore[arg-type]

    return call


@pytest.fixture
def run_one(run: Callable[..., Summary]) -> Callable[..., Record]:
    def call(cell: CellConfig, **options: object) -> Record:
        (record,) = run(cell, **options).records
        return record

    return call
