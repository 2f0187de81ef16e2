"""Records of cells and their working files in JSON.

A record holds the complete configuration of its cell, the environment, the status and the measurements.
Its cell can be run again from the record alone. The working file is
`<folder>/<experiment>/<backend>/<cell id>.json`. It is written whole or not at all, with a checksum of its
content. Numbers keep all their digits. NaN and infinities are stored as null.
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
from svgpbench.experiments.outcome import Number, Status
from svgpbench.json_values import json_value
from svgpbench.plugins import LIKELIHOODS, load

SCHEMA_VERSION: Final = 2

FINAL: frozenset[str] = frozenset({"ok", "not_pd", "diverged"})
"""Statuses that are properties of the cell, so that a resumed run keeps the record.

Other statuses may be due to the machine (`oom`, `timeout`, `crashed`), to installed packages (`skipped`) or
to a defect that has been repaired (`error`). Their cells are run again."""


class DamagedRecordError(UserError):
    """A file that is not a complete record: it was cut off, was changed, or is something else."""


class UnreadableFileError(UserError):
    """A Parquet file that was cut off, was changed, has another schema or holds no records."""


class WorkerFacts(Strict):
    """Facts about the worker process that ran the cell, and about its interruptions."""

    fresh: bool
    cells_before: int
    resumptions: int = 0  # times that a process continued the cell of another
    lost: tuple[str, ...] = ()  # cluster machines that were lost while running the cell
    shared_cores: str = ""  # which cores another run had too; empty if none, or not recorded


class Record(Strict):
    """The result of one cell, of whatever status."""

    schema_version: Literal[2] = SCHEMA_VERSION
    cell_id: str
    method_version: int
    config: CellConfig  # complete
    status: Status
    message: str = ""
    traceback: str = ""  # or the end of stderr of a worker that died
    data: dict[str, Any]
    environment: Environment | None  # None if the worker died before it reported it
    trace: dict[str, list[Number]]  # columns of equal length, one row per EM iteration
    metrics: dict[str, Number]
    timing: dict[str, Number]
    started: AwareDatetime
    wall_s: float  # measured outside the worker, with the start of a fresh one
    peak_memory_bytes: int | None  # of the process since its start; None if it died
    worker: WorkerFacts

    def __repr__(self) -> str:
        config, bound = self.config, self.metrics.get("elbo")
        shown = [config.experiment, config.data.name, config.method.title, config.backend.title]
        shown += [self.status, *([] if bound is None else [f"ELBO {bound:.6g}"])]
        return f"<Record {self.cell_id}: {', '.join(shown)}>"

    @property
    def task(self) -> str:
        """The task of its likelihood. Raises `UserError` if the likelihood is not installed."""
        return str(load(LIKELIHOODS, self.config.likelihood.name).task)

    @property
    def code(self) -> dict[str, str]:
        """Digests of the source code that made the numbers; empty in older records."""
        return self.environment.code if self.environment else {}

    def trace_without_times(self) -> dict[str, list[Number]]:
        """Return the columns of the trace that the cell determines: all but `seconds`."""
        return {name: column for name, column in self.trace.items() if name != "seconds"}

    @field_validator("data", "trace", "metrics", "timing", mode="before")
    @classmethod
    def _no_nan(cls, value: Any) -> Any:
        return json_value(value)


def record_path(folder: Path, config: CellConfig, cell_id: str) -> Path:
    """Return the path of the working record of a cell.

    Raises `UserError` if the name of the experiment or of the backend cannot name a folder.
    """
    for part in (config.experiment, config.backend.name):
        if not re.fullmatch(r"[\w+-][\w.+-]*", part):
            raise UserError(
                f"{part!r} names a folder of records: use letters, digits and . _ + - only"
            )
    return folder / config.experiment / config.backend.name / f"{cell_id}.json"


def parquet_path(folder: Path, experiment: str) -> Path:
    """Return the path of the Parquet file of an experiment."""
    return folder / f"{experiment}.parquet"


def checkpoint_path(folder: Path, config: CellConfig, cell_id: str) -> Path:
    """Return the path of the checkpoint of an unfinished cell."""
    return record_path(folder, config, cell_id).with_suffix(".checkpoint.npz")


def write_record(folder: Path, record: Record) -> Path:
    """Write a record whole or not at all, replacing an older one of the same cell."""
    path = record_path(folder, record.config, record.cell_id)
    content = record.model_dump(mode="json")
    write_whole(path, (_layout(content | {"checksum": checksum(content)}) + "\n").encode())
    return path


def checksum(content: dict[str, Any]) -> str:
    """Return the SHA-256 of a record's content. It does not depend on the layout of the file."""
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _layout(value: Any, indent: str = "") -> str:
    """Return JSON with one line per key and lists on one line, which gives readable diffs."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value, allow_nan=False, ensure_ascii=False)
    inner = indent + " "
    lines = [f"{inner}{json.dumps(key)}: {_layout(item, inner)}" for key, item in value.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


def read_record(path: Path) -> Record:
    """Return the record of a working file.

    Raises:
        DamagedRecordError: the file is no record, was changed, or holds the record of another cell.
        UserError: the file cannot be read, or has another schema.
    """
    raw = read_content(path)
    # before the checksum: another schema is refused, and never renamed as damaged
    if (schema := raw["schema_version"]) != SCHEMA_VERSION:
        raise UserError(
            f"{path} has record schema {schema}, this version reads {SCHEMA_VERSION}: "
            "use the version that wrote it"
        )
    # before the validation: a changed digit may well be valid
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
    """Return the JSON object of a record of any schema, without further checks.

    Raises `UserError` if the file cannot be read, and `DamagedRecordError` if it holds no such object.
    """
    try:
        raw = json.loads(path.read_bytes(), parse_constant=_refuse_constant)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # not JSON, or not UTF-8
        raise DamagedRecordError(f"{path} is not a record: {error}") from error
    if not isinstance(raw, dict) or "schema_version" not in raw:
        raise DamagedRecordError(f"{path} is not a record: it has no schema_version")
    return raw


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")


def set_aside(path: Path, why: Literal["damaged", "superseded"] = "damaged") -> Path:
    """Rename a file so that nothing reads it, and return the new path. Raises `UserError` if that fails."""
    new_path, count = path.with_suffix(f".{why}"), 1
    while new_path.exists():
        new_path, count = path.with_suffix(f".{why}-{count}"), count + 1
    try:
        return path.rename(new_path)
    except OSError as error:
        raise UserError(f"cannot rename {path}: {error.strerror}") from error


def is_record_name(name: str) -> bool:
    """Return True if a file name is that of a working record. Its folder may contain other files."""
    return re.fullmatch(r"[0-9a-f]{16}\.json", name) is not None


def record_files(folder: Path, experiment: str = "*") -> list[Path]:
    """Return the sorted working files of an experiment, or of all experiments."""
    paths = folder.glob(f"{experiment}/*/*.json")
    return sorted(path for path in paths if is_record_name(path.name))


def is_final(record: Record) -> bool:
    """Return True if a resumed run keeps this record instead of running its cell again."""
    return record.status in FINAL
