"""Files to download from the site: records, tidy tables, declaring files and plotting code."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources.abc import Traversable
from pathlib import Path
from types import ModuleType

from svgpbench.experiments import shipped_experiments
from svgpbench.papers import Artefact, Paper, paper_folders
from svgpbench.results import tidy
from svgpbench.results.records import parquet_path
from svgpbench.results.store import LoadedRecords
from svgpbench.site.pages import Link

FOLDER = "downloads"
RECORDS_OF_TIMES = ("speed", "learning", "survival")
"""Subfolders of the results with JSON records of timing commands."""


@dataclass(frozen=True)
class Download:
    """A file with its description and size."""

    path: str  # relative to the site
    description: str
    size: int

    @property
    def folder(self) -> str:
        """Name of the subfolder of the downloads."""
        return self.path.split("/")[1]


@dataclass
class Downloads:
    """Files in the folder of downloads, by path relative to the site."""

    site: Path
    files: dict[str, Download] = field(default_factory=dict)

    def add_records(self, results: Path, by_experiment: Mapping[str, LoadedRecords]) -> None:
        """Add the records of each experiment, and the records of the timing commands.

        An experiment has its Parquet file, if there is one, and a CSV table with one row per cell.
        `by_experiment` is what `records_by_experiment` returns for this folder.
        """
        for name, loaded in by_experiment.items():
            if parquet_path(results, name).is_file():
                description = f"records of {name}, every number bit for bit; `svgpbench` reads them"
                self._copy(parquet_path(results, name), f"records/{name}.parquet", description)
            if not loaded.stored:
                continue  # not a folder of records
            path = self._path(f"tidy/{name}.csv")
            tidy.write_table(path, tidy.cells_table(loaded.stored))
            self._register(path, f"{name}: one row per cell, {len(loaded.stored)} cells")
        for folder in RECORDS_OF_TIMES:
            # `speed` writes .json, `learn` and `survive` .jsonl
            for path in sorted((results / folder).glob("*.json*")):
                command = {"learning": "learn", "survival": "survive"}.get(folder, folder)
                description = f"records of `svgpbench {command}`"
                self._copy(path, f"{folder}/{path.name}", description)

    def add_artefact(self, paper: Paper, artefact: Artefact) -> Iterator[Link]:
        """Add the files that declare an artefact; yield links to them and to its existing records."""
        folder = paper_folders()[paper.name]
        if artefact.experiment:
            declared = artefact.experiment.experiment
            file = shipped_experiments().get(declared, folder / declared)
            name = file.name.removesuffix(".toml")
            description = f"the experiment that makes {paper.name}/{artefact.id}"
            yield self._add_text(file, f"experiments/{name}.toml", "experiment file", description)
            yield from self.of_experiment(paper.experiments[artefact.id].name)
        if artefact.printed:
            path = f"papers/{paper.name}/{artefact.printed.rpartition('/')[2]}"
            description = f"figures as {paper.name} prints them"
            yield self._add_text(folder / artefact.printed, path, "printed figures", description)
        if artefact.recorded and artefact.recorded.path:
            records = f"{FOLDER}/{artefact.recorded.path}"
            for path in self.files:
                if path == records or path.startswith(f"{records}/"):
                    yield Link(path.rpartition("/")[2], path)

    def of_experiment(self, name: str) -> Iterator[Link]:
        """Yield links to the records of an experiment that are among the downloads."""
        yield from self._existing("records", f"records/{name}.parquet")
        yield from self._existing("tidy table", f"tidy/{name}.csv")

    def add_paper(self, paper: Paper) -> list[Link]:
        """Add the files that declare a paper and its claims; return links to them."""
        folder = paper_folders()[paper.name]
        return [
            self._add_text(folder / name, f"papers/{paper.name}/{name}", name, description)
            for name, description in (
                ("paper.toml", f"{paper.name}: what it says, errata, artefacts"),
                ("claims.toml", f"{paper.name}: its claims in our words, and what decides them"),
            )
        ]

    def move(self, file: Path, text: str, description: str) -> Link:
        """Move a file of the site into the folder of downloads, and return a link to it."""
        path = self._path(file.relative_to(self.site).as_posix())
        file.replace(path)
        self._register(path, description)
        return Link(text, path.relative_to(self.site).as_posix())

    def add_source(self, module: ModuleType) -> Link:
        """Add the source code of a module, and return a link to it."""
        path = self._path(f"code/{module.__name__}.py")
        if not path.exists():
            path.write_text(inspect.getsource(module), encoding="utf-8")
            self._register(path, "code that draws or tabulates")
        return Link("code", f"{FOLDER}/code/{path.name}")

    def _existing(self, text: str, name: str) -> Iterator[Link]:
        """Yield a link to a file of the downloads if it exists."""
        if (path := f"{FOLDER}/{name}") in self.files:
            yield Link(text, path)

    def _add_text(self, file: Traversable, name: str, text: str, description: str) -> Link:
        """Add a file of the package unless it is there already, and return a link to it."""
        path = self._path(name)
        if not path.exists():
            path.write_bytes(file.read_bytes())
            self._register(path, description)
        return Link(text, f"{FOLDER}/{name}")

    def _copy(self, file: Path, name: str, description: str) -> None:
        path = self._path(name)
        shutil.copyfile(file, path)
        self._register(path, description)

    def _path(self, name: str) -> Path:
        """Return the path of a download, and make its folder."""
        path = self.site / FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def _register(self, path: Path, description: str) -> None:
        relative = path.relative_to(self.site).as_posix()
        self.files[relative] = Download(relative, description, path.stat().st_size)
