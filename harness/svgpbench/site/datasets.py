"""Facts for the page of each data set: its declared entry, and the experiments with records on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from svgpbench.output.number_formats import in_bytes
from svgpbench.plugins import registries
from svgpbench.site.fields import Field
from svgpbench_datasets import DatasetEntry
from svgpbench_datasets.files import UnseenFile


@dataclass(frozen=True)
class SourceFile:
    """A file that a data set is read from."""

    path: str
    size: str
    proof: str  # how the file is identified: sha256, or its form
    urls: tuple[str, ...]


@dataclass(frozen=True)
class DataSetFacts:
    """A data set with all that its page shows."""

    entry: DatasetEntry
    files: tuple[SourceFile, ...]
    experiments: tuple[tuple[str, int], ...]  # name, number of records

    @property
    def name(self) -> str:
        """Name of the data set in the registry."""
        return self.entry.name


def data_facts(fields: Sequence[Field]) -> list[DataSetFacts]:
    """Return the facts of every data set of every registry, in the order of the registries."""
    return [
        _facts(registry.describe(name), fields)
        for registry in registries()
        for name in registry.names()
    ]


def _facts(entry: DatasetEntry, fields: Sequence[Field]) -> DataSetFacts:
    counts = [
        (
            field.experiment,
            # NAME@OUTPUT is another output of the table NAME, which is what a registry declares
            sum(r.config.data.name.partition("@")[0] == entry.name for r in field.records),
        )
        for field in fields
    ]
    files = []
    for file in entry.all_files:
        if isinstance(file, UnseenFile):
            size = f"at most {in_bytes(file.at_most)}"
            proof = "its form, as no copy was seen"
        else:
            size = "comes with the package" if file.bytes is None else in_bytes(file.bytes)
            proof = f"sha256 {file.sha256}"
        urls = tuple(address.url for address in file.addresses)
        files.append(SourceFile(file.path, size, proof, urls))
    experiments = tuple((name, count) for name, count in counts if count)
    return DataSetFacts(entry, tuple(files), experiments)
