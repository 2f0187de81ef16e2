"""A timed process as its parent holds it: what it is started with, and what is metered while it answers."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from svgpbench.benchmarks.timing.compare import run_speed
from svgpbench.benchmarks.timing.meter import Load
from svgpbench.benchmarks.timing.peers.libraries import GPFLOW
from svgpbench.benchmarks.timing.process import TimedProcess
from svgpbench.environment import gpu_model


def test_a_process_of_a_backend_has_its_threads_from_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[Any] = []
    monkeypatch.setattr(TimedProcess, "__init__", lambda self, *how: told.append(how))
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    TimedProcess.of_backend("torch:compile", "cpu", 3, (2, 5, 7))
    ((name, command, environment, threads, cores),) = told
    assert (name, threads, cores) == ("torch:compile", 3, (2, 5, 7))
    assert command[-4:] == ("--backend", "torch:compile", "--device", "cpu")
    assert environment["OMP_NUM_THREADS"] == "3"


@pytest.mark.parametrize(("device", "hidden"), [("cpu", True), ("cuda", False)])
def test_a_process_sees_an_accelerator_where_it_is_to_use_it(
    monkeypatch: pytest.MonkeyPatch, device: str, hidden: bool
) -> None:
    told: list[Any] = []
    monkeypatch.setattr(TimedProcess, "__init__", lambda self, *how: told.append(how))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    TimedProcess.of_backend("jax", device, 1, ())
    TimedProcess.of_script("gpflow", Path("/of/gpflow"), GPFLOW.script, device, 1)
    for _, _, environment, _, _ in told:
        assert environment["CUDA_VISIBLE_DEVICES"] == ("" if hidden else "0")
        assert environment["JAX_ENABLE_COMPILATION_CACHE"] == "0"  # so that first calls compile


def test_others_are_metered_from_the_request_to_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    process, now = TimedProcess.__new__(TimedProcess), [0.0]

    def ask(self: TimedProcess, request: dict[str, Any], limit_s: float) -> dict[str, Any]:
        now[0] += 4.0
        return request

    monkeypatch.setattr(TimedProcess, "ask", ask)
    # of each second, the process has a quarter and others have a half
    process._meter = SimpleNamespace(read=lambda: (now[0], 0.75 * now[0], 0.25 * now[0]))
    assert process.ask_metered({"do": "round"}) == ({"do": "round"}, Load(4.0, 1.0, 2.0))


def test_a_record_names_the_gpu_of_the_timed_processes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho planted GPU, 1.0\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    gpu_model.cache_clear()
    try:
        for device, name in (("cuda", "planted GPU, 1.0"), ("cpu", None)):
            report = run_speed(["tiny"], ["numpy"], ["e_step"], repeats=1, device=device)
            found = {source: each["gpu"] for source, each in report.environment.items()}
            assert found == {"parent": name, "numpy": name}
    finally:
        gpu_model.cache_clear()
