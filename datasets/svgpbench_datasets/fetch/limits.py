"""Limits on the time and size of a download, and its progress reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

MiB = 1 << 20


@dataclass(frozen=True)
class DownloadLimits:
    """Limits after which an address is given up."""

    connect_s: float = 10.0  # to establish a connection
    silence_s: float = 30.0  # without any byte received
    attempts: int = 4  # a broken transfer starts again from its first byte
    longest_pause_s: float = 60.0  # before another attempt, also if a server asks for more
    redirects: int = 5  # most redirects followed, to http and https only
    archive_bytes: int = 1024 * MiB  # size of the largest archive to download
    unpacked_factor: int = 8  # most uncompressed bytes, as a multiple of the transfer bound

    def transfer_bound(self, most: int, member: str | None) -> int:
        """Return the most bytes that an address may send for a file of at most `most` bytes.

        It is 2% and 1 MiB more than `most`, as compression may add bytes. For a `member` of an archive it is
        at least `archive_bytes`.
        """
        alone = most * 102 // 100 + MiB
        return alone if member is None else max(alone, self.archive_bytes)


@dataclass(frozen=True)
class Progress:
    """Progress of a file: `done` of `total` bytes; `total` is None if it is not known."""

    path: str
    doing: str
    done: int = 0
    total: int | None = None


OnProgress: TypeAlias = Callable[[Progress], None]


def silent(_: Progress) -> None:
    """Ignore a progress report."""
