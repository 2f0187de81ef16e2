"""An entry of a registry: what every one has to say, what a test says of its own, and its numbers."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from svgpbench_datasets import DatasetEntry
from svgpbench_datasets.files import File
from svgpbench_datasets.reading import tables
from svgpbench_datasets.reading.numbers import Block


def declared(**changes: Any) -> DatasetEntry:
    """Two rows of a, b and the target c in a file without a fingerprint, unless changed."""
    base = {
        "name": "t",
        "title": "t",
        "task": "regression",
        "files": [{"path": "t", "sha256": "0" * 64}],
        "unseen": True,
        "reader": "csv",
        "rows": 2,
        "columns": ["a", "b", "c"],
        "target": "c",
        "upstream": "u",
        "licence": "l",
        "citation": "c",
    }
    return DatasetEntry.model_validate({**base, **changes})


def read_entry(entry: DatasetEntry, content: Callable[[File], bytes]) -> Block:
    """X and y of an entry whose files have this content."""
    return tables.read_entry(entry, lambda file: io.BytesIO(content(file)))


def write_registry(folder: Path, entry: DatasetEntry) -> None:
    """Declare one data set in a folder."""
    folder.mkdir(exist_ok=True)
    table = entry.model_dump(exclude_none=True, exclude_defaults=True)
    lines = [f"{key} = {_toml(value)}" for key, value in table.items() if key != "name"]
    (folder / "registry.toml").write_text("\n".join([f"[{entry.name}]", *lines]), "utf-8")


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value)
