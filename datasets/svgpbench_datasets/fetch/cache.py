"""The folder of downloaded files: what it holds, whose turn it is, how a file gets its name there."""

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
    """The folder of downloaded files: the one named, SVGPBENCH_DATA, or the system's cache."""
    chosen = folder or os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    return user_cache_path("svgpbench", appauthor=False) / "data"


def sha256_of(file: File, cache: Path) -> str | None:
    """What a file is declared to hold; of one told by its form, what it held when it was accepted."""
    with usable(cache):
        note = _beside(cache / file.path)
        noted = note.read_text("utf-8", "replace")[:64] if note.exists() else None
        return file.checksums.get("sha256") or noted


def is_cached(file: File, cache: Path) -> bool:
    """Whether the cache holds a file with the content declared, or accepted; reads all of it."""
    expected, target = sha256_of(file, cache), cache / file.path
    with usable(cache):
        return expected is not None and target.is_file() and _sha256(target) == expected


def place_file(file: File, cache: Path, write: Callable[[Path], None], tell: Tell) -> Path:
    """Have a file written that the cache lacks, and give it its name; others wait meanwhile.

    `write` writes its content to a path, or raises where it is not verified; `tell` is called where
    another process has its turn.
    """
    target = cache / file.path
    unverified = target.with_name(f".{target.name}.unverified")  # of the one who holds the lock
    with usable(cache), locked(cache, file.path, tell):
        if is_cached(file, cache):
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            write(unverified)
            if file.known_by == "form":  # a later change of the file shows
                line = f"{_sha256(unverified)}  {target.name}\n"  # as sha256sum writes it
                _beside(target).write_text(line, "utf-8")
            unverified.replace(target)
        finally:
            unverified.unlink(missing_ok=True)
    return target


@contextmanager
def locked(cache: Path, what: str, tell: Tell) -> Iterator[None]:
    """Hold the lock of one thing in a cache, after another process where that has it.

    A process that dies lets go of its locks. Their files stay: removing one would let two in.
    """
    folder = cache / ".locks"
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / f"{hashlib.sha256(what.encode()).hexdigest()}.lock")
    try:
        held = lock.acquire(blocking=False)
    except Timeout:
        tell("waiting for another process")
        held = lock.acquire()
    with held:
        yield


@contextmanager
def usable(cache: Path) -> Iterator[None]:
    """Tell of a folder that cannot be read or written in one line: an OSError is a DataError."""
    try:
        yield
    except OSError as error:
        at = f" at {error.filename}" if error.filename else ""
        raise DataError(
            f"cache folder {cache} cannot be used ({error.strerror or error}{at}); name another "
            f"with --cache or {CACHE_VARIABLE}"
        ) from None


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _beside(target: Path) -> Path:
    return target.with_name(f"{target.name}.sha256")
