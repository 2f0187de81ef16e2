"""Records of benchmark runs: one JSON line per run, in one append-only file per library."""

from __future__ import annotations

import json
import os
import warnings
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar

from pydantic import Field

from svgpbench.config import Strict
from svgpbench.errors import RecordsWarning, UserError
from svgpbench.experiments.identity import OtherCode, digests_now
from svgpbench_datasets.errors import join_names

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


class BenchmarkRecord(Strict):
    """Result of one run. A kind of benchmark adds its settings as `run`, and what it measures."""

    kind: ClassVar[str]

    run: Any  # a named tuple with `library` and `key`, the fields of a line that identify the run
    status: Status
    message: str = ""  # of a failure, in one line
    versions: dict[str, str] | None = None
    code: dict[str, str] = Field(default_factory=dict)  # of `digests_of`; empty in older records

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
        measured = {name: facts[name] for name in cls.model_fields if name in facts}
        # `json.loads` takes NaN, which is no JSON: such a line counts as damaged
        text = json.dumps(measured | {"run": cls.nested_run(facts)}, allow_nan=False)
        # by way of JSON: only there does strict validation take an array for a tuple
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
        # append mode: the write goes to the end, wherever the read has left the position
        with path.open("ab+") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    line = "\n" + line  # the last line is incomplete, as its writer was stopped
            file.write(line.encode())
            file.flush()
            # a run takes minutes: its line is on the disk before the next one starts
            os.fsync(file.fileno())
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error


def read(folder: Path, kind: type[Record]) -> list[Record]:
    """Return the records of a kind in a folder, in the order of the lines of each library's file.

    Lines of another kind are skipped. So are lines that are incomplete or damaged, and records that were
    made by other code of a plugin than it has now; a `RecordsWarning` counts them and says where they are.
    Raises `UserError` if a file cannot be read.
    """
    records: list[Record] = []
    for path in sorted(folder.glob("*.jsonl")):
        try:
            # a line that ends within a character is damaged; the lines around it are still read
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror}") from None
        damaged: list[int] = []
        others: Counter[str] = Counter()
        # not splitlines: messages are not escaped and may contain U+0085 or U+2028
        for number, line in enumerate(text.split("\n"), 1):
            try:
                if not line.strip() or (facts := json.loads(line))["kind"] != kind.kind:
                    continue
                record = kind.from_line(facts)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                damaged.append(number)
                continue
            other = OtherCode.between(record.code, digests_now(record.code)).plugins
            if other:
                others[other] += 1
            else:
                records.append(record)
        if damaged:
            where = f"line{'s' * (len(damaged) > 1)} {join_names(map(str, damaged), 10)}"
            _warn(f"{path}: {len(damaged)} damaged records are left out ({where})")
        for name, count in others.items():
            _warn(f"{path}: {count} records are left out: made by other code of {name}")
    return records


def _warn(line: str) -> None:
    warnings.warn(line, RecordsWarning, stacklevel=3)
