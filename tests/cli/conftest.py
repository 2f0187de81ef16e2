"""Folders of records and tables, and the command line as a function."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import Cli, Outcome
from command_table import write_place
from own_paper import write_package
from synthetic_records import one_adam_fold_fails, quick_cells, write_all

from svgpbench.cli.application import exit_code


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run a command in an empty folder, as a user does."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def run(*arguments: str | Path) -> Outcome:
        code = exit_code([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder where the package of a fifth paper is installed."""
    site = tmp_path_factory.mktemp("site")
    write_package(site)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        yield site


@pytest.fixture(scope="session")
def quick_results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of the quick preset; one fold of q-SVGP Adam on sonar failed on every backend."""
    folder = tmp_path_factory.mktemp("records")
    write_all(folder, quick_cells(), one_adam_fold_fails)
    return folder


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the table of commands, to be read and not written."""
    folder = tmp_path_factory.mktemp("place")
    write_place(folder)
    return folder


@pytest.fixture(scope="module")
def workplace(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of that folder, where commands write."""
    folder = tmp_path_factory.mktemp("work") / "place"
    shutil.copytree(place, folder, symlinks=True)
    return folder


@pytest.fixture
def in_place(cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run a mistaken command in the folder of the table, with the shipped data alone."""
    monkeypatch.chdir(place)
    monkeypatch.setenv("SVGPBENCH_DATA", str(place.with_name("cache")))
    monkeypatch.delenv("SVGPBENCH_MIRROR", raising=False)
    return cli


@pytest.fixture
def in_workplace(in_place: Cli, workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run a command in the copy of that folder."""
    monkeypatch.chdir(workplace)
    return in_place
