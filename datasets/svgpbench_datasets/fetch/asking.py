"""Ask one place after the other for a file until one gives the declared content."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path

from svgpbench_datasets.fetch.answers import Absent, Answer, Refusal, Unavailable, WrongContent
from svgpbench_datasets.fetch.limits import Limits, OnProgress, Progress
from svgpbench_datasets.fetch.locking import locked
from svgpbench_datasets.fetch.partial import Partial
from svgpbench_datasets.fetch.places import Place
from svgpbench_datasets.fetch.transfer import download
from svgpbench_datasets.fetch.unpacking import content
from svgpbench_datasets.fetch.verifying import Accept, write_accepted, write_verified
from svgpbench_datasets.files import DataFile, File


@dataclass(frozen=True)
class Wish:
    """A file that is wanted, and how: see `fetch_file`."""

    file: File
    cache: Path
    places: Sequence[Place]
    name: str | None
    limits: Limits
    keep: Container[str]
    accept: Accept
    on_progress: OnProgress

    def tell(self, doing: str, done: int = 0, total: int | None = None) -> None:
        """Report what is being done for this file."""
        self.on_progress(Progress(self.file.path, doing, done, total))

    def unpack(self, source: Path, member: str | None, output: Path) -> None:
        """See `unpack`."""
        if not isinstance(self.file, DataFile):
            self.tell("reading it, as no checksum is known")
        unpack(source, member, output, file=self.file, limits=self.limits, accept=self.accept)


def bring(wish: Wish, output: Path) -> None:
    """Write the verified content of a file from the first place that has it.

    Raises:
        Unavailable: none had it; then there is no output.
    """
    answers = []
    for place in wish.places:
        try:
            _from_place(place, wish, output)
            return
        except Refusal as refusal:
            answers.append(Answer(place.name, str(refusal)))
            wish.tell(f"{place.name}: {refusal}")
    raise Unavailable(wish.file.path, answers, wish.name)


def unpack(
    source: Path,
    member: str | None,
    output: Path,
    *,
    file: File,
    limits: Limits,
    accept: Accept,
) -> None:
    """Write the verified content of what was downloaded or found to a new file.

    Raises:
        WrongContent: it is not the file; then there is no output.
        DataError: the output cannot be written.
    """
    output.unlink(missing_ok=True)  # a temporary file is its owner's alone, a new one follows umask
    bound = limits.transfer_bound(file, member) * limits.unpacked_factor
    try:
        if isinstance(file, DataFile):
            with content(source, member, bound, as_served=file.packed) as stream:
                write_verified(stream, output, file)
        else:
            with content(source, member, bound) as stream:
                write_accepted(stream, output, file, accept)
    except BaseException:
        output.unlink(missing_ok=True)
        raise


def _from_place(place: Place, wish: Wish, output: Path) -> None:
    """The first candidate that is the file; one that is something else is worth more words."""
    refusals: list[Absent | WrongContent] = []
    for candidate in place.candidates:
        try:
            if isinstance(candidate, Path):
                _from_folder(candidate, place.member, wish, output)
            else:
                _from_url(candidate, place.member, wish, output)
            return
        except (Absent, WrongContent) as refusal:
            refusals.append(refusal)
    raise next((r for r in refusals if isinstance(r, WrongContent)), refusals[-1])


def _from_folder(source: Path, member: str | None, wish: Wish, output: Path) -> None:
    if not source.is_file():
        raise Absent(f"has no {wish.file.path}")
    wish.unpack(source, member, output)


def _from_url(url: str, member: str | None, wish: Wish, output: Path) -> None:
    """Download, then unpack; bytes pieced together that turn out wrong get one fresh start."""
    partial = Partial(wish.cache, url)
    bound = wish.limits.transfer_bound(wish.file, member)
    with locked(wish.cache, partial.key, lambda: wish.tell("waiting for another process")):
        for fresh in (False, True):
            resumed = download(url, partial, bound, wish.limits, wish.tell)
            try:
                wish.unpack(partial.body, member, output)
            except WrongContent:
                partial.drop()
                if fresh or not resumed:
                    raise
            else:
                break
        if url not in wish.keep:
            partial.drop()
