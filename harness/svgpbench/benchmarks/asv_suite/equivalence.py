"""A case is timed where its figure is NumPy's: a fast step that computes something else is no fast step."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path

from svgpbench.benchmarks.timing.cases import build_case
from svgpbench.benchmarks.timing.problems import make_problem
from svgpbench.plugins import load_backend

TOLERANCES = {"float64": 1e-8, "float32": 1e-5}
"""Largest relative difference of a figure from that of NumPy in float64."""


@functools.cache
def reference(problem: str, method: str, step: str) -> float:
    """The figure of the case on NumPy."""
    case = build_case(load_backend("numpy"), make_problem(problem), method, step)
    return case.figure(case.call())


def reference_elsewhere(problem: str, method: str, step: str) -> float:
    """The same from a process of its own, since this one's memory is measured; kept in this folder."""
    kept = Path(f"{problem} {method} {step}.json")
    if not kept.exists():
        command = (sys.executable, __file__, problem, method, step)
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        kept.write_text(done.stdout, encoding="utf-8")
    return float(json.loads(kept.read_text(encoding="utf-8")))


def why_not_timed(figure: float, expected: float, dtype: str) -> str:
    """Why a case with this figure is not to be timed; empty where it is NumPy's."""
    difference = abs(figure - expected) / abs(expected)
    if difference <= TOLERANCES[dtype]:
        return ""
    return (
        f"not equivalent: figure {figure:.12g}, NumPy's {expected:.12g}, "
        f"{difference:.1e} apart (tolerance {TOLERANCES[dtype]:g})"
    )


if __name__ == "__main__":
    print(json.dumps(reference(*sys.argv[1:])))
