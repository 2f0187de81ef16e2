"""Where data files are kept on this machine, and the places that may have one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

from platformdirs import user_cache_path

from svgpbench_datasets.errors import DataError
from svgpbench_datasets.files import DataFile, File

CACHE_VARIABLE, MIRROR_VARIABLE = "SVGPBENCH_DATA", "SVGPBENCH_MIRROR"
MIRRORED_AS = (".xz", ".gz", "")
"""What a mirror may add to the path of a file that is kept uncompressed, smallest first."""


def cache_folder(given: str | Path | None = None) -> Path:
    """The folder of downloaded files: the one given, SVGPBENCH_DATA, or the system's cache."""
    chosen = given or os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    return user_cache_path("svgpbench", appauthor=False) / "data"


def mirrors_from_environment() -> tuple[str, ...]:
    """The mirrors that SVGPBENCH_MIRROR names: folders and http(s) addresses between commas."""
    named = os.environ.get(MIRROR_VARIABLE, "").split(",")
    return tuple(mirror.strip() for mirror in named if mirror.strip())


@dataclass(frozen=True)
class Place:
    """One place to ask for a file.

    Attributes:
        name: for messages.
        candidates: addresses or local files, one of which may have it.
        member: its path inside the archive that a candidate is; None where it is the file itself.
    """

    name: str
    candidates: tuple[str | Path, ...]
    member: str | None = None


def places(file: File, mirrors: Sequence[str]) -> Iterator[Place]:
    """Every place to ask, in order: the user's mirrors first, then the addresses of upstream.

    Raises:
        DataError: a mirror that is neither a folder nor an http(s) address.
    """
    packed = isinstance(file, DataFile) and file.packed
    endings = ("",) if packed else MIRRORED_AS
    for mirror in [checked_mirror(mirror) for mirror in mirrors]:
        if isinstance(mirror, Path):
            candidates = tuple(mirror / f"{file.path}{ending}" for ending in endings)
            yield Place(f"mirror {mirror}", candidates)
        else:
            base = f"{mirror.rstrip('/')}/{quote(file.path)}"
            yield Place(f"mirror {mirror}", tuple(f"{base}{ending}" for ending in endings))
    for address in file.addresses:
        inside = f" ({address.member} in it)" if address.member else ""
        yield Place(f"{address.url}{inside}", (address.url,), address.member)


def checked_mirror(mirror: str) -> str | Path:
    """A mirror's address as it stands, or its folder.

    Raises:
        DataError: neither.
    """
    if urlsplit(mirror).scheme in ("http", "https"):
        return mirror
    folder = Path(mirror).expanduser()
    if not mirror or "://" in mirror or not folder.is_dir():
        raise DataError(
            f"mirror {mirror!r} is neither a folder nor an http(s) address; name one "
            f"(in {MIRROR_VARIABLE}, commas stand between several)"
        )
    return folder
