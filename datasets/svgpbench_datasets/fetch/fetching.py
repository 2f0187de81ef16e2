"""Bringing verified data files into the cache: from a mirror, from upstream, or by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from svgpbench_datasets.errors import DataError
from svgpbench_datasets.fetch.cache import is_cached, locked, place_file, usable
from svgpbench_datasets.fetch.limits import USUAL, Limits, OnProgress, Progress, silent
from svgpbench_datasets.fetch.places import Answer, Place, Unavailable, places
from svgpbench_datasets.fetch.proof import (
    Absent,
    Accept,
    Refusal,
    WrongContent,
    nothing_accepted,
    write_verified,
)
from svgpbench_datasets.fetch.transfer import Partial, download
from svgpbench_datasets.fetch.unpacking import chunks
from svgpbench_datasets.files import File


def fetch_files(
    files: Sequence[File],
    *,
    cache: Path,
    mirrors: Sequence[str] = (),
    name: str | None = None,
    limits: Limits = USUAL,
    accept: Accept = nothing_accepted,
    on_progress: OnProgress = silent,
    failed: Callable[[File, Unavailable], None] | None = None,
) -> tuple[Path, ...]:
    """Bring the verified content of files, uncompressed unless packed, to `cache / file.path`.

    A file that is already cached needs neither network nor write permission. Any other is looked up on
    each mirror as `path.xz`, `path.gz` or `path` (a packed file only as `path`), then at each upstream
    address. An archive that contains several of the files is downloaded once.

    Args:
        files: the files to bring.
        cache: the cache folder.
        mirrors: folders or http(s) addresses to try first.
        name: name of the data set, for messages.
        limits: limits on time and size.
        accept: checks the form of a file without a known checksum.
        on_progress: called with the progress of each download.
        failed: called with a file that no place had, and the error; None to raise it.

    Returns:
        the path of each file that could be obtained.

    Raises:
        Unavailable: no place had a file, and `failed` is None.
        DataError: a file cannot be downloaded, a mirror is invalid, or the cache cannot be used.
    """
    paths = []
    try:
        for file in files:
            wanted = _Wanted(file, cache, limits, accept, on_progress)
            try:
                if not is_cached(file, cache):
                    wanted.place(partial(wanted.bring, places(file, mirrors), name))
                paths.append(cache / file.path)
            except Unavailable as error:
                if failed is None:
                    raise
                failed(file, error)
    finally:
        archives = {each.url for file in files for each in file.addresses if each.member}
        with usable(cache):
            for url in archives:  # kept until now for other files in them
                if Partial(cache, url).is_complete():
                    with locked(cache, url, lambda _: None):
                        Partial(cache, url).drop()
    return tuple(paths)


def adopt_file(
    source: Path,
    files: Sequence[File],
    *,
    cache: Path,
    limits: Limits = USUAL,
    accept: Accept = nothing_accepted,
) -> tuple[Path, ...]:
    """Copy files that the cache lacks from a manual download; return the paths of those copied.

    `source` may be plain, compressed, or upstream's archive; it is recognised by content, not by name.
    It is not changed.

    Raises:
        DataError: `source` does not exist or holds none of the files, or the cache cannot be used.
    """
    if not source.is_file():
        raise DataError(f"--from {source}: no such file; name what you downloaded")
    missing = [file for file in files if not is_cached(file, cache)]
    taken, reasons = [], []
    for file in missing:
        wanted = _Wanted(file, cache, limits, accept)
        for member in dict.fromkeys([None, *(each.member for each in file.addresses)]):
            try:
                taken.append(wanted.place(partial(wanted.unpack, source, member)))
                break
            except WrongContent as error:
                reasons.append(f"as {member or file.path}: {error}")
    if missing and not taken:
        raise DataError(f"--from {source} is not what is wanted ({'; '.join(reasons)})")
    return tuple(taken)


@dataclass(frozen=True)
class _Wanted:
    """File to bring into a cache, with limits, form check and progress callback."""

    file: File
    cache: Path
    limits: Limits
    accept: Accept
    on_progress: OnProgress = silent

    def tell(self, doing: str, done: int = 0, total: int | None = None) -> None:
        """Report progress on this file."""
        self.on_progress(Progress(self.file.path, doing, done, total))

    def place(self, write: Callable[[Path], None]) -> Path:
        """Call `place_file`; raise `DataError` if the file declares no address or size."""
        if self.file.shipped or not self.file.most:
            why = "declares no address and size: it is not to be downloaded"
            raise DataError(f"{self.file.path} {why}")
        return place_file(self.file, self.cache, write, self.tell)

    def bring(self, asked: Sequence[Place], name: str | None, output: Path) -> None:
        """Write the verified content from the first place that has it; raise `Unavailable` if none has."""
        answers = []
        for place in asked:
            try:
                self.take(place, output)
                return
            except Refusal as refusal:
                answers.append(Answer(place.name, str(refusal)))
                self.tell(f"{place.name}: {refusal}")
        raise Unavailable(self.file.path, answers, name)

    def take(self, place: Place, output: Path) -> None:
        """Write the content of the first candidate of a place that is the file.

        If none is, a `WrongContent` is raised in preference to an `Absent`, as it says more.
        """
        refusals: list[Refusal] = []
        for candidate in place.candidates:
            try:
                if isinstance(candidate, str):
                    self.download(candidate, place.member, output)
                elif candidate.is_file():
                    self.unpack(candidate, place.member, output)
                else:
                    raise Absent(f"has no {self.file.path}")
                return
            except (Absent, WrongContent) as refusal:
                refusals.append(refusal)
        raise max(refusals, key=lambda refusal: isinstance(refusal, WrongContent))

    def download(self, url: str, member: str | None, output: Path) -> None:
        """Download from an address and unpack.

        If the content is wrong and came from a resumed transfer, it is downloaded again from the start.
        """
        bound = self.limits.transfer_bound(self.file.most, member)
        with locked(self.cache, url, self.tell):
            held = Partial(self.cache, url)
            for is_last in (False, True):
                download(held, bound, self.limits, self.tell)
                try:
                    self.unpack(held.body, member, output)
                    break
                except WrongContent:
                    fits = not held.in_pieces
                    held.drop()
                    if is_last or fits:
                        raise
            if member is None:
                held.drop()

    def unpack(self, source: Path, member: str | None, output: Path) -> None:
        """Unpack and write the verified content; raise `WrongContent` if it is not the file."""
        if self.file.known_by == "form":
            self.tell("reading it, as no checksum is known")
        bound = self.limits.transfer_bound(self.file.most, member) * self.limits.unpacked_factor
        inside = chunks(source, member, bound, as_served=self.file.packed)
        write_verified(inside, output, self.file, self.accept)
