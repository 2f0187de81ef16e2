"""Machine, versions and threads of a process, as a record stores them. Imports no framework."""

from __future__ import annotations

import functools
import os
import platform
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, distributions, version
from pathlib import Path

import psutil
import threadpoolctl
from pydantic import Field

from svgpbench.config import Strict
from svgpbench.plugins import GROUPS, frameworks, loaded_plugins, plugins

OURS = "svgpbench"
PACKAGES = (OURS, "numpy", "scipy")


class ThreadPool(Strict):
    """A BLAS or OpenMP library that the process has loaded, and its number of threads."""

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
    lock: tuple[str, ...] = ()  # installed packages as `name==version`; empty in older records
    plugins: tuple[str, ...] = ()  # plugins of other packages that the process has loaded
    code: dict[str, str] = Field(default_factory=dict)  # PACKAGE:DIGEST of what made the numbers
    thread_pools: tuple[ThreadPool, ...]
    commit: str | None  # of the source tree; None if it is not a checkout
    dirty: bool | None
    threads: int
    affinity: tuple[int, ...] | None  # None if the OS does not support it


def describe(threads: int, device: str = "cpu") -> Environment:
    """Return the environment of this process; call it after the libraries are loaded."""
    commit, dirty = source_revision(Path(__file__).parent)
    return Environment(
        python=platform.python_version(),
        system=platform.platform(),
        cpu=cpu_model(),
        cores=os.cpu_count() or 1,
        memory_bytes=psutil.virtual_memory().total,
        gpu=gpu_model() if device == "cuda" else None,
        versions=installed_versions(),
        lock=installed_requirements(),
        plugins=loaded_plugins(),
        thread_pools=thread_pools(),
        commit=commit,
        dirty=dirty,
        threads=threads,
        affinity=affinity(),
    )


def thread_pools() -> tuple[ThreadPool, ...]:
    """Return every BLAS and OpenMP library loaded so far."""
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
    """Return the versions of svgpbench, NumPy, SciPy, the frameworks and all packages with plugins.

    Imports none of them.
    """
    found = {
        point.dist.name: point.dist.version
        for group in GROUPS
        for point in plugins(group).values()
        if point.dist is not None
    }
    for name in (
        *PACKAGES,
        *(name for each in frameworks().values() for name in each.distributions),
    ):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return dict(sorted(found.items()))


@functools.cache
def installed_requirements() -> tuple[str, ...]:
    """Return every installed package as `name==version`, except svgpbench, whose commit is recorded."""
    # a set: `distributions` yields a package once for each folder of sys.path that has it
    pins = {f"{found.name}=={found.version}" for found in distributions() if found.name != OURS}
    return tuple(sorted(pins, key=str.casefold))


def software() -> dict[str, object]:
    """Return versions, sources and processor, which determine exact results beside the configuration."""
    commit, dirty = source_revision(Path(__file__).parent)
    return {"versions": installed_versions(), "source": [commit, dirty], "cpu": cpu_model()}


def cpu_model() -> str:
    """Return the name of the processor."""
    return _cpuinfo_value("model name") or platform.processor() or platform.machine()


def cpu_instructions() -> str:
    """Return the names of the instruction sets of the processor, or its architecture if they are unknown."""
    return _cpuinfo_value("flags") or _cpuinfo_value("Features") or platform.machine()


@functools.cache
def _cpuinfo_value(key: str) -> str:
    """Return the first value of a key of `/proc/cpuinfo`; empty if there is none."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((x.partition(":")[2].strip() for x in lines if x.startswith(key)), "")


@functools.cache
def gpu_model() -> str | None:
    """Return name and driver version of the first NVIDIA GPU from `nvidia-smi`, without a framework."""
    text = _output("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    return text.splitlines()[0] if text else None


@functools.cache
def source_revision(package: Path) -> tuple[str | None, bool | None]:
    """Return the commit of the checkout of `package`, and True if its tracked sources differ from it.

    Return (None, None) for an installed copy, also if its environment lies inside another repository.
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
    """Return the stripped output of a command; None if it is absent, fails or takes over 20 s."""
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
    """Return the logical cores that this process may run on; None if the OS does not report them."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    return tuple(sorted(os.sched_getaffinity(0)))
