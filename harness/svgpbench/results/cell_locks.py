"""Locks for runs that share a folder: a run locks the cell that it computes."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import threading
from pathlib import Path

from svgpbench.errors import UserError

NAME = ".locks"
"""The lock file of a folder of records."""

# POSIX leaves open which of the two a lock that is held gives
HELD_ELSEWHERE = frozenset({errno.EACCES, errno.EAGAIN})


class FileLocks:
    """Locks on single bytes of one empty file, one byte per name. The file is never removed.

    They hold between processes, and between machines on a shared disk. The kernel releases them when their
    process ends, however it ends. A process must open the file only once: closing one handle releases the
    locks of all handles.
    """

    def __init__(self, file: int | None, missing: str = "") -> None:
        """Lock bytes of the open `file`; without one, names are locked in this process alone."""
        self.missing = missing  # reason why other processes see no locks; empty if they do
        self._guard = threading.Lock()
        self._locked_names: set[str] = set()
        self._file = -1 if file is None else file
        try:
            # byte 0 belongs to no name
            if file is not None:
                # shared, so that all runs can hold it: it only asks whether this disk has locks
                fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, 0)
        except OSError as error:
            self.missing = os.strerror(error.errno or 0)

    @classmethod
    def in_folder(cls, folder: Path) -> FileLocks:
        """Create a folder of records, and return its locks.

        Raises `UserError` if the file of locks cannot be written.
        """
        path = folder / NAME
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # open for both: a shared lock needs reading, an exclusive one writing
            return cls(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666))
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror}") from error

    def acquire(self, name: str) -> bool:
        """Lock a name. Return False if this or another process holds it."""
        with self._guard:
            # a lock on bytes keeps other processes off; the same process would get it a second time
            if name in self._locked_names:
                return False
            if not self.missing:
                try:
                    fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _byte(name))
                except OSError as error:
                    if error.errno in HELD_ELSEWHERE:
                        return False
                    raise UserError(f"a lock failed: {error.strerror}") from error
            self._locked_names.add(name)
            return True

    def release(self, name: str) -> None:
        """Release a name."""
        with self._guard:
            self._locked_names.discard(name)
            if not self.missing:
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _byte(name))

    def close(self) -> None:
        """Release all names and close the file."""
        if self._file >= 0:
            os.close(self._file)


def _byte(name: str) -> int:
    """Return the position of a name's byte, from 1, small enough for every file system."""
    return 1 + int.from_bytes(hashlib.sha256(name.encode()).digest()[:7])
