"""Core locks by which runs, Dask workers and timings on one machine avoid each other's cores.

A user has one lock file per machine, in the cache folder. Only that user can open it: whoever can open a
file can lock it.
"""

from __future__ import annotations

import functools
import os
import platform
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from platformdirs import user_cache_path

from svgpbench.results.cell_locks import FileLocks
from svgpbench.runs.cores import job_cores

LOCKS_VARIABLE = "SVGPBENCH_LOCKS"


def core_file() -> Path:
    """Return the lock file of this machine's cores, in SVGPBENCH_LOCKS or the user's cache.

    Several machines may share one home folder. Runs with different folders do not see each other.
    """
    given = os.environ.get(LOCKS_VARIABLE)
    cache = Path(given).expanduser() if given else user_cache_path("svgpbench", appauthor=False)
    return cache / "locks" / f"cores-{platform.node()}"


def core_locks() -> FileLocks:
    """Return the core locks of this process, which all its runs, tasks and timings share."""
    return _locks_of(core_file())


@functools.cache  # a process opens the file once: closing a second handle would release all its locks
def _locks_of(path: Path) -> FileLocks:
    try:
        return FileLocks(_opened(path))
    except OSError as error:
        return FileLocks(None, f"{path}: {error.strerror}")


def _opened(path: Path) -> int:
    """Open or create a file that no other user can open, in a folder that no other user can enter.

    Raises `OSError` if that is impossible, also if one of them is a link or belongs to another user.
    """
    # `mkdir` leaves the mode of a folder that exists as it is, so the mode is set again below
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # not `stat`, which would follow a link to a folder of somebody else
    _refuse_foreign(os.lstat(path.parent), stat.S_ISDIR)
    path.parent.chmod(0o700)
    # O_NOFOLLOW: no link to another file; O_NONBLOCK: a FIFO of that name would block the open
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    file = os.open(path, flags, 0o600)
    try:
        # of the open file: what lies at the path may change between a check and the open
        _refuse_foreign(os.fstat(file), stat.S_ISREG)
        os.fchmod(file, 0o600)  # it may be open to others
    except OSError:
        os.close(file)
        raise
    return file


def _refuse_foreign(facts: os.stat_result, is_kind: Callable[[int], bool]) -> None:
    if facts.st_uid != os.geteuid():
        raise OSError(0, f"it belongs to user {facts.st_uid}")
    if not is_kind(facts.st_mode):
        raise OSError(0, "it is a link or a special file")


SHARED_CORES = "times may be disturbed"
"""Beginning of a line on a timing whose cores were not its alone."""


class CoreReservation:
    """The cores that a run has reserved, until it closes them or ends.

    `note` says which of its cores another run has too, or why none can be reserved. It is empty if the
    cores are this run's alone.
    """

    def __init__(self) -> None:
        self._locks = core_locks()
        self._reserved: list[int] = []
        self.note = ""

    def choose(self, cores: tuple[int, ...], count: int) -> tuple[int, ...]:
        """Reserve and return `count` of the cores: free ones first, then those that another run has."""
        for core in cores:
            if len(self._reserved) < count and self._locks.acquire(str(core)):
                self._reserved.append(core)
        busy = [core for core in cores if core not in self._reserved]
        chosen = tuple([*self._reserved, *busy][:count])
        if shared := [str(core) for core in chosen if core in busy]:
            what = f"core{'s' * (len(shared) > 1)} {', '.join(shared)}"
            self.note = f"no free core: another run has {what} too"
        elif self._locks.missing:
            self.note = (
                f"cores cannot be reserved, another run may use them ({self._locks.missing})"
            )
        return chosen

    def close(self) -> None:
        """Release the cores."""
        while self._reserved:
            self._locks.release(str(self._reserved.pop()))


class TimingCores(NamedTuple):
    """The cores of a timing, and a note if they are not its alone."""

    cores: tuple[int, ...]
    note: str


@contextmanager
def timing_cores(threads: int) -> Iterator[TimingCores]:
    """Reserve the cores of a timing, which are free ones as far as there are any.

    Raises `UserError` if the machine has fewer than `threads` cores.
    """
    with closing(CoreReservation()) as reservation:
        (cores,) = job_cores(1, threads, reservation.choose)
        yield TimingCores(cores, reservation.note)
