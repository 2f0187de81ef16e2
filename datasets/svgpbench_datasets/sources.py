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
from svgpbench_datasets.fetch.fetching import fetch_files
from svgpbench_datasets.fetch.limits import Limits, OnProgress, silent
from svgpbench_datasets.fetch.places import mirrors_from_environment, places
from svgpbench_datasets.fetch.proof import WrongContent
from svgpbench_datasets.fetch.unpacking import Bounded, content
from svgpbench_datasets.files import File, UnseenFile

_MOST_OF_A_CELL = 32  # bytes: digits, sign and exponent of a float64, and a comma


def check_form(entry: DatasetEntry, file: UnseenFile, path: Path) -> None:
    """Read all columns of an uncompressed file; raise `DataError` if its form is not as declared."""
    from svgpbench_datasets.reading.tables import read_blocks

    at = entry.files.index(file)  # validated: an unseen file is a part of its own
    alone = {
        "files": (file,),
        "parts": (),
        "rows": entry.part_rows[at],
        "reader": entry.reader_of(at),
        "skip_lines": entry.skipped_of(at),
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
    limits: Limits = field(default_factory=Limits)
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
        with self._unpacked(path, file, entry) if file.packed else path.open("rb") as stream:
            yield stream

    def sha256(self, file: File, entry: DatasetEntry) -> str:
        """Return the declared SHA-256 of a file, or the one recorded when its content was accepted."""
        if file.known_by == "form":
            self.fetch([file], entry)
        return str(sha256_of(file, self.cache_folder()))

    def fetch(self, files: Sequence[File], entry: DatasetEntry) -> None:
        """Download those files that are neither shipped nor cached; an archive is downloaded once."""
        fetch_files(
            [file for file in files if not file.shipped],
            cache=self.cache_folder(),
            mirrors=self._mirrors(),
            name=entry.name,
            limits=self.limits,
            accept=partial(check_form, entry),
            on_progress=self.on_progress,
        )

    def at_hand(self, file: File) -> bool:
        """Return True if a file can be read without a network: shipped, cached, or in a mirror folder."""
        if file.shipped or is_cached(file, self.cache_folder()):
            return True
        candidates = (one for place in places(file, self._mirrors()) for one in place.candidates)
        return any(isinstance(one, Path) and one.is_file() for one in candidates)

    def cache_folder(self) -> Path:
        """Return the folder of downloaded files."""
        return cache_folder(self.cache)

    def _mirrors(self) -> tuple[str, ...]:
        return mirrors_from_environment() if self.mirrors is None else self.mirrors

    @contextmanager
    def _unpacked(self, path: Path, file: File, entry: DatasetEntry) -> Iterator[IO[bytes]]:
        """Open the content of a file cached compressed; raise `DataError` if too large for its rows."""
        splits = entry.splits.count if entry.splits else 0
        bound = entry.rows * max(len(entry.columns), splits) * _MOST_OF_A_CELL
        why = f"uncompressed it is more than the {bound:,} bytes that {entry.rows:,} rows may take"
        try:
            with content(path, None, bound) as plain:
                yield io.BufferedReader(Bounded(plain, bound, why))
        except WrongContent as refusal:
            raise DataError(f"{file.path}: {refusal}") from None

    def _shipped(self, file: File) -> bytes:
        again = "install the package again"
        try:
            raw = lzma.decompress(self.shipped.joinpath(file.path).read_bytes())
        except (OSError, EOFError, lzma.LZMAError) as error:
            raise DataError(f"shipped file {file.path} cannot be read ({error}); {again}") from None
        found, declared = hashlib.sha256(raw).hexdigest(), file.checksums["sha256"]
        if found != declared:
            raise DataError(
                f"shipped file {file.path} has changed: sha256 {found} where {declared} is "
                f"declared; {again}"
            )
        return raw
