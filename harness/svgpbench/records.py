"""One JSON file a cell: what ran, where, how it ended and what it measured.

A record lies at `<folder>/<experiment>/<backend>/<cell id>.json`. It is written whole or not at
all, numbers keep all their digits, and NaN and infinities are stored as null.
"""

from __future__ import annotations

import json
import math
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import AwareDatetime, ValidationError, field_validator

from svgpbench.config import CellConfig, Strict
from svgpbench.environment import Environment
from svgpbench.errors import UserError

SCHEMA_VERSION: Final = 1

Status = Literal["ok", "not_pd", "diverged", "oom", "timeout", "crashed", "skipped", "error"]

FINAL: frozenset[str] = frozenset({"ok", "not_pd", "diverged"})
"""Statuses that a resumed run leaves alone: properties of the cell. The others may owe to the machine
(`oom`, `timeout`, `crashed`), to what is installed (`skipped`) or to a defect since repaired (`error`),
and are run again."""

Number = float | int | None


class WorkerFacts(Strict):
    """How used the process was that ran the cell."""

    fresh: bool
    cells_before: int


class Record(Strict):
    """One cell's result, however it ended."""

    schema_version: Literal[1] = SCHEMA_VERSION
    cell_id: str
    config: CellConfig
    status: Status
    message: str = ""
    traceback: str = ""  # or the end of what a dead worker wrote to stderr
    data: dict[str, Any]
    environment: Environment | None  # None where the worker died before it could say
    trace: dict[str, list[Number]]  # columns of equal length, a row an EM iteration
    metrics: dict[str, Number]
    timing: dict[str, Number]
    started: AwareDatetime
    wall_s: float  # seen from outside, with the start of a fresh worker
    peak_memory_bytes: int | None  # of the process since its start; None where it died
    worker: WorkerFacts

    @field_validator("data", "trace", "metrics", "timing", mode="before")
    @classmethod
    def _no_nan(cls, value: Any) -> Any:
        return finite(value)


def finite(value: Any) -> Any:
    """The same JSON-able value with NaN, infinities and NumPy scalars made plain: JSON has none."""
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if hasattr(value, "tolist"):  # a NumPy scalar or array
        return finite(value.tolist())
    raise TypeError(f"{type(value).__name__} has no place in a record")


def columns(rows: list[dict[str, Number]]) -> dict[str, list[Number]]:
    """A trace by column; a row that lacks a column has None there."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def record_path(folder: Path, config: CellConfig, cell_id: str) -> Path:
    """Where the record of a cell lies."""
    for part in (config.experiment, config.backend.name):
        if not re.fullmatch(r"[\w+-][\w.+-]*", part):
            raise UserError(
                f"{part!r} names a folder of records: use letters, digits and . _ + - only"
            )
    return folder / config.experiment / config.backend.name / f"{cell_id}.json"


def write_record(folder: Path, record: Record) -> Path:
    """Write a record whole or not at all, replacing an older one of the same cell."""
    path = record_path(folder, record.config, record.cell_id)
    # not *.json: whatever a killed run leaves behind is no record
    draft = path.with_name(f".{path.stem}.{os.getpid()}.tmp")
    text = _layout(record.model_dump(mode="json")) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error
    finally:
        with suppress(OSError):
            draft.unlink()
    return path


def _layout(value: Any, indent: str = "") -> str:
    """JSON with a line a key and lists on one line: short, and readable as a diff."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value, allow_nan=False, ensure_ascii=False)
    inner = indent + " "
    lines = [f"{inner}{json.dumps(key)}: {_layout(item, inner)}" for key, item in value.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


def read_record(path: Path) -> Record:
    """One record; raises `UserError` naming the file and what is wrong with it."""
    try:
        raw = json.loads(path.read_bytes())
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:  # not JSON, or not UTF-8
        raise UserError(f"{path} is not a record: {error}") from error
    if not isinstance(raw, dict) or "schema_version" not in raw:
        raise UserError(f"{path} is not a record: it has no schema_version")
    if (schema := raw["schema_version"]) != SCHEMA_VERSION:
        raise UserError(
            f"{path} has record schema {schema}, this version reads {SCHEMA_VERSION}: "
            "move it away and run its cell again, or use the version that wrote it"
        )
    try:
        record = Record.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"]) or "the whole"
        raise UserError(f"{path} is not a record: {where}: {first['msg']}") from error
    if record.cell_id != path.stem:
        raise UserError(f"{path} holds the record of another cell, {record.cell_id}")
    return record


def read_records(folder: Path, experiment: str) -> list[Record]:
    """All records of an experiment, by backend and cell id; none where nothing ran yet."""
    return [read_record(path) for path in sorted((folder / experiment).glob("*/*.json"))]


def is_final(record: Record) -> bool:
    """Whether a resumed run keeps this record instead of running its cell again."""
    return record.status in FINAL
