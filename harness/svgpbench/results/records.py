"""A record of a cell, what ran, where, how it ended and what it measured; and its working form, a JSON file.

That lies at `<folder>/<experiment>/<backend>/<cell id>.json`. It is written whole or not at
all, with a checksum of its content; numbers keep all their digits, and NaN and infinities are stored as
null. It holds its cell's complete configuration, so that it can be run again from itself.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import AwareDatetime, ValidationError, field_validator

from svgpbench.atomic import write_whole
from svgpbench.config import CellConfig, Strict
from svgpbench.environment import Environment
from svgpbench.errors import UserError
from svgpbench.experiments.outcome import Number, Status, finite

SCHEMA_VERSION: Final = 2

FINAL: frozenset[str] = frozenset({"ok", "not_pd", "diverged"})
"""Statuses that a resumed run leaves alone: properties of the cell. The others may owe to the machine
(`oom`, `timeout`, `crashed`), to what is installed (`skipped`) or to a defect since repaired (`error`),
and are run again."""


class DamagedRecordError(UserError):
    """A file that is no whole record: cut off, changed afterwards, or something else altogether."""


class UnreadableFileError(UserError):
    """A Parquet file of records that is cut off, was changed, is of another schema or of something else."""


class WorkerFacts(Strict):
    """How used the process was that ran the cell, and how many it took."""

    fresh: bool
    cells_before: int
    resumptions: int = 0  # times that a process went on where another had ended
    lost: tuple[str, ...] = ()  # machines of a cluster that were lost while they ran the cell


class Record(Strict):
    """One cell's result, however it ended."""

    schema_version: Literal[2] = SCHEMA_VERSION
    cell_id: str
    method_version: int
    config: CellConfig  # complete
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

    def trace_without_times(self) -> dict[str, list[Number]]:
        """The columns that the cell determines."""
        return {name: column for name, column in self.trace.items() if name != "seconds"}

    @field_validator("data", "trace", "metrics", "timing", mode="before")
    @classmethod
    def _no_nan(cls, value: Any) -> Any:
        return finite(value)


def record_path(folder: Path, config: CellConfig, cell_id: str) -> Path:
    """Where the record of a cell lies."""
    for part in (config.experiment, config.backend.name):
        if not re.fullmatch(r"[\w+-][\w.+-]*", part):
            raise UserError(
                f"{part!r} names a folder of records: use letters, digits and . _ + - only"
            )
    return folder / config.experiment / config.backend.name / f"{cell_id}.json"


def parquet_path(folder: Path, experiment: str) -> Path:
    """Where the records of an experiment are kept."""
    return folder / f"{experiment}.parquet"


def checkpoint_path(folder: Path, config: CellConfig, cell_id: str) -> Path:
    """Where a cell that is not done keeps its place."""
    return record_path(folder, config, cell_id).with_suffix(".checkpoint.npz")


def write_record(folder: Path, record: Record) -> Path:
    """Write a record whole or not at all, replacing an older one of the same cell."""
    path = record_path(folder, record.config, record.cell_id)
    content = record.model_dump(mode="json")
    write_whole(path, (_layout(content | {"checksum": checksum(content)}) + "\n").encode())
    return path


def checksum(content: dict[str, Any]) -> str:
    """The SHA-256 of a record's content, however it is laid out."""
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _layout(value: Any, indent: str = "") -> str:
    """JSON with a line a key and lists on one line: short, and readable as a diff."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value, allow_nan=False, ensure_ascii=False)
    inner = indent + " "
    lines = [f"{inner}{json.dumps(key)}: {_layout(item, inner)}" for key, item in value.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


def read_record(path: Path) -> Record:
    """One record.

    Raises:
        DamagedRecordError: naming the file and what is wrong with it.
        UserError: a file that cannot be read, or of another schema.
    """
    raw = read_content(path)
    if (schema := raw["schema_version"]) != SCHEMA_VERSION:
        older = isinstance(schema, int) and schema < SCHEMA_VERSION
        remedy = "rewrite it with `svgpbench migrate`" if older else "use the version that wrote it"
        raise UserError(
            f"{path} has record schema {schema}, this version reads {SCHEMA_VERSION}: {remedy}"
        )
    stored = raw.pop("checksum", None)
    if stored != checksum(raw):
        raise DamagedRecordError(f"{path} is not a record: its checksum is not that of its content")
    try:
        record = Record.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"]) or "the whole"
        raise DamagedRecordError(f"{path} is not a record: {where}: {first['msg']}") from error
    if record.cell_id != path.stem:
        raise DamagedRecordError(f"{path} holds the record of another cell, {record.cell_id}")
    return record


def read_content(path: Path) -> dict[str, Any]:
    """The JSON object of a record of any schema; errors as of `read_record`."""
    try:
        raw = json.loads(path.read_bytes(), parse_constant=_no_constant)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # not JSON, or not UTF-8
        raise DamagedRecordError(f"{path} is not a record: {error}") from error
    if not isinstance(raw, dict) or "schema_version" not in raw:
        raise DamagedRecordError(f"{path} is not a record: it has no schema_version")
    return raw


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")


def set_aside(path: Path) -> Path:
    """Give a file another name, under which nothing reads it; raises `UserError` where that fails."""
    aside, count = path.with_suffix(".damaged"), 1
    while aside.exists():
        aside, count = path.with_suffix(f".damaged-{count}"), count + 1
    try:
        return path.rename(aside)
    except OSError as error:
        raise UserError(f"cannot rename {path}: {error.strerror}") from error


def is_record_name(name: str) -> bool:
    """Whether a file is called as a record, among whatever else lies below a folder of a user's."""
    return re.fullmatch(r"[0-9a-f]{16}\.json", name) is not None


def record_files(folder: Path, experiment: str = "*") -> list[Path]:
    """The files of all records of an experiment, or of all experiments; none where nothing ran yet."""
    found = folder.glob(f"{experiment}/*/*.json")
    return sorted(path for path in found if is_record_name(path.name))


def is_final(record: Record) -> bool:
    """Whether a resumed run keeps this record instead of running its cell again."""
    return record.status in FINAL
