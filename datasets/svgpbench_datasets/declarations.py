"""Registry files to entries: data sets, their variants, and second names."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib.resources.abc import Traversable
from typing import Any

from pydantic import ValidationError

from svgpbench_datasets.entry import DatasetEntry
from svgpbench_datasets.errors import DataError

_OF_THE_FILES = frozenset({"splits", "unseen", "fingerprint"})


def read_entries(folder: Traversable) -> dict[str, DatasetEntry]:
    """The entries of `registry.toml` and of `registry/*.toml` in a folder, in that order."""
    entries: dict[str, DatasetEntry] = {}
    for file in registry_files(folder):
        try:
            declared = tomllib.loads(file.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise DataError(f"{file.name} cannot be read: {error}") from None
        for name, entry in _entries_of(declared, file.name):
            if name in entries:
                raise DataError(f"{file.name}: [{name}] is declared twice; rename one")
            entries[name] = entry
    return entries


def registry_files(folder: Traversable) -> list[Traversable]:
    """The registry files of a folder: its `registry.toml`, then `registry/*.toml` by name."""
    more = folder.joinpath("registry")
    split = [one for one in more.iterdir() if one.name.endswith(".toml")] if more.is_dir() else []
    return [folder.joinpath("registry.toml"), *sorted(split, key=lambda file: file.name)]


def _entries_of(declared: dict[str, Any], where: str) -> Iterator[tuple[str, DatasetEntry]]:
    """Each data set, then each of its variants: the data set with some keys replaced."""
    for name, table in declared.items():
        if not isinstance(table, dict):
            raise DataError(f"{where}: {name!r} is not a table")
        base = {key: value for key, value in table.items() if key not in ("variants", "aliases")}
        yield name, _validated(name, base, where)
        for alias in table.get("aliases", ()):
            yield alias, _validated(alias, {**base, "title": f"another name of {name}"}, where)
        for variant, changes in table.get("variants", {}).items():
            full_name = f"{name}:{variant}"
            # what belongs to the files of the data set goes where others take their place
            gone = _OF_THE_FILES if "files" in changes else ()
            kept = {key: value for key, value in base.items() if key not in gone}
            yield full_name, _validated(full_name, {**kept, **changes}, where)


def _validated(name: str, table: dict[str, Any], where: str) -> DatasetEntry:
    try:
        return DatasetEntry.model_validate({**table, "name": name})
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise DataError(f"{where}: [{name}] {key}: {first['msg']}") from None
