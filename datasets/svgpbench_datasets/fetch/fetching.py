"""A data file brought into the cache, verified: from a mirror, from upstream, or by hand."""

from __future__ import annotations

import hashlib
import logging
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pooch

from svgpbench_datasets.errors import DataError
from svgpbench_datasets.fetch.answers import WrongContent
from svgpbench_datasets.fetch.asking import Wish, bring, unpack
from svgpbench_datasets.fetch.limits import Limits, OnProgress, silent
from svgpbench_datasets.fetch.locking import locked
from svgpbench_datasets.fetch.noted import note, noted
from svgpbench_datasets.fetch.partial import Partial
from svgpbench_datasets.fetch.places import places
from svgpbench_datasets.fetch.verifying import Accept, nothing_accepted
from svgpbench_datasets.files import DataFile, File, UnseenFile


def is_cached(file: File, cache: Path) -> bool:
    """Whether the cache holds a file with the content declared, or accepted; reads all of it."""
    target, expected = cache / file.path, sha256_of(file, cache)
    if expected is None:
        return False
    with _usable(cache):
        return target.is_file() and bool(pooch.file_hash(str(target)) == expected)


def sha256_of(file: File, cache: Path) -> str | None:
    """What a file is declared to hold; of one told by its form, what was found when it was accepted."""
    if isinstance(file, DataFile):
        return file.sha256
    with _usable(cache):
        return noted(cache / file.path)


def fetch_file(
    file: File,
    *,
    cache: Path,
    mirrors: Sequence[str] = (),
    name: str | None = None,
    limits: Limits | None = None,
    keep: Container[str] = (),
    accept: Accept = nothing_accepted,
    on_progress: OnProgress = silent,
) -> Path:
    """Bring a file's verified content, uncompressed unless it is packed, to `cache / file.path`.

    What the cache holds with the right sha256 is returned as it is, without a network, also from
    a folder that cannot be written. Otherwise each mirror is asked, then each address of upstream.
    Of two processes that want the same file, one downloads and the other waits.

    Args:
        file: what is wanted; with a checksum, it must declare its size and an address.
        cache: the folder, see `cache_folder`.
        mirrors: folders and http(s) addresses that hold `path`, `path.xz` or `path.gz`.
        name: the data set, for messages.
        limits: times and sizes.
        keep: addresses whose archive is left for the next file in it, see `shared_archives`.
        accept: reads a file without a known checksum; what it refuses is never kept.
        on_progress: called with what is being done.

    Returns:
        the path of the file.

    Raises:
        Unavailable: no place had it; what each answered.
        DataError: a file that needs no download, a mirror that is none, a cache that cannot be used.
    """
    _check_downloadable(file)
    target = cache / file.path
    if is_cached(file, cache):
        return target
    asked = tuple(places(file, mirrors))
    wish = Wish(file, cache, asked, name, limits or Limits(), keep, accept, on_progress)
    waiting = "waiting for another process"
    with _usable(cache), locked(cache, _key(file), lambda: wish.tell(waiting)):
        _place(file, cache, lambda output: bring(wish, output))
    return target


def fetch_files(
    files: Sequence[File],
    *,
    cache: Path,
    mirrors: Sequence[str] = (),
    name: str | None = None,
    limits: Limits | None = None,
    accept: Accept = nothing_accepted,
    on_progress: OnProgress = silent,
) -> tuple[Path, ...]:
    """Fetch several files; an archive that holds more than one of them is downloaded once.

    Arguments, result and errors: those of `fetch_file`, a path for each file.
    """
    with shared_archives(files, cache) as keep:
        return tuple(
            fetch_file(
                file,
                cache=cache,
                mirrors=mirrors,
                name=name,
                limits=limits,
                keep=keep,
                accept=accept,
                on_progress=on_progress,
            )
            for file in files
        )


@contextmanager
def shared_archives(files: Sequence[File], cache: Path) -> Iterator[frozenset[str]]:
    """The addresses of archives that hold several of these files: kept within, dropped after."""
    counts = Counter(each.url for file in set(files) for each in file.addresses if each.member)
    shared = frozenset(url for url, times in counts.items() if times > 1)
    try:
        yield shared
    finally:
        with _usable(cache):
            for url in shared:
                partial = Partial(cache, url)
                if partial.is_complete():
                    with locked(cache, partial.key):
                        partial.drop()


