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

from svgpbench.plugins import FRAMEWORK_EXTRAS


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

    The same for every backend: a third party's may stand on any of the frameworks.
    """
    count = str(threads)
    variables = {
        "OMP_NUM_THREADS": count,
        "OPENBLAS_NUM_THREADS": count,
        "MKL_NUM_THREADS": count,
        "BLIS_NUM_THREADS": count,
        "NUMEXPR_NUM_THREADS": count,
        "VECLIB_MAXIMUM_THREADS": count,
        "TF_NUM_INTRAOP_THREADS": count,
        "TF_NUM_INTEROP_THREADS": count,
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "JAX_ENABLE_X64": "1",
        "JAX_PLATFORMS": device,
        "JAX_DEFAULT_MATMUL_PRECISION": "highest",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "NVIDIA_TF32_OVERRIDE": "0",  # float32 means float32 on every framework
        "PYTHONHASHSEED": "0",  # frameworks build graphs from sets
    }
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
    framework = load_framework(backend)
    if backend == "torch" and framework is not None:
        framework.set_num_threads(threads)
        framework.set_num_interop_threads(threads)
    if backend == "tensorflow" and framework is not None:
        framework.config.threading.set_intra_op_parallelism_threads(threads)
        framework.config.threading.set_inter_op_parallelism_threads(threads)
    threadpoolctl.threadpool_limits(limits=threads)


def load_framework(backend: str) -> Any | None:
    """Import the framework of a built-in backend; None where there is none to import."""
    if backend not in FRAMEWORK_EXTRAS:
        return None
    try:
        return importlib.import_module(backend)
    except Exception:  # a broken framework is the cell's failure: its own import says so again
        return None
