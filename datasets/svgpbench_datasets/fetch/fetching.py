"""Bringing verified data files into the cache: from a mirror, from upstream, or by hand."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from svgpbench_datasets.errors import DataError, printable
from svgpbench_datasets.fetch.cache import is_cached, locked, store, usable
from svgpbench_datasets.fetch.limits import DownloadLimits, OnProgress, Progress, silent
from svgpbench_datasets.fetch.origins import Origin, OriginAnswer, Unavailable, origins
from svgpbench_datasets.fetch.unpacking import chunks
from svgpbench_datasets.fetch.verification import (
    Absent,
    Accept,
    Refusal,
    WrongContent,
    nothing_accepted,
    write_verified,
)
from svgpbench_datasets.files import File


@dataclass(frozen=True)
class Fetcher:
    """Fetcher of verified files into a cache folder.

    A file is stored as `cache / file.path`, uncompressed unless it is packed. On a mirror it is looked up as
    `path.xz`, `path.gz` or `path`; a packed file only as `path`.
    """

    cache: Path
    mirrors: Sequence[str] = ()  # folders or http(s) addresses, tried before upstream
    limits: DownloadLimits = field(default_factory=DownloadLimits)
    accept: Accept = nothing_accepted  # checks the form of a file without a known checksum
    on_progress: OnProgress = silent

    def fetch(
        self,
        files: Sequence[File],
        name: str | None = None,
        failed: Callable[[File, Unavailable], None] | None = None,
    ) -> tuple[Path, ...]:
        """Fetch the files that are not cached; return the path of each file that could be obtained.

        A cached file needs neither network nor write permission. An archive that contains several of the
        files is downloaded once. `name` is that of the data set, for messages. `failed` is called with a
        file that no origin had, and the error; None to raise it.

        Raises:
            Unavailable: no origin had a file, and `failed` is None.
            DataError: a file cannot be downloaded, a mirror is invalid, or the cache cannot be used.
        """
        paths = []
        try:
            for file in files:
                try:
                    if not is_cached(file, self.cache):
                        candidates = origins(file, self.mirrors)
                        self._store(file, partial(self._write_from_first, file, candidates, name))
                    paths.append(self.cache / file.path)
                except Unavailable as error:
                    if failed is None:
                        raise
                    failed(file, error)
        finally:
            urls = {address.url for file in files for address in file.addresses if address.member}
            for url in urls:  # archives are kept until now for other members
                if (folder := self._download_folder(url)).exists():
                    # under the lock: another process may be unpacking from this archive
                    with usable(self.cache), locked(self.cache, url, lambda _: None):
                        shutil.rmtree(folder, ignore_errors=True)
        return tuple(paths)

    def adopt(self, source: Path, files: Sequence[File]) -> tuple[Path, ...]:
        """Copy files that the cache lacks from a manual download; return the paths of those copied.

        `source` may be plain, compressed, or upstream's archive; it is recognised by content, not by name.
        It is not changed.

        Raises:
            DataError: `source` does not exist or holds none of the files, or the cache cannot be used.
        """
        if not source.is_file():
            raise DataError(f"--from {source}: no such file; name what you downloaded")
        missing = [file for file in files if not is_cached(file, self.cache)]
        paths, reasons = [], []
        for file in missing:
            for member in dict.fromkeys([None, *(address.member for address in file.addresses)]):
                try:
                    paths.append(self._store(file, partial(self._unpack, file, source, member)))
                    break
                except WrongContent as error:
                    reasons.append(f"as {member or file.path}: {error}")
        if missing and not paths:
            raise DataError(f"--from {source} is not what is wanted ({'; '.join(reasons)})")
        return tuple(paths)

    def _tell(self, file: File, doing: str, done: int = 0, total: int | None = None) -> None:
        self.on_progress(Progress(file.path, printable(doing), done, total))

    def _store(self, file: File, write: Callable[[Path], None]) -> Path:
        if file.shipped or not file.most:
            why = "declares no address and size: it is not to be downloaded"
            raise DataError(f"{file.path} {why}")
        return store(file, self.cache, write, partial(self._tell, file))

    def _write_from_first(
        self, file: File, candidates: Sequence[Origin], name: str | None, output: Path
    ) -> None:
        """Write the content from the first origin that has it; raise `Unavailable` if none has."""
        answers = []
        for origin in candidates:
            try:
                self._write_from(file, origin, output)
                return
            except Refusal as refusal:
                answers.append(OriginAnswer(origin.name, str(refusal)))
                self._tell(file, f"{origin.name}: {refusal}")
        raise Unavailable(file.path, answers, name)

    def _write_from(self, file: File, origin: Origin, output: Path) -> None:
        """Write the content of the first candidate of an origin that is the file.

        If none is, a `WrongContent` is raised in preference to an `Absent`, as it says more.
        """
        refusals: list[Refusal] = []
        for candidate in origin.candidates:
            try:
                if isinstance(candidate, str):
                    self._download(file, candidate, origin.member, output)
                elif candidate.is_file():
                    self._unpack(file, candidate, origin.member, output)
                else:
                    raise Absent(f"has no {file.path}")
                return
            except (Absent, WrongContent) as refusal:
                refusals.append(refusal)
        raise max(refusals, key=lambda refusal: isinstance(refusal, WrongContent))

    def _download(self, file: File, url: str, member: str | None, output: Path) -> None:
        """Download an address and unpack it; an archive is kept for its other members."""
        from svgpbench_datasets.fetch.download import download  # imports pooch, which is slow

        bound = self.limits.transfer_bound(file.most, member)
        folder, tell = self._download_folder(url), partial(self._tell, file)
        # by address: two files of one archive share a download;
        # after the lock of the file, never before it, or two processes could wait for each other
        with locked(self.cache, url, tell):
            try:
                self._unpack(file, download(url, folder, bound, self.limits, tell), member, output)
            finally:
                if member is None:
                    shutil.rmtree(folder, ignore_errors=True)

    def _download_folder(self, url: str) -> Path:
        return self.cache / ".downloads" / hashlib.sha256(url.encode()).hexdigest()[:32]

    def _unpack(self, file: File, source: Path, member: str | None, output: Path) -> None:
        """Unpack and write the verified content; raise `WrongContent` if it is not the file."""
        if file.known_by == "form":
            self._tell(file, "reading it, as no checksum is known")
        bound = self.limits.transfer_bound(file.most, member) * self.limits.unpacked_factor
        content = chunks(source, member, bound, as_served=file.packed)
        write_verified(content, output, file, self.accept)
