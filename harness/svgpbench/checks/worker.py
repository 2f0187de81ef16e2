"""A worker process that checks one backend: it reads cases as JSON and writes arrays as .npz."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from svgpbench.backends import load_backend
from svgpbench.checks.cases import MatrixCase, small_problem
from svgpbench.checks.completeness import FAILED, SOURCE
from svgpbench.checks.evaluate import (
    REFERENCE,
    WITHOUT_AUTODIFF,
    Arrays,
    evaluate,
    groups_of,
    skipped,
)
from svgpbench.checks.identities import IDENTITIES, IdentityResult, identities
from svgpbench.checks.rounding import trajectory
from svgpbench.errors import NoAutodiffError
from svgpbench.ops import Ops
from svgpbench.plugins import BACKENDS, load
from svgpbench.runs.parent_process import end_with
from svgpbench.runs.worker import located_error_line
from svgpbench.runs.worker_setup import pin

Target = tuple[str, str, str]
"""Backend, mode and device."""


def ops_for(backend: str, mode: str, device: str, dtype: str = "float64") -> Ops:
    """Return the backend in a dtype. The reference always computes in float64 on the CPU."""
    if backend == REFERENCE:
        return load_backend(backend, mode)
    return load_backend(backend, mode, dtype, device)


def run_task(task: dict[str, Any]) -> Arrays:
    """Return the arrays of a task.

    Arrays of cases are named `index|name`; identities have their names, trajectories their numbers. Parts
    that the backend does not offer are named `skipped` and hold the reason. A case, identity or trajectory
    that raises is named `failed` and holds the message; the others continue.
    """
    target = (str(task["backend"]), str(task["mode"]), str(task["device"]))
    out: Arrays = {}
    computed_cases: dict[MatrixCase, Arrays] = {}
    for index, fields in task["cases"]:
        arrays = _arrays_of_case(target, MatrixCase(**fields), computed_cases)
        out |= {f"{index}|{name}": array for name, array in arrays.items()}
    # the mode and the device must be there, whatever the dtype
    ops = ops_for(*target, load(BACKENDS, target[0]).capabilities.dtypes[0])
    if why := _refused_dtype(target[0], "float64"):
        names = list(IDENTITIES) if task["identities"] else []
        out |= {f"identity|{name}|skipped": np.array(why) for name in names}
        return out | {
            f"trajectory|{replica}|skipped": np.array(why) for replica in task["replicas"]
        }
    ops = ops_for(*target)
    if task["identities"]:
        for outcome in identities(ops, tuple(task["identities"])):
            name = f"identity|{outcome.name}"
            if isinstance(outcome, IdentityResult):
                out[name] = np.array(outcome.worst)
            else:
                out[f"{name}|{outcome.state}"] = np.array(outcome.why)
    try:
        for replica in task["replicas"]:
            out[f"trajectory|{replica}"] = np.array(trajectory(ops, replica))
    except Exception as error:  # of a backend: what was computed before stays
        if isinstance(error, NoAutodiffError) and not type(ops).capabilities.autodiff:
            out["trajectory|0|skipped"] = np.array(WITHOUT_AUTODIFF)
        else:
            out[f"trajectory|0|{FAILED}"] = np.array(located_error_line(error))
    return out


def _arrays_of_case(
    target: Target, case: MatrixCase, computed_cases: dict[MatrixCase, Arrays]
) -> Arrays:
    """Return the arrays of one case. `computed_cases` caches earlier cases and is updated."""
    if why := _refused_dtype(target[0], case.dtype):
        return skipped(groups_of(case.trajectories), why)
    ops = ops_for(*target, case.dtype)
    computed = replace(case, dtype=ops.dtype)  # the reference computes float32 cases in float64
    if computed not in computed_cases:
        try:
            arrays = evaluate(ops, *case.build(), small_problem(), case.trajectories)
        except Exception as error:  # of a backend or method: other cases continue
            return {FAILED: np.array(located_error_line(error))}
        computed_cases[computed] = arrays | {SOURCE: np.array(ops.name)}
    return computed_cases[computed]


def _refused_dtype(backend: str, dtype: str) -> str:
    """Return the reason why a backend cannot serve a dtype, or an empty string.

    The reference serves every dtype.
    """
    offered = load(BACKENDS, backend).capabilities.dtypes
    if backend == REFERENCE or dtype in offered:
        return ""
    return f"it offers {', '.join(offered)} alone"


def main() -> None:
    """Run `python -m svgpbench.checks.worker OUT.npz` with the task on standard input."""
    # a check that is killed must not leave its processes computing
    end_with(os.getppid())
    task = json.load(sys.stdin)
    pin(task["backend"], 1, [])
    np.savez(Path(sys.argv[1]), **run_task(task))  # type: ignore[arg-type, unused-ignore]


if __name__ == "__main__":
    main()
