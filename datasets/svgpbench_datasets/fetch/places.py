"""The places that may have a file, in the order in which they are asked, and what they answered."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from svgpbench_datasets.errors import DataError
from svgpbench_datasets.files import File

MIRROR_VARIABLE = "SVGPBENCH_MIRROR"
MIRRORED_AS = (".xz", ".gz", "")
"""What a mirror may add to the path of a file that is kept uncompressed, smallest first."""


class Place(NamedTuple):
    """One place to ask for a file."""

    name: str  # for messages
    candidates: tuple[str | Path, ...]  # addresses or local files, one of which may have it
    member: str | None = None  # its path inside the archive that a candidate is


@dataclass(frozen=True)
class Answer:
    """A place that was asked, and why it did not give the file."""

    place: str
    why: str


class Unavailable(DataError):  # noqa: N818 - said as a user would
    """No place had the file `path`: what each answered, in order, and how to supply it by hand."""

    def __init__(self, path: str, answers: Sequence[Answer], name: str | None = None) -> None:
        self.path, self.answers = path, tuple(answers)
        tried = "; ".join(f"{answer.place}: {answer.why}" for answer in answers)
        super().__init__(
            f"{path} could not be had ({tried or 'no place is known that serves it'}); get it by "
            f"other means, then run `svgpbench fetch {name or 'NAME'} --from FILE`, or name a "
            f"mirror with --mirror or {MIRROR_VARIABLE}"
        )


def mirrors_from_environment() -> tuple[str, ...]:
    """The mirrors that SVGPBENCH_MIRROR names: folders and http(s) addresses between commas."""
    named = os.environ.get(MIRROR_VARIABLE, "").split(",")
    return tuple(mirror.strip() for mirror in named if mirror.strip())


def places(file: File, mirrors: Sequence[str]) -> tuple[Place, ...]:
    """Every place to ask, in order: the user's mirrors first, then the addresses of upstream."""
    endings = ("",) if file.packed else MIRRORED_AS
    found = [
        Place(f"mirror {mirror}", tuple(_below(mirror, f"{file.path}{end}") for end in endings))
        for mirror in mirrors
    ]
    for address in file.addresses:
        inside = f" ({address.member} in it)" if address.member else ""
        found.append(Place(f"{address.url}{inside}", (address.url,), address.member))
    return tuple(found)


def _below(mirror: str, path: str) -> str | Path:
    """The address or the local file that a mirror has for a path."""
    if urlsplit(mirror).scheme in ("http", "https"):
        return f"{mirror.rstrip('/')}/{quote(path)}"
    folder = Path(mirror).expanduser()
    if not mirror or "://" in mirror or not folder.is_dir():
        raise DataError(
            f"mirror {mirror!r} is neither a folder nor an http(s) address; name one "
            f"(in {MIRROR_VARIABLE}, commas stand between several)"
        )
    return folder / path
