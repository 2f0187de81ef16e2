"""A folder of synthetic records, and the command line as a function."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Cli, Outcome
from synthetic_records import one_adam_fold_fails, quick_cells, write_all

from svgpbench.cli.application import exit_code
from svgpbench.experiments.cell import load_data


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run a command in an empty folder, as a user does."""
    monkeypatch.chdir(tmp_path)
    load_data.cache_clear()  # every test has its own rows.csv
    monkeypatch.setenv("COLUMNS", "120")

    def run(*arguments: str | Path) -> Outcome:
        code = exit_code([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def quick_results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of the quick preset; one fold of q-SVGP Adam on sonar failed on every backend."""
    folder = tmp_path_factory.mktemp("records")
    write_all(folder, quick_cells(), one_adam_fold_fails)
    return folder
