"""Where the bytes of a data file come from: the package, the cache and its sources, or the user."""

from __future__ import annotations

import hashlib
import io
import lzma
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import IO

from svgpbench_datasets.errors import DataError
from svgpbench_datasets.fetch import (
    Limits,
    cache_folder,
    fetch_files,
    is_cached,
    mirrors_from_environment,
)
from svgpbench_datasets.fetch.limits import OnProgress, silent
from svgpbench_datasets.fetch.places import MIRRORED_AS, checked_mirror
from svgpbench_datasets.fetch.unpacking import content
from svgpbench_datasets.files import DataFile, LocalFile

_MOST_LOCAL_BYTES = 1 << 34


@dataclass(frozen=True)
class Sources:
    """The places of data files.

    Attributes:
        shipped: the folder of files that come with the package.
        cache: the folder of downloaded files; None for the usual one.
        mirrors: folders and http(s) addresses to ask first; None for those of the environment.
        limits: times and sizes of downloads.
        on_progress: called with what a download does.
    """

    shipped: Traversable
    cache: Path | None = None
    mirrors: tuple[str, ...] | None = None
    limits: Limits = field(default_factory=Limits)
    on_progress: OnProgress = silent

    def read(self, file: DataFile | LocalFile, name: str) -> bytes:
        """The uncompressed content of a file of data set `name`, verified where a hash is known.

        Raises:
            DataError: it is nowhere to be had, or is not what is declared.
        """
        with self.opened(file, name) as stream:
            return stream.read()

    @contextmanager
    def opened(self, file: DataFile | LocalFile, name: str) -> Iterator[IO[bytes]]:
        """The uncompressed content of a file as a stream; as `read`."""
        if isinstance(file, LocalFile):
            with self._local(file, name) as stream:
                yield stream
        elif not file.addresses:
            yield io.BytesIO(self._shipped(file))
        else:
            self.fetch([file], name)
            with (self.cache_folder() / file.path).open("rb") as stream:
                yield stream

    def sha256(self, file: DataFile | LocalFile, name: str) -> str:
        """The hash of a file's content: the declared one, or that of what is there."""
        if file.sha256 is not None:
            return file.sha256
        with self.opened(file, name) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]

    def fetch(self, files: list[DataFile], name: str) -> None:
        """Bring files that have addresses into the cache; those that are there are left alone."""
        wanted = [file for file in files if file.addresses]
        fetch_files(
            wanted,
            cache=self.cache_folder(),
            mirrors=self._mirrors(),
            name=name,
            limits=self.limits,
            on_progress=self.on_progress,
        )

    def at_hand(self, file: DataFile | LocalFile) -> bool:
        """Whether a file can be read without a network: shipped, cached, or in a folder."""
        if isinstance(file, DataFile) and (
            not file.addresses or is_cached(file, self.cache_folder())
        ):
            return True
        return self._in_folder(file) is not None

    def cache_folder(self) -> Path:
        """The folder of downloaded files."""
        return cache_folder(self.cache)

    def _mirrors(self) -> tuple[str, ...]:
        return mirrors_from_environment() if self.mirrors is None else self.mirrors

    def _in_folder(self, file: DataFile | LocalFile) -> Path | None:
        folders = [one for one in map(checked_mirror, self._mirrors()) if isinstance(one, Path)]
        for folder in [*folders, self.cache_folder()]:
            for ending in MIRRORED_AS:
                candidate = folder / f"{file.path}{ending}"
                if candidate.is_file():
                    return candidate
        return None

    @contextmanager
    def _local(self, file: LocalFile, name: str) -> Iterator[IO[bytes]]:
        found = self._in_folder(file)
        if found is None:
            addresses = " or ".join(address.url for address in file.addresses)
            origin = f" (from {addresses})" if addresses else ""
            raise DataError(
                f"data set {name!r} needs {file.path}, of which no hash is known, so it is not "
                f"downloaded: put it{origin} below a folder that SVGPBENCH_MIRROR names"
            )
        try:
            with content(found, None, _MOST_LOCAL_BYTES) as plain:
                yield plain
        except OSError as error:
            raise DataError(f"{found} cannot be read: {error.strerror or error}") from None

    def _shipped(self, file: DataFile) -> bytes:
        try:
            raw = lzma.decompress(self.shipped.joinpath(file.path).read_bytes())
        except (OSError, EOFError, lzma.LZMAError) as error:
            raise DataError(
                f"shipped file {file.path} cannot be read ({error}); install the package again"
            ) from None
        found = hashlib.sha256(raw).hexdigest()
        if found != file.sha256:
            raise DataError(
                f"shipped file {file.path} has changed: sha256 {found} where {file.sha256} is "
                "declared; install the package again"
            )
        return raw
