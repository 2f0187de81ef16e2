"""Records of a stability map: one JSON line per cell, one append-only file per library."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from svgpbench.benchmarks.stability.plan import AxisPoint, StabilityCell
from svgpbench.errors import UserError

LIVED = "lived"


class StabilityRecord(NamedTuple):
    """Result of a cell's run."""

    cell: StabilityCell
    end: str  # `lived`, or one of `CAUSES`
    step: int  # the last one, from 1; 0 if the run failed before the first
    message: str = ""  # of the exception, in one line
    bounds: tuple[float, ...] = ()  # at the start and at each check
    smallest_variance: float | None = None  # of q(f) at the failing minibatch, before it
    seconds: float = 0.0  # of the whole process
    n: int = 0  # number of data
    versions: dict[str, str] | None = None

    @property
    def lived(self) -> bool:
        """True if the run completed all its steps without diverging."""
        return self.end == LIVED

    @property
    def bound_a_datum(self) -> float:
        """Last computed bound, in nats per datum."""
        return self.bounds[-1] / self.n


NOT_PD = "not positive definite"
VARIANCE = "negative variance"
NAN = "NaN"
DIVERGED = "diverged"
TIME = "time-out"
KILLED = "killed"
ERROR = "error"
CAUSES = (NOT_PD, VARIANCE, NAN, DIVERGED, ERROR, TIME, KILLED)
NO_VERDICT = (ERROR, TIME, KILLED)
"""Causes that say nothing about the natural gradient."""


def stopped_short(record: StabilityRecord, limit_s: float) -> bool:
    """Return True if a run timed out before `limit_s`. It has no verdict and may run again."""
    return record.end == TIME and record.seconds < limit_s


def append(folder: Path, record: StabilityRecord) -> None:
    """Append a record to its library's file. Raises `UserError` if it cannot be written."""
    facts = record._asdict()
    del facts["cell"]
    filled = {name: value for name, value in facts.items() if value not in (None, "", ())}
    append_line(folder / f"{record.cell.library}.jsonl", record.cell.key() | filled)


def append_line(path: Path, content: dict[str, Any]) -> None:
    """Append a line of JSON to a file. Raises `UserError` if it cannot be written."""
    line = json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    line = "\n" + line  # the last line is incomplete, as its writer was stopped
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error


def read(folder: Path) -> dict[StabilityCell, StabilityRecord]:
    """Read the last record of every cell in a folder. Incomplete or invalid lines are skipped."""
    return {record.cell: record for facts in read_lines(folder) for record in _parsed(facts)}


def read_lines(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the JSON object on each line of a folder's files, without lines that do not parse.

    Raises `UserError` if a file cannot be read.
    """
    for path in sorted(folder.glob("*.jsonl")):
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror}") from None
        for line in text.splitlines():
            with suppress(ValueError, RecursionError):
                content = json.loads(line)
                if isinstance(content, dict):
                    yield content


_FORM = TypeAdapter(StabilityRecord)


def _parsed(facts: dict[str, Any]) -> Iterator[StabilityRecord]:
    """Yield the record of a line, or nothing if the line is no valid record."""
    try:
        point = AxisPoint(**{axis: facts.pop(axis) for axis in AxisPoint.model_fields})
        cell = StabilityCell(
            point=point, **{k: facts.pop(k) for k in StabilityCell._fields if k in facts}
        )
        bounds = tuple(facts.pop("bounds", ()))
        yield _FORM.validate_python(StabilityRecord(cell, bounds=bounds, **facts), strict=True)
    except (ValueError, KeyError, TypeError, AttributeError):
        return
