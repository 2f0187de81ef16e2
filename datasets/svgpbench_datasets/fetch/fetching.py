"""A data file brought into the cache, verified: from a mirror, from upstream, or by hand."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial as bound
from pathlib import Path
from typing import Any

import pooch
from filelock import FileLock

from svgpbench_datasets.errors import DataError
from svgpbench_datasets.fetch.answers import Absent, Answer, Refusal, Unavailable, WrongContent
from svgpbench_datasets.fetch.limits import Limits, OnProgress, Progress, silent
from svgpbench_datasets.fetch.partial import Partial
from svgpbench_datasets.fetch.places import Place, places
from svgpbench_datasets.fetch.transfer import download
from svgpbench_datasets.fetch.unpacking import content
from svgpbench_datasets.fetch.verifying import write_verified
from svgpbench_datasets.files import DataFile

LOCKS = ".locks"


def is_cached(file: DataFile, cache: Path) -> bool:
    """Whether the cache holds a file with the declared content; reads all of it."""
    target = cache / file.path
    return target.is_file() and bool(pooch.file_hash(str(target)) == file.sha256)


def fetch_file(
    file: DataFile,
    *,
    cache: Path,
    mirrors: Sequence[str] = (),
    name: str | None = None,
    limits: Limits | None = None,
    keep_archive: bool = False,
    on_progress: OnProgress = silent,
) -> Path:
    """Bring a file's verified, uncompressed content to `cache / file.path`.

    What the cache holds with the declared sha256 is returned as it is, without a network, also from
    a folder that cannot be written. Otherwise each mirror is asked, then each address of upstream.
    Of two processes that want the same file, one downloads and the other waits.

    Args:
        file: what is wanted; it must declare its size and an address.
        cache: the folder, see `cache_folder`.
        mirrors: folders and http(s) addresses that hold `path`, `path.xz` or `path.gz`.
        name: the data set, for messages.
        limits: times and sizes.
        keep_archive: leave a downloaded archive for the next file in it.
        on_progress: called with what is being done.

    Returns:
        the path of the file.

    Raises:
        Unavailable: no place had it; what each answered.
        DataError: a file that needs no download, a mirror that is none, a cache that cannot be used.
    """
    target = cache / file.path
    if not file.addresses or file.bytes is None:
        raise DataError(f"{file.path} declares no address and size: it is not to be downloaded")
    with _usable(cache):
        if is_cached(file, cache):
            return target
        asked = tuple(places(file, mirrors))
        bring = bound(
            _bring,
            file=file,
            asked=asked,
            cache=cache,
            name=name,
            limits=limits or Limits(),
            keep_archive=keep_archive,
            on_progress=on_progress,
        )
        with _locked(cache, file.sha256, bound(on_progress, Progress(file.path, "waiting"))):
            _place(file, cache, asked[0].name, bring)
    return target


def fetch_files(
    files: Sequence[DataFile],
    *,
    cache: Path,
    mirrors: Sequence[str] = (),
    name: str | None = None,
    limits: Limits | None = None,
    on_progress: OnProgress = silent,
) -> tuple[Path, ...]:
    """Fetch several files; an archive that holds more than one of them is downloaded once.

    Arguments, result and errors: those of `fetch_file`, a path for each file.
    """
    urls = Counter(place.url for file in files for place in file.addresses if place.member)
    try:
        return tuple(
            fetch_file(
                file,
                cache=cache,
                mirrors=mirrors,
                name=name,
                limits=limits,
                keep_archive=any(urls[address.url] > 1 for address in file.addresses),
                on_progress=on_progress,
            )
            for file in files
        )
    finally:
        with _usable(cache):
            for url in urls:
                Partial(cache, url).drop_if_complete()


def _place(file: DataFile, cache: Path, url: str, bring: Any) -> None:
    """Let pooch check the cache, call `bring` with a temporary file, verify it and name it."""
    log = pooch.get_logger()
    before = log.level
    log.setLevel(logging.ERROR)  # it would announce the first place only
    try:
        pooch.retrieve(
            url=url,
            known_hash=f"sha256:{file.sha256}",
            fname=file.path,
            path=cache,
            downloader=bring,
        )
    finally:
        log.setLevel(before)


def _bring(
    _url: str,
    output: str,
    _pooch: Any,
    *,
    file: DataFile,
    asked: Sequence[Place],
    cache: Path,
    name: str | None,
    limits: Limits,
    keep_archive: bool,
    on_progress: OnProgress,
) -> None:
    """Write the file's content to `output` from the first place that has it."""
    answers = []
    for place in asked:
        try:
            _from_place(place, Path(output), file, cache, limits, keep_archive, on_progress)
            return
        except Refusal as refusal:
            answers.append(Answer(place.name, str(refusal)))
            on_progress(Progress(file.path, f"{place.name}: {refusal}"))
    raise Unavailable(file.path, answers, name)


def _from_place(
    place: Place,
    output: Path,
    file: DataFile,
    cache: Path,
    limits: Limits,
    keep_archive: bool,
    on_progress: OnProgress,
) -> None:
    absent: Absent | None = None
    for candidate in place.candidates:
        try:
            if isinstance(candidate, Path):
                if not candidate.is_file():
                    raise Absent(f"has no {file.path}")
                unpack(candidate, place.member, output, file, limits)
            else:
                _from_url(
                    candidate, place.member, output, file, cache, limits, keep_archive, on_progress
                )
            return
        except Absent as error:
            absent = error
    raise absent or Absent("nothing to ask")


def _from_url(
    url: str,
    member: str | None,
    output: Path,
    file: DataFile,
    cache: Path,
    limits: Limits,
    keep_archive: bool,
    on_progress: OnProgress,
) -> None:
    """Download, then unpack; bytes that were pieced together and turn out wrong get a fresh start."""
    partial = Partial(cache, url)

    def report(doing: str, done: int, total: int | None) -> None:
        on_progress(Progress(file.path, doing, done, total))

    with _locked(cache, partial.key, bound(on_progress, Progress(file.path, "waiting"))):
        for fresh in (False, True):
            resumed = download(url, partial, limits.transfer_bound(file, member), limits, report)
            try:
                unpack(partial.body, member, output, file, limits)
            except WrongContent:
                partial.drop()
                if fresh or not resumed:
                    raise
            else:
                if not keep_archive:
                    partial.drop()
                return


def unpack(source: Path, member: str | None, output: Path, file: DataFile, limits: Limits) -> None:
    """Write the verified content of what was downloaded or found to a new file.

    Raises:
        WrongContent: it is not the file; then there is no output.
    """
    output.unlink(missing_ok=True)  # a temporary file is for its owner only, a new one is not
    most = limits.transfer_bound(file, member) * limits.unpacked_factor
    try:
        with content(source, member, most) as plain:
            write_verified(plain, output, file)
    except BaseException:
        output.unlink(missing_ok=True)
        raise


@contextmanager
def _locked(cache: Path, key: str, waiting: Any) -> Iterator[None]:
    folder = cache / LOCKS
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / f"{key}.lock")
    try:
        lock.acquire(blocking=False)
    except TimeoutError:
        waiting()
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _usable(cache: Path) -> Iterator[None]:
    """A folder that cannot be read or written, told in one line."""
    try:
        yield
    except OSError as error:
        what = f"{error.strerror or error}"
        at = f" at {error.filename}" if error.filename else ""
        raise DataError(
            f"cache folder {cache} cannot be used ({what}{at}); name another with --cache or "
            "SVGPBENCH_DATA"
        ) from None
