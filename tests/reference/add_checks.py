"""Add checks, tolerances and versions to every file that has answers, and its digest to `digests.txt`.

    PYTHONPATH=reference:harness:backends:datasets python tests/reference/add_checks.py

A file that has its checks is left as it is, and so is every line of `digests.txt`.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import check_numpy
import numpy as np

import svgp_reference
from svgp_reference.adapter import load_adapter
from svgp_reference.comparison import Results, relative_difference
from svgp_reference.problem import FOLDER, Problem

HERE = Path(__file__).parent
DIGESTS = HERE / "digests.txt"

METHOD = (
    "mpmath from the definitions: dense algebra in the coordinates of u; expectations in closed form or by "
    "the trapezoidal rule, whose step is halved once as a check; gradients by central differences; optimum "
    "by the collapsed bound"
)
PRECISION = "80 digits, integrals 42; printed: 30 digits, and the nearest float64"
NODES = (20, 50, 100, 200, 300)
MARGIN = 100.0
"""Other programs may be so many times as far from the answer as the second program is."""

LEAST = {"float64": {"": 1e-10, "gradient": 1e-9}, "float32": {"": 1e-4, "gradient": 1e-3}}
LARGEST = 0.1
MOST_CONDITION = 2.0**23
"""Condition number of K(Z, Z) from which float32 has no digits."""


def tolerances(differences: dict[str, float] | None, precision: str) -> dict[str, float] | None:
    """Return a power of ten for each answer: MARGIN times the difference, within limits."""
    if differences is None:
        return None
    rounded = {}
    for answer, difference in differences.items():
        kind = "gradient" if answer.startswith("gradient") else ""
        wanted = max(MARGIN * difference, LEAST[precision][kind])
        rounded[answer] = min(float(f"1e{math.ceil(math.log10(wanted) - 1e-9)}"), LARGEST)
    return rounded


def enough_nodes(problem: Problem, tolerance: dict[str, float]) -> int:
    """Return the least number of Gauss–Hermite nodes with which a tenth of the tolerance is met."""
    if problem.likelihood == "gaussian":
        return 0
    for nodes in NODES:
        found = check_numpy.differences(problem, nodes=nodes)
        if found is not None and all(x <= 0.1 * tolerance[k] for k, x in found.items()):
            return nodes
    raise ArithmeticError(f"{problem.name}: {NODES[-1]} nodes are too few")


def differences_of_svgpbench(problem: Problem) -> float:
    """Return the largest relative difference of svgpbench's NumPy backend."""
    results = Results(load_adapter(HERE / "adapters" / "svgpbench_adapter.py"))
    return max(
        relative_difference(results.result(problem, answer), expected)
        for answer, expected in problem.answers.items()
    )


def with_checks(problem: Problem, info: dict[str, Any]) -> dict[str, Any]:
    """Return the complete `info` of a problem."""
    exact = check_numpy.differences(problem)
    assert exact is not None, "float64 must have a Cholesky factor"
    tolerance = tolerances(exact, "float64")
    assert tolerance is not None
    info = info | {"gauss_hermite_nodes": enough_nodes(problem, tolerance)}
    ours = differences_of_svgpbench(Problem(**(vars(problem) | {"info": info})))
    has_float32 = info["condition_number"] < MOST_CONDITION
    single = check_numpy.differences(problem, np.float32) if has_float32 else None
    return {
        "name": info["name"],
        "purpose": info["purpose"],
        "method": METHOD,
        "precision": PRECISION,
        "condition_number": info["condition_number"],
        "smallest_beta": info["smallest_beta"],
        "gauss_hermite_nodes": info["gauss_hermite_nodes"],
        "checks_made": [
            {
                "program": "tests/reference/check_numpy.py",
                "form": "float64; whitened, triangular solves, Gauss-Hermite, adjoints, dual steps",
                "largest_difference": float(f"{max(exact.values()):.1e}"),
            },
            {
                "program": "svgpbench, NumPy backend",
                "form": "float64; q-SVGP, natural gradients in closed form, gradients by autodiff",
                "largest_difference": float(f"{ours:.1e}"),
            },
        ],
        "tolerance": {"float64": tolerance, "float32": tolerances(single, "float32")},
        "versions": {
            "python": platform.python_version(),
            **{package: version(package) for package in ("mpmath", "numpy", "scipy", "svgpbench")},
        },
        "added": datetime.date.today().isoformat(),
    }


def digest(name: str) -> str:
    """Return the SHA-256 of a problem's file."""
    return hashlib.sha256((FOLDER / f"{name}.json").read_bytes()).hexdigest()


def main() -> None:
    """Add checks to the files that have answers and no tolerance."""
    for name in svgp_reference.names():
        path = Path(str(FOLDER / f"{name}.json"))
        file = json.loads(path.read_text(encoding="utf-8"))
        if "answers" not in file or "tolerance" in file["info"]:
            continue
        info = with_checks(svgp_reference.load(name), file["info"])
        file = {"info": info, "problem": file["problem"], "answers": file["answers"]}
        path.write_text(json.dumps(file, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        with DIGESTS.open("a", encoding="utf-8") as lines:
            lines.write(f"{digest(name)}  {name}\n")
        checks = [check["largest_difference"] for check in info["checks_made"]]
        print(f"{name}: {checks}, {info['gauss_hermite_nodes']} nodes", flush=True)


if __name__ == "__main__":
    main()
