"""How worn a worker is: each program that is compiled in it takes memory mappings, and a kernel has a limit.

XLA's programs take some 50 each, and a cell has several. Linux allows a process 65,530, and ends one that
needs more by a signal in the middle of a cell.
"""

from __future__ import annotations

from pathlib import Path

SHARE = 0.5
"""Of the mappings allowed, after which a worker is replaced: the largest cell must still fit in the rest."""

EVERY = 10
"""Cells from one count to the next: a count reads a line a mapping."""


def is_worn(pid: int, cells: int) -> bool:
    """Whether a process that ran so many cells should run no more; never, where the system does not say."""
    if cells % EVERY:
        return False
    held, allowed = mappings(pid), mappings_allowed()
    return held is not None and allowed is not None and held > SHARE * allowed


def mappings(pid: int) -> int | None:
    """How many a process holds; None off Linux, and where it has ended."""
    try:
        with Path(f"/proc/{pid}/maps").open("rb") as lines:
            return sum(1 for _ in lines)
    except OSError:
        return None


def mappings_allowed() -> int | None:
    """How many any process may hold; None off Linux."""
    try:
        return int(Path("/proc/sys/vm/max_map_count").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
