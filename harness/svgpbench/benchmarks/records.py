"""Records of benchmark runs: one JSON line per run, in one append-only file per library."""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar

from svgpbench.config import Strict
from svgpbench.errors import UserError

Status = Literal[
    "ok",
    "not_pd",
    "negative_variance",
    "nan",
    "diverged",
    "timeout",
    "crashed",
    "skipped",
    "error",
]
"""How a run ended, in the words of cells where both have one. `skipped`: the library cannot make the run."""

LABELS: dict[Status, str] = {
    "ok": "completed",
    "not_pd": "not positive definite",
    "negative_variance": "negative variance",
    "nan": "NaN",
    "timeout": "time-out",
    "crashed": "killed",
    "skipped": "refused",
}
"""Text of a status for tables and figures, where it is another than the status itself."""

EARLIER_WORDS: dict[str, Status] = {
    **{text: status for status, text in LABELS.items()},
    "lived": "ok",
    "done": "ok",
    "died": "error",
}
"""Statuses by the words of records of version 0.1, whose key is `end`."""


class BenchmarkRecord(Strict):
    """Result of one run. A kind of benchmark adds its settings as `run`, and what it measures."""

    kind: ClassVar[str]

    run: Any  # a named tuple with `library` and `key`, the fields of a line that identify the run
    status: Status
    message: str = ""  # of a failure, in one line
    versions: dict[str, str] | None = None

    @property
    def label(self) -> str:
        """Status as text."""
        return LABELS.get(self.status, self.status)

    @classmethod
    @abstractmethod
    def nested_run(cls, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of `run` from those of a line. Raises `KeyError` if one is missing."""

    @classmethod
    def from_line(cls, facts: Mapping[str, Any]) -> Self:
        """Return the record of a line. Raises `ValueError` or `KeyError` if it has none of this kind."""
        if facts.get("kind", cls.kind) != cls.kind:
            raise ValueError(f"a record of {facts['kind']}")
        measured = {name: facts[name] for name in cls.model_fields if name in facts}
        if "end" in facts:
            measured["status"] = EARLIER_WORDS.get(facts["end"], facts["end"])
        text = json.dumps(measured | {"run": cls.nested_run(facts)}, allow_nan=False)
        return cls.model_validate_json(text, strict=True)


Record = TypeVar("Record", bound=BenchmarkRecord)


def append(folder: Path, record: BenchmarkRecord) -> None:
    """Append a record to its library's file. Raises `UserError` if it cannot be written."""
    measured = record.model_dump(mode="json", exclude={"run"}, exclude_defaults=True)
    content = {"kind": record.kind, **record.run.key(), **measured}
    line = json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n"
    path = folder / f"{content['library']}.jsonl"
    try:
        folder.mkdir(parents=True, exist_ok=True)
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


def read(folder: Path, kind: type[Record]) -> Iterator[Record]:
    """Yield the records of a kind in a folder, in the order of the lines of each library's file.

    A line that is incomplete or no such record is skipped. Raises `UserError` if a file cannot be read.
    """
    for path in sorted(folder.glob("*.jsonl")):
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror}") from None
        for line in text.splitlines():
            with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
                yield kind.from_line(json.loads(line))
