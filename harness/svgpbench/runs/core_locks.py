"""Core locks by which several runs on one machine avoid each other's cores."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from platformdirs import user_cache_path

from svgpbench.errors import UserError
from svgpbench.results.cell_locks import FileLocks
from svgpbench.runs.cores import job_cores


def core_file() -> Path:
    """Return the lock file of this machine's cores. Several machines may share one home folder."""
    return user_cache_path("svgpbench", appauthor=False) / f"cores-{platform.node()}"


class CoreReservation:
    """The cores that a run has reserved, until it closes them or ends.

    If the lock file cannot be written, every core counts as free, so that two runs may share cores.
    """

    def __init__(self, path: Path) -> None:
        self._locks: FileLocks | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._locks = FileLocks(path)
        except (OSError, UserError):
            pass

    def choose(self, cores: tuple[int, ...], count: int) -> tuple[int, ...]:
        """Reserve and return `count` of the cores: free ones first, then those that another run has."""
        reserved: list[int] = []
        for core in cores:
            if len(reserved) < count and (self._locks is None or self._locks.acquire(str(core))):
                reserved.append(core)
        return tuple([*reserved, *(core for core in cores if core not in reserved)][:count])

    def close(self) -> None:
        """Release the cores."""
        if self._locks is not None:
            self._locks.close()


@contextmanager
def timing_cores(threads: int) -> Iterator[tuple[int, ...]]:
    """Reserve the cores of a timing, which are free ones as far as there are any.

    Raises `UserError` if the machine has fewer than `threads` cores.
    """
    with closing(CoreReservation(core_file())) as reservation:
        yield job_cores(1, threads, reservation.choose)[0]
