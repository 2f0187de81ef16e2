"""Programs that one worker compiled and later ones load: when, where, and with the same numbers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from small_cell import config

from svgpbench.backends import framework_missing
from svgpbench.config import BackendConfig
from svgpbench.experiments.cell import identify
from svgpbench.results.records import Record
from svgpbench.runs.pool import run_cells
from svgpbench.runs.worker_setup import compiled_programs

JAX_FOLDER = "JAX_COMPILATION_CACHE_DIR"


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for name in os.environ:
        if name.startswith(("JAX_COMPILATION", "JAX_PERSISTENT")):  # those of the test suite
            monkeypatch.delenv(name)
    monkeypatch.setenv("SVGPBENCH_COMPILED", str(tmp_path / "compiled"))
    return tmp_path / "compiled"


def test_processes_of_other_threads_or_devices_have_folders_of_their_own(folder: Path) -> None:
    kinds = [("cpu", 1), ("cpu", 2), ("cuda", 1)]
    folders = {Path(compiled_programs(*kind, shared=True)[JAX_FOLDER]) for kind in kinds}
    assert len(folders) == 3
    assert {each.parent for each in folders} == {folder}


def test_a_folder_may_be_named_below_the_home_folder(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SVGPBENCH_COMPILED", "~/compiled")
    assert Path(compiled_programs("cpu", 1, shared=True)[JAX_FOLDER]).parent == folder


def test_processors_of_other_instructions_have_folders_of_their_own(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = compiled_programs("cpu", 1, shared=True)
    monkeypatch.setattr("svgpbench.runs.worker_setup.cpu_instructions", lambda: "sse2")
    assert compiled_programs("cpu", 1, shared=True)[JAX_FOLDER] != here[JAX_FOLDER]


def test_a_folder_of_the_user_stays_and_an_empty_name_keeps_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    off = {"JAX_ENABLE_COMPILATION_CACHE": "0"}
    assert compiled_programs("cpu", 1, shared=False) == off
    monkeypatch.setenv(JAX_FOLDER, "elsewhere")
    assert compiled_programs("cpu", 1, shared=True) == {}
    assert compiled_programs("cpu", 1, shared=False) == off
    monkeypatch.setenv("SVGPBENCH_COMPILED", "")
    assert compiled_programs("cpu", 1, shared=True) == off


@pytest.mark.skipif(framework_missing("jax") is not None, reason="needs jax")
def test_a_later_run_loads_the_programs_and_computes_the_same_bits(
    folder: Path, tmp_path: Path
) -> None:
    def ran(results: str, **changes: Any) -> Record:
        cell = config(backend=BackendConfig(name="jax"), **changes)
        (record,) = run_cells([cell], results=tmp_path / results, jobs=1).records
        assert record.status == "ok" and record.cell_id == identify(cell).cell_id
        return record

    def last_uses() -> dict[str, bytes]:
        """Return the time of the last use of each program, as JAX writes it."""
        return {path.name: path.read_bytes() for path in folder.rglob("jit*-atime")}

    ran("measured", measures=True)
    assert last_uses() == {}
    first = ran("first")
    compiled = last_uses()
    assert compiled
    again = ran("again")
    loaded = last_uses()
    # JAX keeps what takes long to compile, so a later run may add a program
    assert all(loaded[name] != before for name, before in compiled.items())
    for record in (first, again):
        record.trace.pop("seconds")
    assert first.trace == again.trace
