"""A timed process as its parent holds it: what it is started with, and what is metered while it answers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from svgpbench.speed.meter import Load
from svgpbench.speed.process import TimedProcess


def test_a_process_of_a_backend_has_its_threads_from_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[Any] = []
    monkeypatch.setattr(TimedProcess, "__init__", lambda self, *how: told.append(how))
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    TimedProcess.of_backend("torch:compile", 3, (2, 5, 7))
    ((name, command, environment, threads, cores),) = told
    assert (name, command[-1], threads, cores) == ("torch:compile", "torch:compile", 3, (2, 5, 7))
    assert environment["OMP_NUM_THREADS"] == "3"


def test_others_are_metered_from_the_request_to_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    process, now = TimedProcess.__new__(TimedProcess), [0.0]

    def ask(self: TimedProcess, request: dict[str, Any]) -> dict[str, Any]:
        now[0] += 4.0
        return request

    monkeypatch.setattr(TimedProcess, "ask", ask)
    # of each second, the process has a quarter and others have a half
    process._meter = SimpleNamespace(read=lambda: (now[0], 0.75 * now[0], 0.25 * now[0]))
    assert process.ask_metered({"do": "round"}) == ({"do": "round"}, Load(4.0, 1.0, 2.0))
