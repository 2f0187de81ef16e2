"""Set-up of a worker process: environment variables, cores and threads; and its peak memory."""

from __future__ import annotations

import hashlib
import importlib
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import threadpoolctl
from platformdirs import user_cache_path

from svgpbench.backends import framework_of
from svgpbench.config import BackendConfig
from svgpbench.environment import cpu_instructions
from svgpbench.errors import UserError
from svgpbench.ops import Ops
from svgpbench.plugins import frameworks

COMPILED_VARIABLE = "SVGPBENCH_COMPILED"
COMPILED_FOLDER = user_cache_path("svgpbench", appauthor=False) / "compiled"


def peak_memory_bytes() -> int:
    """Return the peak resident memory of this process in bytes."""
    try:
        # not getrusage: on Linux, its peak includes the peak of the parent that launched the process
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        status = ""
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


_ASK = """
import sys
from svgpbench.errors import UserError
from svgpbench.backends import new_backend
try:
    new_backend(*sys.argv[1:])
except UserError as error:
    print(error)
"""


def refuse_absent_devices(backends: Iterable[BackendConfig]) -> None:
    """Raise `UserError` if a backend does not find its device on this machine.

    Each backend that is not on the CPU is asked in a process of its own. Other errors are left to the worker.
    """
    for b in dict.fromkeys(b for b in backends if b.device != "cpu"):
        answer = subprocess.run(
            [sys.executable, "-P", "-c", _ASK, b.name, b.mode, b.dtype, b.device],
            capture_output=True,
            text=True,
            env=os.environ | worker_environment(b.device, 1),
            check=False,
        )
        if answer.returncode == 0 and (message := answer.stdout.strip()):
            # the last line: a framework may print lines of its own before it
            raise UserError(message.splitlines()[-1])


def worker_environment(device: str, threads: int) -> dict[str, str]:
    """Return a worker's environment variables, which must be set before its interpreter starts.

    They are the same for every backend, since a backend may use another's framework.
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
        # JAX and TensorFlow would else compute on a GPU that they find
        variables["CUDA_VISIBLE_DEVICES"] = ""
    return variables


def compiled_programs(device: str, threads: int, *, shared: bool) -> dict[str, str]:
    """Return environment variables that make workers share compiled programs, or make each compile its own.

    The programs lie in the user's cache, in one folder per framework, processor, device and number of
    threads. `SVGPBENCH_COMPILED` names another place; if it is empty, nothing is shared. If the user has set
    a framework's own variables for this, they stay.
    """
    folder = Path(os.environ.get(COMPILED_VARIABLE, COMPILED_FOLDER)).expanduser()
    # programs have this processor's instructions, and machines may share a home folder
    kind = hashlib.sha256(f"{cpu_instructions()} {device} {threads}".encode()).hexdigest()[:16]
    variables: dict[str, str] = {}
    for name, framework in frameworks().items():
        sharing = framework.cache(str(folder / f"{name}-{kind}"))
        if not shared or os.environ.get(COMPILED_VARIABLE) == "":
            variables |= framework.cache("")
        elif not sharing.keys() & os.environ.keys():
            variables |= sharing
    return variables


def pin(backend: str, threads: int, cores: Sequence[int]) -> None:
    """Pin this process to `cores`, and limit its thread pools to `threads`.

    Loads the backend's framework. Call it before any computation: XLA sizes its CPU pool by the affinity.
    """
    if hasattr(os, "sched_setaffinity") and cores:
        # a call affects one thread, and NumPy's BLAS has started some
        for thread in os.listdir("/proc/self/task"):
            os.sched_setaffinity(int(thread), cores)
    framework, module = framework_of(backend), load_framework(backend)
    if framework is not None and module is not None:
        framework.pin(module, threads)
    threadpoolctl.threadpool_limits(framework.blas_threads(threads) if framework else threads)


def compilations(ops: Ops, functions: Sequence[Callable[..., Any]]) -> int:
    """Return the programs compiled so far for functions of `ops.jit`; 0 if the backend compiles none."""
    framework = framework_of(ops.name)
    return framework.compilations(load_framework(ops.name), functions) if framework else 0


def forget_programs(ops: Ops) -> None:
    """Make the backend compile every function anew, as in a new process, if functions share programs."""
    if (framework := framework_of(ops.name)) is not None:
        framework.forget(load_framework(ops.name))


def load_framework(backend: str) -> Any | None:
    """Import the framework of a backend; None if it has none, or if the import fails."""
    framework = framework_of(backend)
    if framework is None:
        return None
    try:
        return importlib.import_module(framework.module)
    except Exception:  # the cell imports it again and records the failure
        return None
