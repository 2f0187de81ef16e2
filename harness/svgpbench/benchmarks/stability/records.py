"""Records of a survival map: a line of JSON a cell, a file a library, only ever added to."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from svgpbench.benchmarks.stability.plan import Cell, Point
from svgpbench.errors import UserError

LIVED = "lived"


class Record(NamedTuple):
    """How the walk of a cell ended."""

    cell: Cell
    end: str  # `lived`, or what of it died: one of `CAUSES`
    step: int  # the last one, from 1; 0 where it died before the first
    message: str = ""  # of the exception, in one line
    bounds: tuple[float, ...] = ()  # at the start and at each look
    smallest_variance: float | None = None  # of q(f) at the minibatch that killed, before it did
    seconds: float = 0.0  # of the whole process
    n: int = 0  # data
    versions: dict[str, str] | None = None

    @property
    def lived(self) -> bool:
        """Whether it took all its steps."""
        return self.end == LIVED

    @property
    def bound_a_datum(self) -> float:
        """The last bound that was looked at, in nats a datum."""
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
"""Ends that say nothing of a natural gradient."""


def stopped_short(record: Record, limit_s: float) -> bool:
    """Whether a walk was stopped for time before `limit_s`: it says nothing, and may go on."""
    return record.end == TIME and record.seconds < limit_s


def append(folder: Path, record: Record) -> None:
    """Add a record to its library's file; raises `UserError` where it cannot be written."""
    facts = {k: v for k, v in record._asdict().items() if k != "cell" and v not in (None, "", ())}
    append_line(folder / f"{record.cell.library}.jsonl", {**record.cell.key(), **facts})


def append_line(path: Path, content: dict[str, Any]) -> None:
    """Add a line of JSON to a file; raises `UserError` where it cannot be written."""
    line = json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+") as file:
            if file.tell() and not _ends_a_line(file):
                line = "\n" + line  # a process died in the middle of one
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error


def _ends_a_line(file: Any) -> bool:
    file.seek(-1, os.SEEK_END)
    return bool(file.read(1) == b"\n")


def read(folder: Path) -> dict[Cell, Record]:
    """The records in a folder by cell, the last of each; a line that was never finished is none."""
    return {record.cell: record for facts in read_lines(folder) for record in _parsed(facts)}


def read_lines(folder: Path) -> Iterator[dict[str, Any]]:
    """The objects on the lines of a folder's files, but for lines that were never finished.

    Raises `UserError` for a file that cannot be read.
    """
    for path in sorted(folder.glob("*.jsonl")):
        for line in _text(path).splitlines():
            with suppress(ValueError, RecursionError):
                content = json.loads(line)
                if isinstance(content, dict):
                    yield content


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None


_FORM = TypeAdapter(Record)


def _parsed(facts: dict[str, Any]) -> Iterator[Record]:
    try:
        point = Point(**{axis: facts.pop(axis) for axis in Point.model_fields})
        cell = Cell(point=point, **{k: facts.pop(k) for k in Cell._fields if k in facts})
        bounds = tuple(facts.pop("bounds", ()))
        yield _FORM.validate_python(Record(cell, bounds=bounds, **facts), strict=True)
    except (ValueError, KeyError, TypeError, AttributeError):
        return
