"""Several runs on one folder: who computes a cell has claimed it, and a claim ends with its process."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import threading
from pathlib import Path

from svgpbench.errors import UserError

NAME = ".claims"
"""The file of a folder of records in which its cells are claimed."""

TAKEN = frozenset({errno.EACCES, errno.EAGAIN})


class Claims:
    """Locks of the kernel on bytes of one empty file, a byte a name; it is never removed.

    They hold between processes, on a shared disk between machines, and go when their process dies,
    however it does. A process has at most one of these a file: closing one would drop the locks of another.
    """

    def __init__(self, path: Path) -> None:
        """Open or make the file; raises `UserError` where that cannot be."""
        self.missing = ""  # why the disk keeps no locks, where it does not
        self._guard = threading.Lock()
        self._mine: set[str] = set()
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror}") from error
        try:
            fcntl.lockf(self._file, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, 0)  # no name's byte
        except OSError as error:
            self.missing = os.strerror(error.errno or 0)

    def take(self, name: str) -> bool:
        """Claim a name; False where another process, or this one, has it."""
        with self._guard:
            if name in self._mine:
                return False
            if not self.missing:
                try:
                    fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _byte(name))
                except OSError as error:
                    if error.errno in TAKEN:
                        return False
                    raise UserError(f"a lock failed: {error.strerror}") from error
            self._mine.add(name)
            return True

    def drop(self, name: str) -> None:
        """Give a name up that was taken."""
        with self._guard:
            self._mine.discard(name)
            if not self.missing:
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _byte(name))

    def close(self) -> None:
        """Give all up."""
        os.close(self._file)


def _byte(name: str) -> int:
    """Where a name's byte lies, from 1; within what every file system can lock."""
    return 1 + int.from_bytes(hashlib.sha256(name.encode()).digest()[:7])
