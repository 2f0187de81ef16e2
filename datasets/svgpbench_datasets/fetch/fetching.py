"""A data file brought into the cache, verified: from a mirror, from upstream, or by hand."""

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

    What the cache holds needs no network and no right to write. Otherwise each of the mirrors is
    asked for `path.xz`, `path.gz` or `path`, then each address of upstream. An archive that several
    files are in is downloaded once. `name` is the data set's, for messages; `accept` reads a file
    without a known checksum; `failed` is called with a file that no place had. The path of each file
    that could be had is returned.

    Raises:
        Unavailable: no place had a file, what each answered; where `failed` is not given.
        DataError: a file that needs no download, a mirror that is none, a cache that cannot be used.
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
            for url in archives:  # kept until now for the next file in them
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
    """Take what the cache lacks of some files from a download made by hand, which is left as it is.

    It may be plain, compressed, or upstream's archive: content tells what it is, not its name. The
    paths of the files that were taken from it are returned.

    Raises:
        DataError: it is none of them, or cannot be read; a cache that cannot be used.
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
    """A file that is wanted: where it goes, what it may cost, who verifies it, who is proof."""

    file: File
    cache: Path
    limits: Limits
    accept: Accept
    on_progress: OnProgress = silent

    def tell(self, doing: str, done: int = 0, total: int | None = None) -> None:
        """Report what is being done."""
        self.on_progress(Progress(self.file.path, doing, done, total))

    def place(self, write: Callable[[Path], None]) -> Path:
        """See `place_file`."""
        if self.file.shipped or not self.file.most:
            why = "declares no address and size: it is not to be downloaded"
            raise DataError(f"{self.file.path} {why}")
        return place_file(self.file, self.cache, write, self.tell)

    def bring(self, asked: Sequence[Place], name: str | None, output: Path) -> None:
        """Write the verified content from the first place that has it."""
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
        """The first candidate that is the file; one that is something else is worth more words."""
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
        """Unpack what an address sends; pieces that turn out wrong together get one fresh start."""
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
        """Write the verified content of what was downloaded or found; `WrongContent` if it is not."""
        if self.file.known_by == "form":
            self.tell("reading it, as no checksum is known")
        bound = self.limits.transfer_bound(self.file.most, member) * self.limits.unpacked_factor
        inside = chunks(source, member, bound, as_served=self.file.packed)
        write_verified(inside, output, self.file, self.accept)
