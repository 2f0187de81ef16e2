"""Events that a run reports to its caller, and the summary at its end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from svgpbench.config import CellConfig
from svgpbench.experiments.identity import CellIdentity
from svgpbench.results.records import Record


@dataclass(frozen=True)
class Planned:
    """A run begins with `total` cells. `resumed` other cells already have final records."""

    total: int
    resumed: int
    jobs: int


@dataclass(frozen=True)
class Started:
    """A cell begins in job `job`; `done` of `total` cells have ended."""

    cell_id: str
    config: CellConfig
    job: int
    done: int
    total: int


@dataclass(frozen=True)
class Finished:
    """A cell has ended and its record is written; `done` of `total` cells have ended, including it."""

    record: Record
    job: int
    done: int
    total: int
    elsewhere: bool = False  # made by another run on the same folder


@dataclass(frozen=True)
class Noticed:
    """One line for the user; the run goes on."""

    line: str


@dataclass(frozen=True)
class SetAside:
    """A damaged record was renamed, and its cell runs again."""

    path: Path  # its new name
    reason: str


Event: TypeAlias = SetAside | Planned | Started | Finished | Noticed


@dataclass(frozen=True)
class Summary:
    """The records that a run wrote, and the numbers of its cells."""

    cells: tuple[CellIdentity, ...]  # the distinct cells of the run
    records: list[Record]
    resumed: int
    total: int  # cells without a final record at the start
    interrupted: bool
    elsewhere: int = 0  # cells that other runs on the same folder computed

    @property
    def counts(self) -> dict[str, int]:
        """Number of records this run wrote, by status."""
        return dict(Counter(record.status for record in self.records))
