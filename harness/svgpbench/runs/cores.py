"""The cores and the memory that a run may use, and how they are divided among jobs."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import psutil

from svgpbench.environment import affinity
from svgpbench.errors import UserError

Choose: TypeAlias = Callable[[tuple[int, ...], int], tuple[int, ...]]

SHARE = 0.9
"""Share of the memory for all workers together; the rest is for the system and the run itself."""


def usable_cores() -> tuple[int, ...]:
    """Return one logical core of each physical core that this process may use, within its CPU quota."""
    allowed = affinity()
    if allowed is None:
        allowed = tuple(range(psutil.cpu_count(logical=False) or 1))
    # hyperthreads share one core's arithmetic units, so two jobs on them would slow each other;
    # reversed, as the last one written stays: the sibling of the lowest number
    first_siblings = {_siblings(core): core for core in reversed(allowed)}
    cores = tuple(sorted(first_siblings.values()))
    quota = cpu_quota(Path("/sys/fs/cgroup/cpu.max"))
    return cores if quota is None else cores[: max(1, quota)]


def _siblings(core: int) -> str:
    """Return the logical cores of a core's physical core, as Linux lists them."""
    path = Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list")
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return str(core)


def cpu_quota(path: Path) -> int | None:
    """Return a container's CPU limit in whole cores; None without a limit."""
    try:
        limit, period = path.read_text(encoding="ascii").split()[:2]
        # rounded down: threads beyond the quota are throttled, also in the middle of a timed step
        return None if limit == "max" else math.floor(int(limit) / int(period))
    except (OSError, ValueError):
        return None


def job_cores(
    jobs: int | None, threads: int, choose: Choose = lambda cores, count: cores[:count]
) -> list[tuple[int, ...]]:
    """Return the cores of each job, `threads` per job. If `jobs` is None, return as many jobs as fit.

    `choose` takes the machine's cores and a count, and returns the cores of this run.

    Raises `UserError` if the jobs do not fit without sharing a core.
    """
    cores = usable_cores()
    max_jobs = len(cores) // threads
    if max_jobs == 0:
        raise UserError(f"a cell needs {threads} threads, this machine has {len(cores)} cores")
    if jobs is None:
        jobs = max_jobs
    if jobs < 1:
        raise UserError(f"--jobs {jobs}: at least 1 is needed")
    if jobs > max_jobs:
        raise UserError(
            f"--jobs {jobs} of {threads} threads need {jobs * threads} cores, "
            f"this machine has {len(cores)}: at most --jobs {max_jobs}"
        )
    cores = choose(cores, jobs * threads)
    return [cores[slot * threads : (slot + 1) * threads] for slot in range(jobs)]


def job_memory(jobs: int) -> float:
    """Return the bytes that each of `jobs` workers may use."""
    limit = memory_limit(Path("/sys/fs/cgroup/memory.max"))
    total = psutil.virtual_memory().total
    return SHARE * (total if limit is None else min(total, limit)) / jobs


def memory_limit(path: Path) -> int | None:
    """Return a container's memory limit in bytes; None without a limit."""
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):  # "max", or no container
        return None
