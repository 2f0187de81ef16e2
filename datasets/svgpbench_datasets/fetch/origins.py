"""Origins of a file: mirrors, then upstream addresses; and their answers if none has it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from svgpbench_datasets.errors import DataError
from svgpbench_datasets.files import File

MIRROR_VARIABLE = "SVGPBENCH_MIRROR"
MIRRORED_AS = (".xz", ".gz", "")
"""Endings that a mirror may add to the path of a file that is not packed, in order of preference."""


class Origin(NamedTuple):
    """Mirror or upstream address that may have a file."""

    name: str  # for messages
    candidates: tuple[str | Path, ...]  # addresses or local paths, tried in order
    member: str | None = None  # path of the file inside an archive


@dataclass(frozen=True)
class OriginAnswer:
    """Origin that was tried, and the reason why it did not give the file."""

    place: str
    why: str


class Unavailable(DataError):  # noqa: N818 - said as a user would
    """Error that no origin had the file `path`.

    The message has the answer of each origin, in order, and how to supply the file by hand.
    """

    def __init__(self, path: str, answers: Sequence[OriginAnswer], name: str | None = None) -> None:
        self.path, self.answers = path, tuple(answers)
        tried = "; ".join(f"{answer.place}: {answer.why}" for answer in answers)
        super().__init__(
            f"{path} could not be had ({tried or 'no place is known that serves it'}); get it by "
            f"other means, then run `svgpbench fetch {name or 'NAME'} --from FILE`, or name a "
            f"mirror with --mirror or {MIRROR_VARIABLE}"
        )


def mirrors_from_environment() -> tuple[str, ...]:
    """Return the mirrors in SVGPBENCH_MIRROR: folders and http(s) addresses separated by commas."""
    names = os.environ.get(MIRROR_VARIABLE, "").split(",")
    return tuple(mirror.strip() for mirror in names if mirror.strip())


def origins(file: File, mirrors: Sequence[str]) -> tuple[Origin, ...]:
    """Return the origins to try, in order: the mirrors, then the upstream addresses.

    Raises `DataError` for a mirror that is neither a folder nor an http(s) address.
    """
    paths = [f"{file.path}{ending}" for ending in (("",) if file.packed else MIRRORED_AS)]
    result = []
    for mirror in mirrors:
        try:
            folder = Path(mirror).expanduser()
        except RuntimeError:  # `~name` of a user that does not exist
            folder = Path(mirror)
        candidates: list[str | Path] = [folder / path for path in paths]
        if mirror.lower().startswith(("http://", "https://")):
            candidates = [f"{mirror.rstrip('/')}/{quote(path)}" for path in paths]
        elif not mirror or "://" in mirror or not folder.is_dir():
            raise DataError(
                f"mirror {mirror!r} is neither a folder nor an http(s) address; name one "
                f"(in {MIRROR_VARIABLE}, commas stand between several)"
            )
        result.append(Origin(f"mirror {mirror}", tuple(candidates)))
    for address in file.addresses:
        inside = f" ({address.member} in it)" if address.member else ""
        result.append(Origin(f"{address.url}{inside}", (address.url,), address.member))
    return tuple(result)
