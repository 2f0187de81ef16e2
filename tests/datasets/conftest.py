"""A server that misbehaves, an empty cache, another package's data sets, and the command to fetch them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from faulty_server import Server, faulty_server
from interpreter import Done, python
from mirror import mirrored_registry

from svgpbench_datasets import DatasetEntry, Registry
from svgpbench_datasets.files import DataFile

sys.path.insert(0, str(Path(__file__).parents[2] / "datasets" / "scripts"))

Run = Callable[..., Done]

MODULE = """
import json
from pathlib import Path
from types import SimpleNamespace
from svgpbench_datasets import DatasetEntry
from svgpbench_datasets.files import DataFile

def declared(one):
    if isinstance(one, dict):
        return DatasetEntry.model_validate(one)
    return SimpleNamespace(files=tuple(DataFile.model_validate(file) for file in one))

class Sets:
    def __init__(self):
        sets = json.loads(Path(__file__).with_name("sets.json").read_text())
        self.sets = {name: declared(one) for name, one in sets.items()}

    def names(self):
        return tuple(self.sets)

    def describe(self, name):
        return self.sets[name]

    def load(self, name):
        raise FileNotFoundError(name)

REGISTRY = Sets()
"""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with faulty_server() as running:
        yield running


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    return mirrored_registry(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def declare(tmp_path: Path) -> Callable[..., None]:
    """Install another package's data sets, found through its entry point."""
    package = tmp_path / "package"
    info = package / "faraway_sets-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: faraway-sets\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[svgpbench.datasets]\nfaraway = faraway:REGISTRY\n")
    (package / "faraway.py").write_text(MODULE)

    def write(**sets: list[DataFile] | DatasetEntry) -> None:
        """Files alone, or all that is declared of a data set."""
        declared = {
            name: one.model_dump(exclude_none=True)
            if isinstance(one, DatasetEntry)
            else [file.model_dump() for file in one]
            for name, one in sets.items()
        }
        (package / "sets.json").write_text(json.dumps(declared))

    return write


@pytest.fixture
def fetch(tmp_path: Path, cache: Path) -> Run:
    """Run `svgpbench fetch` in a process of its own."""
    kept = {k: v for k, v in os.environ.items() if k not in ("SVGPBENCH_MIRROR", "SVGPBENCH_DATA")}
    path = f"{tmp_path / 'package'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"

    def run(*arguments: str | Path, **environment: str) -> Done:
        return python(
            *("-m", "svgpbench.cli", "fetch", *arguments),
            timeout=60,
            cwd=tmp_path,
            env=kept
            | {"PYTHONPATH": path, "NO_PROXY": "127.0.0.1", "SVGPBENCH_DATA": str(cache)}
            | {"COLUMNS": "160"}
            | environment,
        )

    return run
