"""How long and how large a download may be, and what is told while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from svgpbench_datasets.files import File, UnseenFile

MiB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """When to give an address up; times in seconds.

    Attributes:
        connect_s: for a connection to be made.
        silence_s: between two arrivals of bytes.
        patience_s: after which a transfer slower than `slowest` is given up.
        slowest: bytes a second.
        attempts: at one address; a broken transfer goes on where it broke.
        pause_s: before the second attempt, doubled before each further one.
        redirects: followed, to http and https only.
        archive_bytes: the largest archive that is read for a member.
        unpacked_factor: how many times an archive's bound may be uncompressed on the way to a member.
    """

    connect_s: float = 10.0
    silence_s: float = 30.0
    patience_s: float = 20.0
    slowest: float = 10_000.0
    attempts: int = 4
    pause_s: float = 1.0
    redirects: int = 5
    archive_bytes: int = 1024 * MiB
    unpacked_factor: int = 8

    def transfer_bound(self, file: File, member: str | None) -> int:
        """The most bytes that an address may send for a file.

        The content and a little, as compressing can add some; an archive may hold much else.
        """
        alone = size_of(file) * 102 // 100 + MiB
        return alone if member is None else max(alone, self.archive_bytes)


@dataclass(frozen=True)
class Progress:
    """What a download does: `done` of `total` bytes of a transfer, None where it is not known."""

    path: str
    doing: str
    done: int = 0
    total: int | None = None


OnProgress: TypeAlias = Callable[[Progress], None]


def silent(_: Progress) -> None:
    """Tell nobody."""


def size_of(file: File) -> int:
    """The declared size of what is kept of a file, or the most that it may be."""
    size = file.at_most if isinstance(file, UnseenFile) else file.bytes
    if size is None:
        raise ValueError(f"{file.path} declares no size")
    return size
