"""How a worker's process is set up before it runs: variables, cores, threads; and what it took at most."""

from __future__ import annotations

import importlib
import os
import resource
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import threadpoolctl

from svgpbench.importing import FRAMEWORK_LIMIT_S, limit_s, within
from svgpbench.plugins import FRAMEWORKS, framework_of, frameworks, is_ours


def peak_memory_bytes() -> int:
    """Peak resident memory of this process since it started."""
    try:
        # not getrusage: on Linux its peak starts at that of the parent that launched the process
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        status = ""
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def worker_environment(device: str, threads: int) -> dict[str, str]:
    """Environment variables of a worker, to be set before its interpreter starts.

    The same for every backend, as one may stand on another's framework.
    """
    count = str(threads)
    variables = {
        "OMP_NUM_THREADS": count,
        "OPENBLAS_NUM_THREADS": count,
        "MKL_NUM_THREADS": count,
        "BLIS_NUM_THREADS": count,
        "NUMEXPR_NUM_THREADS": count,
        "VECLIB_MAXIMUM_THREADS": count,
        "NVIDIA_TF32_OVERRIDE": "0",  # float32 means float32 on every framework
        "PYTHONHASHSEED": "0",  # frameworks build graphs from sets
        # glibc gives arrays of megabytes back to the system, and each operation faults them in again
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    }
    for framework in frameworks().values():
        variables |= framework.environment(device, threads)
    if device == "cpu":
        variables["CUDA_VISIBLE_DEVICES"] = ""
    return variables


def pin(backend: str, threads: int, cores: Sequence[int]) -> None:
    """Keep this process on `cores` and its thread pools at `threads`.

    Loads the backend's framework. Call before its first work: XLA takes the size of its CPU pool
    from the affinity.
    """
    if hasattr(os, "sched_setaffinity") and cores:
        # a call reaches one thread, and NumPy's BLAS has started some already
        for thread in os.listdir("/proc/self/task"):
            os.sched_setaffinity(int(thread), cores)
    framework, module = framework_of(backend), load_framework(backend)
    if framework is not None and module is not None:
        framework.pin(module, threads)
    threadpoolctl.threadpool_limits(limits=threads)


def load_framework(backend: str) -> Any | None:
    """Import what a backend stands on; None where there is nothing, or nothing that can be imported."""
    framework = framework_of(backend)
    if framework is None:
        return None

    def import_framework(module: str) -> Any:
        if is_ours(FRAMEWORKS, backend):
            return importlib.import_module(module)
        limit = limit_s(FRAMEWORK_LIMIT_S)
        return within(module, lambda: importlib.import_module(module), limit)

    try:
        return import_framework(framework.module)
    except Exception:  # a broken framework is the cell's failure: its own import says so again
        return None
