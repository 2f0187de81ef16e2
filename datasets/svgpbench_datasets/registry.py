"""Data sets by name: declared in registry files, fetched or generated, and verified."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cached_property, partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from svgpbench_datasets.dataset import Dataset
from svgpbench_datasets.entry import DatasetEntry
from svgpbench_datasets.errors import DataError, did_you_mean, join_names
from svgpbench_datasets.files import Address, DataFile, UnseenFile
from svgpbench_datasets.generators import generate
from svgpbench_datasets.sources import Sources
from svgpbench_datasets.splits import Split

if TYPE_CHECKING:  # the readers import pandas, which is slow
    from svgpbench_datasets.reading.numbers import Block
    from svgpbench_datasets.reading.tables import Missing

_KEYS_OF_FILES = frozenset({"splits", "unseen", "fingerprint", "output_fingerprints"})


def read_entries(folder: Traversable) -> dict[str, DatasetEntry]:
    """Return the entries of a folder by name, in the order of `registry_files`.

    Raises:
        DataError: a file cannot be read, a name is declared twice, or an entry is invalid.
    """
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
    """Return the registry files of a folder: `registry.toml`, then `registry/*.toml` by name."""
    more = folder.joinpath("registry")
    entries = more.iterdir() if more.is_dir() else ()
    split = sorted((file for file in entries if file.name.endswith(".toml")), key=lambda f: f.name)
    return [folder.joinpath("registry.toml"), *split]


def _entries_of(declared: dict[str, Any], where: str) -> Iterator[tuple[str, DatasetEntry]]:
    """Yield each entry by name, then its aliases and variants (copies with some keys replaced)."""
    for name, table in declared.items():
        if not isinstance(table, dict):
            raise DataError(f"{where}: {name!r} is not a table")
        base = {key: value for key, value in table.items() if key not in ("variants", "aliases")}
        aliases, variants = table.get("aliases", []), table.get("variants", {})
        if not isinstance(aliases, list):
            raise DataError(f"{where}: [{name}] aliases: give a list of names, not {aliases!r}")
        if not isinstance(variants, dict):
            raise DataError(f"{where}: [{name}] variants: give a table of variants by name")
        yield name, _validated(name, base, where)
        for alias in aliases:
            yield alias, _validated(alias, {**base, "title": f"another name of {name}"}, where)
        for variant, changes in variants.items():
            full_name = f"{name}:{variant}"
            if not isinstance(changes, dict):
                raise DataError(f"{where}: [{full_name}] is not a table")
            # with other files, what describes the original files does not apply
            dropped = _KEYS_OF_FILES if "files" in changes else ()
            shared = {key: value for key, value in base.items() if key not in dropped}
            yield full_name, _validated(full_name, {**shared, **changes}, where)


def _validated(name: str, table: dict[str, Any], where: str) -> DatasetEntry:
    try:
        return DatasetEntry.model_validate({**table, "name": name})
    except ValidationError as error:
        raise DataError(f"{where}: [{name}] {_mistake(error, table)}") from None


def _mistake(error: ValidationError, table: dict[str, Any]) -> str:
    """Return the first mistake in a table, with its place, that of an unknown key before others."""
    first = error.errors()[0]
    beside = [one for one in error.errors() if one["loc"][:-1] == first["loc"][:-1]]
    # a misspelt key is missing, too
    first = min(beside, key=lambda one: one["type"] != "extra_forbidden")
    *inner, last = first["loc"] or ("",)
    place, declared = "", cast("Any", table)
    for part in inner:  # among keys and places in lists Pydantic names classes and validators
        if isinstance(declared, dict) and part in declared:
            place += f".{part}"
        elif isinstance(declared, list) and isinstance(part, int):
            place += f"[{part}]"
        else:
            continue
        declared = declared[part]
    where = f"{place}.{last}".strip(".")
    if first["type"] == "extra_forbidden":
        return f"unknown key {where!r}{did_you_mean(str(last), _KEYS)}"
    if first["type"] == "missing":
        return f"missing key {where!r}"
    message = first["msg"].removeprefix("Value error, ")
    return f"{where}: {message}" if str(last).isidentifier() else f"{place} {message}".strip(". ")


_KEYS = [
    *(x for model in (DatasetEntry, DataFile, UnseenFile, Address) for x in model.model_fields),
    *("classes", "variants", "aliases"),
]


class Registry:
    """Collection of the data sets declared in a folder: `registry.toml`, `registry/*.toml`, `data/`.

    The files are read on first use.
    """

    def __init__(self, folder: Traversable, sources: Sources | None = None) -> None:
        self._folder = folder
        self._sources = sources or Sources(folder.joinpath("data"))

    def names(self) -> tuple[str, ...]:
        """Return all names: each data set, followed by its aliases and its variants."""
        return tuple(self._entries)

    def describe(self, name: str) -> DatasetEntry:
        """Return the entry of a data set: one of `names()`, or `NAME@OUTPUT` for another output.

        Raises:
            DataError: the name or the output is unknown.
        """
        table, separator, output = name.partition("@")
        if table not in self._entries:
            raise DataError(
                f"unknown data set {table!r}{did_you_mean(table, self._entries)} "
                f"(known: {join_names(self._entries, 30)})"
            )
        entry = self._entries[table]
        return entry.with_output(output) if separator else entry

    def load(self, name: str) -> Dataset:
        """Load a data set: X [rows, D] and y [rows], float64.

        Raises:
            DataError: the name is unknown, a file cannot be obtained, or the numbers are not
                those that the registry declares.
        """
        entry = self.describe(name)
        # all files before any is read: an archive that has several is downloaded once
        self._sources.fetch(entry.files, entry)
        dataset = self.load_unverified(name)
        if entry.fingerprint is not None and dataset.fingerprint != entry.fingerprint:
            if not entry.fingerprint.removeprefix("sha256:").strip("0"):
                raise DataError(
                    f"data set {entry.name!r}: its registry has a fingerprint of zeros; write "
                    f"{dataset.fingerprint} in their place"
                )
            raise DataError(
                f"data set {entry.name!r} does not hold the declared numbers: fingerprint "
                f"{dataset.fingerprint} where {entry.fingerprint} is declared"
            )
        return dataset

    def load_unverified(self, name: str) -> Dataset:
        """Load a data set without checking its fingerprint; its files are still verified."""
        entry = self.describe(name)
        X, y = self._numbers(entry)
        return Dataset(
            name=entry.name,
            task=entry.task,
            # X / 1.0 would be a second copy of a large table
            X=X if entry.divide_by == 1.0 else X / entry.divide_by,
            y=y,
            feature_names=entry.features,
            target_name=entry.target,
            source=entry.upstream,
            class_labels=entry.class_labels,
        )

    def _numbers(self, entry: DatasetEntry) -> Block:
        if generated := entry.generated:
            X, y = generate(generated.name, entry.rows, generated.seed)
            inputs = [column for column in entry.columns if column != entry.target]
            return X[:, [inputs.index(name) for name in entry.features]], y
        if entry.made:
            from svgpbench_datasets.reading.columns import read_numbers

            file = self._sources.cache_folder() / entry.made
            if not file.is_file():
                raise DataError(
                    f"data set {entry.name!r} is made on your machine, once: "
                    f"{entry.upstream.removeprefix('made: ')}"
                )
            X, y = read_numbers(file, target=entry.target, features=entry.features)
            if len(y) != entry.rows:
                raise DataError(f"{file} has {len(y)} rows where {entry.rows} are declared")
            return X, y
        from svgpbench_datasets.reading.parsed import is_large, parsed_path, read_or_parse
        from svgpbench_datasets.reading.tables import read_blocks, read_entry

        opened = partial(self._sources.opened, entry=entry)
        if not is_large(entry):
            return read_entry(entry, opened)
        hashes = [self._sources.sha256(file, entry) for file in entry.files]
        path = parsed_path(entry, hashes, self._sources.cache_folder())
        return read_or_parse(path, lambda: read_blocks(entry, opened))

    def missing(self, name: str) -> Missing:
        """Count the missing values in the files of a data set, before any declared treatment."""
        from svgpbench_datasets.reading.tables import count_missing

        entry = self.describe(name)
        return count_missing(entry, partial(self._sources.opened, entry=entry))

    def fixed_split(self, name: str, fold: int) -> Split:
        """Return one of the splits published with a data set; `fold` counts from 0.

        Raises:
            DataError: the data set has no published splits, or no such fold.
        """
        from svgpbench_datasets.masks import fixed_split

        entry = self.describe(name)
        return fixed_split(entry, fold, lambda file: self._sources.read(file, entry))

    def at_hand(self, name: str) -> bool:
        """Return True if a data set can be loaded without a network."""
        entry = self.describe(name)
        if entry.made:
            return (self._sources.cache_folder() / entry.made).is_file()
        return all(self._sources.at_hand(file) for file in entry.files)

    @cached_property
    def _entries(self) -> dict[str, DatasetEntry]:
        return read_entries(self._folder)


REGISTRY = Registry(files("svgpbench_datasets"))
