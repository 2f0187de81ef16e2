"""Two processes that share a cache folder take turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

FOLDER = ".locks"


@contextmanager
def locked(cache: Path, key: str, waiting: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Hold the lock of one thing in a cache; `waiting` is called where another process has it.

    A process that dies lets go of its locks. Their files stay: removing one would let two in.
    """
    folder = cache / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / f"{key}.lock")
    try:
        lock.acquire(blocking=False)
    except Timeout:
        waiting()
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
