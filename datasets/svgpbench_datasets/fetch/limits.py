"""How long and how large a download may be, and what is told while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

MiB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """When to give an address up."""

    connect_s: float = 10.0  # for a connection to be made
    silence_s: float = 30.0  # between two arrivals of bytes
    patience_s: float = 20.0  # after which a transfer slower than `slowest` is given up
    slowest: float = 10_000.0  # bytes a second
    attempts: int = 4  # a broken transfer goes on where it broke
    pause_s: float = 1.0  # before the third attempt, then doubled; the second comes at once
    longest_pause_s: float = 60.0  # whatever a server asks for
    redirects: int = 5  # followed, to http and https only
    archive_bytes: int = 1024 * MiB  # the largest archive that is read for a member
    unpacked_factor: int = 8  # how many times that may be uncompressed on the way to a member

    def transfer_bound(self, most: int, member: str | None) -> int:
        """The most bytes that an address may send for a file of at most so many.

        The content and a little, as compressing can add some; an archive may hold much else.
        """
        alone = most * 102 // 100 + MiB
        return alone if member is None else max(alone, self.archive_bytes)


USUAL = Limits()


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
