"""The shipped data sets by name: what registry.toml declares, loaded and verified."""

from __future__ import annotations

import hashlib
import io
import lzma
import tomllib
from collections.abc import Iterator
from functools import cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import islice
from typing import Any

from pydantic import ValidationError

from svgpbench_datasets.dataset import Dataset
from svgpbench_datasets.entry import DatasetEntry
from svgpbench_datasets.errors import DataError, did_you_mean
from svgpbench_datasets.files import DataFile
from svgpbench_datasets.labels import mapped_labels
from svgpbench_datasets.readers import Row, csv_rows, decode_lines, read_cells, whitespace_rows


class Registry:
    """The data sets that a folder holds: `registry.toml` and the files in `data/`.

    Nothing is read before a name is asked for.
    """

    def __init__(self, folder: Traversable) -> None:
        self._folder = folder

    def names(self) -> tuple[str, ...]:
        """Every data set, each followed by its variants."""
        return tuple(self._entries)

    def describe(self, name: str) -> DatasetEntry:
        """What is known of a data set, without reading its files.

        Raises:
            DataError: an unknown name.
        """
        if name not in self._entries:
            raise DataError(
                f"unknown data set {name!r}{did_you_mean(name, self._entries)} "
                f"(known: {', '.join(self._entries)})"
            )
        return self._entries[name]

    def load(self, name: str) -> Dataset:
        """Load a data set: X [rows, D] and y [rows], float64.

        Raises:
            DataError: an unknown name; a file that is missing or does not hold the numbers the
                registry declares.
        """
        entry = self.describe(name)
        where = " + ".join(file.path for file in entry.files)
        regression = entry.labels is None
        cells = read_cells(
            self._rows(entry),
            where=where,
            names=entry.columns,
            numeric=(*entry.features, entry.target) if regression else entry.features,
            label=None if regression else entry.target,
        )
        if entry.labels is None:
            X, y = cells.numbers[:, :-1], cells.numbers[:, -1]
        else:
            X, y = cells.numbers, mapped_labels(cells.labels, entry.labels, where)
        dataset = Dataset(
            name=entry.name,
            task=entry.task,
            X=X,
            y=y,
            feature_names=entry.features,
            target_name=entry.target,
            source=entry.upstream,
            class_labels=entry.class_labels,
        )
        _verify(dataset, entry)
        return dataset

    @cached_property
    def _entries(self) -> dict[str, DatasetEntry]:
        try:
            declared = tomllib.loads(self._folder.joinpath("registry.toml").read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise DataError(f"registry.toml cannot be read: {error}") from None
        return dict(_entries_of(declared))

    def _rows(self, entry: DatasetEntry) -> Iterator[Row]:
        """The rows of an entry's files, those of several glued side by side."""
        tables = [self._table(file, entry) for file in entry.files]
        for parts in zip(*tables, strict=True):
            yield parts[0][0], [cell for _, cells in parts for cell in cells]

    def _table(self, file: DataFile, entry: DatasetEntry) -> list[Row]:
        text = decode_lines(io.BytesIO(self._verified_bytes(file)), file.path)
        text = islice(text, entry.skip_lines, None)
        rows = whitespace_rows(text) if entry.reader == "whitespace" else csv_rows(text, file.path)
        table = [(line + entry.skip_lines, cells) for line, cells in rows]
        if len(table) != entry.rows:
            raise DataError(f"{file.path} has {len(table)} rows where {entry.rows} are declared")
        return table

    def _verified_bytes(self, file: DataFile) -> bytes:
        try:
            raw = lzma.decompress(self._folder.joinpath("data", file.path).read_bytes())
        except (OSError, EOFError, lzma.LZMAError) as error:
            raise DataError(
                f"shipped file {file.path} cannot be read ({error}); install the package again"
            ) from None
        found = hashlib.sha256(raw).hexdigest()
        if found != file.sha256:
            raise DataError(
                f"shipped file {file.path} has changed: sha256 {found} where {file.sha256} is "
                "declared; install the package again"
            )
        return raw


def _entries_of(declared: dict[str, Any]) -> Iterator[tuple[str, DatasetEntry]]:
    """Each data set, then each of its variants: the data set with some keys replaced."""
    for name, table in declared.items():
        if not isinstance(table, dict):
            raise DataError(f"registry.toml: {name!r} is not a table")
        base = {key: value for key, value in table.items() if key != "variants"}
        yield name, _validated(name, base)
        for variant, changes in table.get("variants", {}).items():
            full_name = f"{name}:{variant}"
            yield full_name, _validated(full_name, {**base, **changes})


def _validated(name: str, table: dict[str, Any]) -> DatasetEntry:
    try:
        return DatasetEntry.model_validate({**table, "name": name})
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise DataError(f"registry.toml: [{name}] {key}: {first['msg']}") from None


def _verify(dataset: Dataset, entry: DatasetEntry) -> None:
    if dataset.fingerprint != entry.fingerprint:
        raise DataError(
            f"data set {entry.name!r} does not hold the declared numbers: fingerprint "
            f"{dataset.fingerprint} where {entry.fingerprint} is declared"
        )


REGISTRY = Registry(files("svgpbench_datasets"))
