"""What a record says of where its cell ran, and how a worker's process is set up before it runs.

Nothing here imports a framework at module level; `pin` imports the worker's own one.
"""

from __future__ import annotations

import functools
import importlib
import os
import platform
import resource
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil
import threadpoolctl

from svgpbench.config import Strict
from svgpbench.plugins import BACKENDS, DATASETS, FRAMEWORK_EXTRAS, METHODS, plugins

PACKAGES = (
    "svgpbench",
    "numpy",
    "scipy",
    "jax",
    "jaxlib",
    "torch",
    "tensorflow",
    "tensorflow-cpu",  # the same module under another distribution's name
)


class ThreadPool(Strict):
    """A BLAS or OpenMP library that the process has loaded, and how many threads it uses."""

    api: str
    name: str
    version: str | None
    threads: int


class Environment(Strict):
    """Machine, versions and thread settings of the process that ran a cell."""

    python: str
    system: str
    cpu: str
    cores: int  # logical
    memory_bytes: int
    gpu: str | None
    versions: dict[str, str]
    thread_pools: tuple[ThreadPool, ...]
    commit: str | None  # of the source tree; None where it is not a checkout
    dirty: bool | None
    threads: int
    affinity: tuple[int, ...] | None  # None where the OS has none


def describe(threads: int, device: str = "cpu") -> Environment:
    """The environment of this process; complete once its libraries are loaded."""
    commit, dirty = source_revision(Path(__file__).parent)
    return Environment(
        python=platform.python_version(),
        system=platform.platform(),
        cpu=cpu_model(),
        cores=os.cpu_count() or 1,
        memory_bytes=psutil.virtual_memory().total,
        gpu=gpu_model() if device == "cuda" else None,
        versions=installed_versions(),
        thread_pools=thread_pools(),
        commit=commit,
        dirty=dirty,
        threads=threads,
        affinity=affinity(),
    )


def thread_pools() -> tuple[ThreadPool, ...]:
    """Every BLAS and OpenMP library loaded so far."""
    return tuple(
        ThreadPool(
            api=pool["user_api"],
            name=pool["internal_api"],
            version=pool["version"],
            threads=pool["num_threads"],
        )
        for pool in threadpoolctl.threadpool_info()
    )


@functools.cache
def installed_versions() -> dict[str, str]:
    """Versions of the packages that matter and of whatever installed a plugin; imports none."""
    found = {
        point.dist.name: point.dist.version
        for group in (BACKENDS, METHODS, DATASETS)
        for point in plugins(group).values()
        if point.dist is not None
    }
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return dict(sorted(found.items()))


def software() -> dict[str, object]:
    """What, beside a cell, decides the bits that it gives: versions, sources, processor."""
    commit, dirty = source_revision(Path(__file__).parent)
    return {"versions": installed_versions(), "source": [commit, dirty], "cpu": cpu_model()}


@functools.cache
def cpu_model() -> str:
    """The processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


@functools.cache
def gpu_model() -> str | None:
    """Name and driver of the first NVIDIA GPU, asked of the driver and not of a framework."""
    text = _output("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    return text.splitlines()[0] if text else None


@functools.cache
def source_revision(package: Path) -> tuple[str | None, bool | None]:
    """Commit of the checkout that holds `package`, and whether its tracked sources differ from it.

    (None, None) for an installed copy, also one whose environment lies inside another repository.
    """
    git = ("git", "-C", str(package))
    if not _output(*git, "ls-files", "--", "__init__.py"):
        return None, None
    commit = _output(*git, "rev-parse", "--verify", "HEAD")
    if not commit:
        return None, None
    # sources only: a run writes its own results into the same checkout
    sources = (":(top)*.py", ":(top)*.toml")
    changed = _output(*git, "status", "--porcelain", "--untracked-files=no", "--", *sources)
    return commit, None if changed is None else bool(changed)


def _output(*command: str) -> str | None:
    """What a command prints, stripped; None where it is absent, fails or hangs."""
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def affinity() -> tuple[int, ...] | None:
    """The logical cores this process may run on; None where the OS does not say."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    return tuple(sorted(os.sched_getaffinity(0)))


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
