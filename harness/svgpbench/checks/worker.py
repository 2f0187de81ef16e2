"""One backend's share of the check in a process of its own: cases in as JSON, arrays out as .npz."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from svgpbench.checks.cases import Case, small_problem
from svgpbench.checks.completeness import SOURCE
from svgpbench.checks.evaluate import REFERENCE, Arrays, evaluate
from svgpbench.checks.identities import identities
from svgpbench.checks.rounding import trajectory
from svgpbench.ops import Ops
from svgpbench.plugins import load_backend
from svgpbench.runner.worker_setup import pin


def ops_for(backend: str, mode: str, device: str, dtype: str = "float64") -> Ops:
    """The backend in a dtype; the reference stays in float64 on the CPU."""
    if backend == REFERENCE:
        return load_backend(backend, mode)
    return load_backend(backend, mode, dtype, device)


def run_task(task: dict[str, Any]) -> Arrays:
    """The arrays of a task: `cases` under `index|name`, identities and trajectories by number."""
    place = (str(task["backend"]), str(task["mode"]), str(task["device"]))
    home = ops_for(*place)
    out: Arrays = {}
    problem, known = small_problem(), dict[Case, Arrays]()
    for index, fields in task["cases"]:
        case = Case(**fields)
        ops = ops_for(*place, case.dtype)
        computed = replace(case, dtype=ops.dtype)  # the reference's in float32 is that in float64
        if computed not in known:
            known[computed] = evaluate(ops, *case.build(), problem, case.trajectories)
        out |= {f"{index}|{name}": array for name, array in known[computed].items()}
        out[f"{index}|{SOURCE}"] = np.array(ops.name)
    if task["identities"]:
        for identity in identities(home, tuple(task["identities"])):
            out[f"identity|{identity.number}"] = np.array(identity.worst)
    for replica in task["replicas"]:
        out[f"trajectory|{replica}"] = np.array(trajectory(home, replica))
    return out


def main() -> None:
    """`python -m svgpbench.checks.worker OUT.npz` with the task on standard input."""
    task = json.load(sys.stdin)
    pin(task["backend"], 1, [])
    np.savez(Path(sys.argv[1]), **run_task(task))  # type: ignore[arg-type, unused-ignore]


if __name__ == "__main__":
    main()
