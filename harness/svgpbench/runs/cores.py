"""Which cores and how much memory a run may use, and how many jobs fit on them without sharing one."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import psutil

from svgpbench.environment import affinity
from svgpbench.errors import UserError

Choose: TypeAlias = Callable[[tuple[int, ...], int], tuple[int, ...]]


def usable_cores() -> tuple[int, ...]:
    """One logical core of each physical core that this process may use, within its CPU quota."""
    allowed = affinity()
    if allowed is None:
        allowed = tuple(range(psutil.cpu_count(logical=False) or 1))
    first_siblings = {_siblings(core): core for core in reversed(allowed)}
    cores = tuple(sorted(first_siblings.values()))
    quota = cpu_quota(Path("/sys/fs/cgroup/cpu.max"))
    return cores if quota is None else cores[: max(1, quota)]


def _siblings(core: int) -> str:
    """The name of the physical core: the logical cores on it, as the kernel lists them."""
    path = Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list")
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return str(core)


def cpu_quota(path: Path) -> int | None:
    """Whole cores that a container's CPU limit is worth; None without a limit."""
    try:
        limit, period = path.read_text(encoding="ascii").split()[:2]
        return None if limit == "max" else math.floor(int(limit) / int(period))
    except (OSError, ValueError):
        return None


def job_cores(
    jobs: int | None, threads: int, choose: Choose = lambda cores, count: cores[:count]
) -> list[tuple[int, ...]]:
    """The cores of each job: `threads` of its own; `jobs` None takes as many jobs as fit.

    `choose` says which so many of the machine's cores the run has.

    Raises `UserError` where they do not fit: two jobs that share a core time each other.
    """
    cores = usable_cores()
    most = len(cores) // threads
    if most == 0:
        raise UserError(f"a cell wants {threads} threads, this machine offers {len(cores)} cores")
    if jobs is None:
        jobs = most
    if jobs < 1:
        raise UserError(f"--jobs {jobs}: at least 1 is needed")
    if jobs > most:
        raise UserError(
            f"--jobs {jobs} of {threads} threads need {jobs * threads} cores, "
            f"this machine offers {len(cores)}: at most --jobs {most}"
        )
    cores = choose(cores, jobs * threads)
    return [cores[slot * threads : (slot + 1) * threads] for slot in range(jobs)]


SHARE = 0.9
"""Of the memory, for all workers together: the machine and the runner need the rest."""


def job_memory(jobs: int) -> float:
    """Bytes that each of so many workers may hold so that the machine lives."""
    limit = memory_limit(Path("/sys/fs/cgroup/memory.max"))
    total = psutil.virtual_memory().total
    return SHARE * (total if limit is None else min(total, limit)) / jobs


def memory_limit(path: Path) -> int | None:
    """Bytes that a container may hold; None without a limit."""
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):  # "max", or no container
        return None
