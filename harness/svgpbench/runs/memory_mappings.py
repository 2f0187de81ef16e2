"""Memory mappings of a worker, whose number Linux limits.

Each compiled XLA program takes about 50 mappings, and a cell has several programs. Linux allows a process
65,530 mappings. It kills a process that needs more, in the middle of a cell.
"""

from __future__ import annotations

from pathlib import Path

LIMIT_SHARE = 0.5
"""Share of the allowed mappings at which a worker is replaced. The largest cell must fit in the rest."""

COUNT_INTERVAL = 10
"""Number of cells between two counts; a count reads one line per mapping."""


def near_mapping_limit(pid: int, cells: int) -> bool:
    """Return True if a process that has run `cells` cells should be replaced; False if Linux does not say."""
    if cells % COUNT_INTERVAL:
        return False
    count, allowed = mappings(pid), mappings_allowed()
    return count is not None and allowed is not None and count > LIMIT_SHARE * allowed


def mappings(pid: int) -> int | None:
    """Return the number of mappings of a process; None off Linux, or if it has ended."""
    try:
        with Path(f"/proc/{pid}/maps").open("rb") as lines:
            return sum(1 for _ in lines)
    except OSError:
        return None


def mappings_allowed() -> int | None:
    """Return the number of mappings that a process may have; None off Linux."""
    try:
        return int(Path("/proc/sys/vm/max_map_count").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
