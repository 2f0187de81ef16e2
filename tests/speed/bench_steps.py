"""The timed cases under pytest-benchmark: `make bench`; they assert nothing, so no test run collects them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from svgpbench.ops import Ops
from svgpbench.plugins import frameworks
from svgpbench.speed.cases import STEPS, build_case, usual_methods
from svgpbench.speed.problems import make_problem

Benchmark = Callable[..., Any]


@pytest.mark.parametrize("problem", ["reg-M100", "bern-M100"])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("method", usual_methods())
@pytest.mark.parametrize("ops", frameworks(), indirect=True)
def test_speed(benchmark: Benchmark, ops: Ops, method: str, step: str, problem: str) -> None:
    case = build_case(ops, make_problem(problem), method, step)
    benchmark.group = f"{problem} {step}"  # type: ignore[attr-defined]
    benchmark.extra_info["steps_per_call"] = STEPS[step]  # type: ignore[attr-defined]
    case.call()
    benchmark(case.call)