def adopt_file(
    given: Path,
    files: Sequence[File],
    *,
    cache: Path,
    limits: Limits | None = None,
    accept: Accept = nothing_accepted,
) -> tuple[Path, ...]:
    """Take what the cache lacks from a download made by hand: plain, compressed, upstream's archive.

    Args:
        given: the user's file; it is left as it is.
        files: what it may be or hold, told by checksum or form and not by name.
        cache: the folder, see `cache_folder`.
        limits: sizes.
        accept: as of `fetch_file`.

    Returns:
        the paths of the files that were taken from it.

    Raises:
        DataError: it is none of them; a path that cannot be read; a cache that cannot be used.
    """
    if not given.is_file():
        raise DataError(f"--from {given}: no such file; name what you downloaded")
    try:
        with given.open("rb"):
            archive = zipfile.is_zipfile(given) or tarfile.is_tarfile(given)
    except OSError as error:
        raise DataError(f"--from {given} cannot be read ({error.strerror or error})") from None
    missing = [file for file in files if not is_cached(file, cache)]
    taken, reasons = [], []
    for file in missing:
        _check_downloadable(file)
        members = [each.member for each in file.addresses if each.member] if archive else []
        for member in dict.fromkeys((*members, None)):
            try:
                taken.append(_adopt(given, member, file, cache, limits or Limits(), accept))
                break
            except WrongContent as error:
                reasons.append(f"as {member or file.path}: {error}")
    if missing and not taken:
        raise DataError(f"--from {given} is not what is wanted ({'; '.join(reasons)})")
    return tuple(taken)


def _adopt(
    given: Path, member: str | None, file: File, cache: Path, limits: Limits, accept: Accept
) -> Path:
    def write(output: Path) -> None:
        unpack(given, member, output, file=file, limits=limits, accept=accept)

    with _usable(cache), locked(cache, _key(file)):
        _place(file, cache, write)
    return cache / file.path


def _key(file: File) -> str:
    """The name of a file's lock."""
    if isinstance(file, DataFile):
        return file.sha256
    return hashlib.sha256(file.path.encode()).hexdigest()


def _check_downloadable(file: File) -> None:
    if isinstance(file, DataFile) and (not file.addresses or file.bytes is None):
        raise DataError(f"{file.path} declares no address and size: it is not to be downloaded")


def _place(file: File, cache: Path, write: Callable[[Path], None]) -> None:
    if isinstance(file, UnseenFile):
        _place_accepted(file, cache, write)
    else:
        _place_verified(file, cache, write)


def _place_accepted(file: UnseenFile, cache: Path, write: Callable[[Path], None]) -> None:
    """Have a file written and read under another name, then note its sha256 and name it."""
    if is_cached(file, cache):
        return
    target = cache / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    unread = target.with_name(f".{target.name}.unread")  # one at a time: the lock is held
    try:
        write(unread)
        note(target, pooch.file_hash(str(unread)))
        unread.replace(target)
    finally:
        unread.unlink(missing_ok=True)


def _place_verified(file: DataFile, cache: Path, write: Callable[[Path], None]) -> None:
    """Let pooch look into the cache, have a temporary file written, verify it and name it."""
    log = pooch.get_logger()
    before = log.level
    log.setLevel(logging.ERROR)  # it would announce one address, and others may be asked
    try:
        pooch.retrieve(
            url=file.addresses[0].url,
            known_hash=f"sha256:{file.sha256}",
            fname=file.path,
            path=cache,
            downloader=_Downloader(write),
        )
    finally:
        log.setLevel(before)


class _Downloader:
    """What pooch calls with an address, a temporary file and itself."""

    def __init__(self, write: Callable[[Path], None]) -> None:
        self._write = write

    def __call__(self, url: str, output_file: str, pooch: Any) -> None:
        self._write(Path(output_file))


@contextmanager
def _usable(cache: Path) -> Iterator[None]:
    """A folder that cannot be read or written, told in one line."""
    try:
        yield
    except OSError as error:
        at = f" at {error.filename}" if error.filename else ""
        raise DataError(
            f"cache folder {cache} cannot be used ({error.strerror or error}{at}); name another "
            "with --cache or SVGPBENCH_DATA"
        ) from None
