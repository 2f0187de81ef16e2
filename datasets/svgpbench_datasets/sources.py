"""Access to the bytes of data files: from the package, the cache, mirrors or upstream."""

from __future__ import annotations

import hashlib
import io
import lzma
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import IO

from svgpbench_datasets.entry import DatasetEntry
from svgpbench_datasets.errors import DataError
from svgpbench_datasets.fetch.cache import cache_folder, is_cached, sha256_of
from svgpbench_datasets.fetch.fetching import Fetcher
from svgpbench_datasets.fetch.limits import DownloadLimits, OnProgress, silent
from svgpbench_datasets.fetch.origins import mirrors_from_environment, origins
from svgpbench_datasets.fetch.unpacking import Bounded, content
from svgpbench_datasets.fetch.verification import WrongContent
from svgpbench_datasets.files import File, UnseenFile

_LONGEST_CELL = 32  # bytes: digits, sign and exponent of a float64, and a comma


def check_form(entry: DatasetEntry, file: UnseenFile, path: Path) -> None:
    """Read all columns of an uncompressed file; raise `DataError` if its form is not as declared."""
    from svgpbench_datasets.reading.tables import read_blocks

    index = entry.files.index(file)  # validated: an unseen file is a part of its own
    alone = {
        "files": (file,),
        "parts": (),
        "rows": entry.part_rows[index],
        "reader": entry.reader_of(index),
        "skip_lines": entry.skipped_of(index),
        "features": tuple(column for column in entry.columns if column != entry.target),
    }
    for _ in read_blocks(entry.model_copy(update=alone), lambda _: path.open("rb")):
        pass


@dataclass(frozen=True)
class Sources:
    """Access to data files by way of the package, the cache and mirrors."""

    shipped: Traversable  # folder of the files that come with the package
    cache: Path | None = None  # folder of downloaded files; None for the default
    mirrors: tuple[str, ...] | None = None  # tried first; None for those of SVGPBENCH_MIRROR
    limits: DownloadLimits = field(default_factory=DownloadLimits)
    on_progress: OnProgress = silent

    def read(self, file: File, entry: DatasetEntry) -> bytes:
        """Return the verified, uncompressed content of a file; raise `DataError` if it cannot be had."""
        with self.opened(file, entry) as stream:
            return stream.read()

    @contextmanager
    def opened(self, file: File, entry: DatasetEntry) -> Iterator[IO[bytes]]:
        """Open the verified, uncompressed content of a file as a stream; errors as `read`."""
        if file.shipped:
            yield io.BytesIO(self._shipped(file))
            return
        self.fetch([file], entry)
        path = self.cache_folder() / file.path
        if not file.packed:
            with path.open("rb") as stream:
                yield stream
            return
        splits = entry.splits.count if entry.splits else 0
        # the file may be one of masks, with a column for each split
        bound = entry.rows * max(len(entry.columns), splits) * _LONGEST_CELL
        why = f"uncompressed it is more than the {bound:,} bytes that {entry.rows:,} rows may take"
        try:
            with content(path, None, bound) as plain:
                yield io.BufferedReader(Bounded(plain, bound, why))
        except WrongContent as refusal:
            raise DataError(f"{file.path}: {refusal}") from None

    def sha256(self, file: File, entry: DatasetEntry) -> str:
        """Return the declared SHA-256 of a file, or the one recorded when its content was accepted."""
        if file.known_by == "form":
            self.fetch([file], entry)
        return str(sha256_of(file, self.cache_folder()))

    def fetch(self, files: Sequence[File], entry: DatasetEntry) -> None:
        """Download those files that are neither shipped nor cached; an archive is downloaded once."""
        fetcher = Fetcher(
            self.cache_folder(),
            self._mirrors(),
            self.limits,
            accept=partial(check_form, entry),
            on_progress=self.on_progress,
        )
        fetcher.fetch([file for file in files if not file.shipped], entry.name)

    def at_hand(self, file: File) -> bool:
        """Return True if a file can be read without a network: shipped, cached, or in a mirror folder."""
        if file.shipped or is_cached(file, self.cache_folder()):
            return True
        candidates = (
            path for origin in origins(file, self._mirrors()) for path in origin.candidates
        )
        return any(isinstance(path, Path) and path.is_file() for path in candidates)

    def cache_folder(self) -> Path:
        """Return the folder of downloaded files."""
        return cache_folder(self.cache)

    def _mirrors(self) -> tuple[str, ...]:
        return mirrors_from_environment() if self.mirrors is None else self.mirrors

    def _shipped(self, file: File) -> bytes:
        again = "install the package again"
        try:
            raw = lzma.decompress(self.shipped.joinpath(file.path).read_bytes())
        except (OSError, EOFError, lzma.LZMAError) as error:
            raise DataError(f"shipped file {file.path} cannot be read ({error}); {again}") from None
        actual, declared = hashlib.sha256(raw).hexdigest(), file.checksums["sha256"]
        if actual != declared:
            raise DataError(
                f"shipped file {file.path} has changed: sha256 {actual} where {declared} is "
                f"declared; {again}"
            )
        return raw
