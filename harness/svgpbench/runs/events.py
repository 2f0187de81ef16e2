"""What a run tells its caller while it goes on, and when it has ended."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from svgpbench.config import CellConfig
from svgpbench.experiments.identity import Identity
from svgpbench.results.records import Record


@dataclass(frozen=True)
class Planned:
    """A run begins: it has `total` cells to run, `resumed` more have a final record already."""

    total: int
    resumed: int
    jobs: int


@dataclass(frozen=True)
class Started:
    """A cell begins, in job `job`; `done` of `total` have ended."""

    cell_id: str
    config: CellConfig
    job: int
    done: int
    total: int


@dataclass(frozen=True)
class Finished:
    """A cell has ended and its record is on disk; `done` of `total` have, this one included."""

    record: Record
    job: int
    done: int
    total: int
    elsewhere: bool = False  # another run on the same folder made it


@dataclass(frozen=True)
class Noticed:
    """Something that the user should know, and that does not end the run: one line."""

    line: str


@dataclass(frozen=True)
class SetAside:
    """A file in a record's place was no whole record: it has another name now, and its cell runs again."""

    path: Path  # its new name
    reason: str


Event: TypeAlias = SetAside | Planned | Started | Finished | Noticed


@dataclass(frozen=True)
class Summary:
    """What a run did: the records it wrote, and how many cells it left as they were."""

    cells: tuple[Identity, ...]  # all that were asked for, each once
    records: list[Record]
    resumed: int
    total: int  # cells that were to run
    interrupted: bool
    elsewhere: int = 0  # cells that another run on the same folder made meanwhile

    @property
    def counts(self) -> dict[str, int]:
        """Number of records this run wrote, by status."""
        return dict(Counter(record.status for record in self.records))
