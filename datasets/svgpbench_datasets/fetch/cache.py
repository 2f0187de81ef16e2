"""Cache folder of downloaded files: contents, locks and atomic writing."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from svgpbench_datasets.errors import DataError
from svgpbench_datasets.files import File

CACHE_VARIABLE = "SVGPBENCH_DATA"

Tell = Callable[[str], None]


def cache_folder(folder: str | Path | None = None) -> Path:
    """Return the folder of downloaded files: `folder`, else SVGPBENCH_DATA, else the user's cache.

    Raises `DataError` for the home folder of a user that does not exist.
    """
    path = folder or os.environ.get(CACHE_VARIABLE)
    if not path:
        return user_cache_path("svgpbench", appauthor=False) / "data"
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise DataError(
            f"cache folder {path}: no user has this home folder; name another with --cache or "
            f"{CACHE_VARIABLE}"
        ) from None


def sha256_of(file: File, cache: Path) -> str | None:
    """Return the declared SHA-256 of a file, else the one recorded when it was accepted, else None."""
    with usable(cache):
        note = _note(cache / file.path)
        recorded = note.read_text("utf-8", "replace")[:64] if note.exists() else None
        return file.checksums.get("sha256") or recorded


def is_cached(file: File, cache: Path) -> bool:
    """Return True if the cache holds a file with the expected SHA-256; the whole file is read."""
    expected, target = sha256_of(file, cache), cache / file.path
    with usable(cache):
        return expected is not None and target.is_file() and _sha256(target) == expected


def store(file: File, cache: Path, write: Callable[[Path], None], tell: Tell) -> Path:
    """Write a file to the cache under a lock, unless it is there already; return its path.

    `write` writes the content to a path and raises if it is not verified. `tell` is called if another
    process holds the lock.
    """
    target = cache / file.path
    unverified = target.with_name(f".{target.name}.unverified")  # used by the lock's holder only
    with usable(cache), locked(cache, file.path, tell):
        # asked again under the lock: the process that held it may have stored the file
        if is_cached(file, cache):
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            write(unverified)
            # before the rename: after a crash in between, the file does not count as cached
            if file.known_by == "form":  # so that a later change is detected
                line = f"{_sha256(unverified)}  {target.name}\n"  # as sha256sum writes it
                _note(target).write_text(line, "utf-8")
            unverified.replace(target)
        finally:
            unverified.unlink(missing_ok=True)
    return target


@contextmanager
def locked(cache: Path, resource: str, tell: Tell) -> Iterator[None]:
    """Hold the lock of a file or an address in a cache, waiting for another process that holds it.

    A process that dies releases its locks. Lock files are not removed, since two processes could then
    hold the same lock.
    """
    folder = cache / ".locks"
    folder.mkdir(parents=True, exist_ok=True)
    # by a hash, as an address has characters that a file name may not have
    lock = FileLock(folder / f"{hashlib.sha256(resource.encode()).hexdigest()}.lock")
    try:
        acquired = lock.acquire(blocking=False)
    except Timeout:
        tell("waiting for another process")
        acquired = lock.acquire()
    with acquired:
        yield


@contextmanager
def usable(cache: Path) -> Iterator[None]:
    """Turn an `OSError` in the cache folder into a one-line `DataError`."""
    try:
        yield
    except OSError as error:
        path = f" at {error.filename}" if error.filename else ""
        raise DataError(
            f"cache folder {cache} cannot be used ({error.strerror or error}{path}); name another "
            f"with --cache or {CACHE_VARIABLE}"
        ) from None


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _note(target: Path) -> Path:
    return target.with_name(f"{target.name}.sha256")
