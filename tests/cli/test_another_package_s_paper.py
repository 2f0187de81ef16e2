"""A paper of another package: its experiment is run by name, and a wrong predicate is one line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from command_line import Cli

sys.path.insert(0, str(Path(__file__).parents[1] / "strangers"))
from installed import Place


@pytest.fixture
def package(cli: Cli, tmp_path: Path) -> Place:
    """Where the package of a new paper is installed."""
    assert cli("new", "paper", "echo2031").code == 0
    return Place(tmp_path, tmp_path / "echo2031")


def test_its_experiment_is_found_by_name_and_its_claims_by_its_own(package: Place) -> None:
    named = package.run("table", "echo2031-fig1")
    assert "no records of echo2031-fig1 in runs; run it first" in named.stderr
    missed = package.run("run", "echo2031-fig2")
    assert "unknown experiment 'echo2031-fig2'; did you mean 'echo2031-fig1'?" in missed.stderr
    claims = package.run("claims", "echo2031")
    assert claims.returncode == 0, claims.stderr
    assert claims.stdout.rstrip().splitlines()[-1] == "1 claim: 1 not run"


@pytest.mark.parametrize(
    ("new", "words"),
    [
        (
            'predicate = "orderin"\n',
            "parts no. 1: unknown predicate 'orderin'; did you mean 'order",
        ),
        ("", "missing key 'predicate' in [[claims]] no. 1: parts no. 1"),
    ],
)
def test_a_wrong_predicate_is_one_line(package: Place, new: str, words: str) -> None:
    (file,) = package.folder.glob("echo2031/src/*/echo2031/claims.toml")
    text = file.read_text()
    assert 'predicate = "ordering"\n' in text
    file.write_text(text.replace('predicate = "ordering"\n', new))
    done = package.run("claims", "echo2031")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert words in done.stderr
