"""Equivalence check before timing: a case is timed only if its figure agrees with NumPy's."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

from svgpbench.backends import load_backend
from svgpbench.benchmarks.timing.cases import build_case
from svgpbench.benchmarks.timing.problems import make_problem
from svgpbench.plugins import METHODS, OWN_PACKAGES, code_of

TOLERANCES = {"float64": 1e-8, "float32": 1e-5}
"""Largest relative difference of a figure from NumPy's in float64, by the dtype of the case."""


@functools.cache
def reference(problem: str, method: str, step: str) -> float:
    """Return the figure of the case on the NumPy backend."""
    case = build_case(load_backend("numpy"), make_problem(problem), method, step)
    return case.figure(case.call())


def reference_elsewhere(problem: str, method: str, step: str) -> float:
    """Return the figure of `reference`, computed in another process.

    The memory of this process is measured. The figure is cached in a file of the current folder, for this
    form of the code alone.
    """
    cache_file = Path(f"{problem} {method} {step} {code_digest(method)}.json")
    if not cache_file.exists():
        command = (sys.executable, __file__, problem, method, step)
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        cache_file.write_text(done.stdout, encoding="utf-8")
    return float(json.loads(cache_file.read_text(encoding="utf-8")))


@functools.cache
def code_digest(method: str) -> str:
    """Return a digest of all code of svgpbench and its backends, and of a plugin's method."""
    hashed = hashlib.sha256(code_of(METHODS, method.partition(" ")[0]).encode())
    for package in sorted(OWN_PACKAGES):
        spec = importlib.util.find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            for path in sorted(Path(folder).rglob("*.py")):
                hashed.update(path.read_bytes())
    return hashed.hexdigest()[:16]


def why_not_timed(figure: float, expected: float, dtype: str) -> str:
    """Return the reason not to time a case with this figure, or "" if it agrees with `expected`."""
    difference = abs(figure - expected) / abs(expected)
    # a NaN is not <= the tolerance, and so is refused
    if difference <= TOLERANCES[dtype]:
        return ""
    return (
        f"not equivalent: figure {figure:.12g}, NumPy's {expected:.12g}, "
        f"{difference:.1e} apart (tolerance {TOLERANCES[dtype]:g})"
    )


if __name__ == "__main__":
    print(json.dumps(reference(*sys.argv[1:])))
