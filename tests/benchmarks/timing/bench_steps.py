"""The timed cases under pytest-benchmark: `make bench`. No test run collects them.

The axes are those of the asv suite; a case whose figure is not NumPy's fails and is not timed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from svgpbench.backends import load_backend
from svgpbench.benchmarks.asv_suite.axes import axes
from svgpbench.benchmarks.asv_suite.equivalence import reference, why_not_timed
from svgpbench.benchmarks.timing.cases import STEPS, USUAL_STEPS, build_case
from svgpbench.benchmarks.timing.problems import make_problem
from svgpbench.errors import UserError

Benchmark = Callable[..., Any]
AXES = axes()


@pytest.mark.parametrize("device", AXES["device"])
@pytest.mark.parametrize("dtype", AXES["dtype"])
@pytest.mark.parametrize("problem", AXES["problem"])
@pytest.mark.parametrize("step", USUAL_STEPS)
@pytest.mark.parametrize("method", AXES["method"])
@pytest.mark.parametrize("backend", AXES["backend"])
def test_speed(
    benchmark: Benchmark,
    backend: str,
    method: str,
    step: str,
    problem: str,
    dtype: str,
    device: str,
) -> None:
    name, _, mode = backend.partition(":")
    try:
        ops = load_backend(name, mode, dtype, device)
        case = build_case(ops, make_problem(problem), method, step)
    except UserError as error:
        pytest.skip(str(error))
    benchmark.group = f"{problem} {step}"  # type: ignore[attr-defined]
    benchmark.extra_info["steps_per_call"] = STEPS[step]  # type: ignore[attr-defined]
    figure = case.figure(case.call())
    assert not why_not_timed(figure, reference(problem, method, step), dtype)
    benchmark(case.call)
