"""Peak memory of a step's process beyond the import of its framework.

Each case has its own process, set up as a worker. The memory of the import is what the process holds
after it. The rest belongs to the step: the framework's start, tracing, compiling, and the calls.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import psutil

from svgpbench.backends import framework_missing, load_backend
from svgpbench.benchmarks.timing.cases import build_case
from svgpbench.benchmarks.timing.problems import make_problem, save_problem
from svgpbench.benchmarks.timing.worker import load_problem
from svgpbench.errors import UserError
from svgpbench.runs.parent_process import end_with
from svgpbench.runs.worker_setup import peak_memory_bytes, pin, worker_environment

CALLS = 5


class StepMemory(NamedTuple):
    """Resident bytes of a step's process."""

    imported: int
    peak: int

    @property
    def growth(self) -> int:
        """Bytes that the step adds to the import."""
        return self.peak - self.imported


def memory_here(
    backend: str, method: str, problem: str, step: str, threads: str, dtype: str, device: str
) -> StepMemory:
    """Measure a step in this process, which must be new. `problem` is a file."""
    name, _, mode = backend.partition(":")
    pin(name, int(threads), [])
    # after `pin`, which imports the framework
    imported = psutil.Process().memory_info().rss
    case = build_case(
        load_backend(name, mode, dtype, device), load_problem(Path(problem)), method, step
    )
    for _ in range(CALLS):
        case.call()
    return StepMemory(imported, peak_memory_bytes())


def step_memory(
    backend: str,
    method: str,
    problem: str,
    step: str,
    threads: int = 1,
    dtype: str = "float64",
    device: str = "cpu",
) -> StepMemory:
    """Measure a step in a fresh process.

    Raises `UserError` for an unknown problem and a missing framework, and `CalledProcessError` if the process
    fails, as for an unknown method or step.
    """
    if missing := framework_missing(backend.partition(":")[0]):
        raise UserError(missing)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "problem.npz")
        save_problem(make_problem(problem), path)
        program = "from svgpbench.benchmarks.timing.memory import main_of_one; main_of_one()"
        where = (backend, method, str(path), step, str(threads), dtype, device)
        done = subprocess.run(
            (sys.executable, "-P", "-c", program, *where),
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | worker_environment(device, threads),
        )
    # the last line: a framework may have printed others before it
    return StepMemory(*json.loads(done.stdout.splitlines()[-1]))


def main_of_one() -> None:
    """Measure the case of the command line and print its memory as JSON."""
    end_with(os.getppid())
    print(json.dumps(memory_here(*sys.argv[1:])))
