"""A paper of another package: its experiment is run by name, and a wrong predicate is one line."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from command_line import Cli


@pytest.fixture
def paper(cli: Cli, tmp_path: Path) -> Path:
    """The folder of a new paper, whose package is installed in `tmp_path`/installed."""
    assert cli("new", "paper", "echo2031").code == 0
    project = tomllib.loads((tmp_path / "echo2031/pyproject.toml").read_text())["project"]
    info = tmp_path / "installed" / f"echo2031-{project['version']}.dist-info"
    info.mkdir(parents=True)
    head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(head)
    points = project["entry-points"]["svgpbench.papers"]
    lines = [f"{name} = {module}" for name, module in points.items()]
    (info / "entry_points.txt").write_text("\n".join(["[svgpbench.papers]", *lines, ""]))
    return next(tmp_path.glob("echo2031/src/*/echo2031"))


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    paths = [folder / "installed", folder / "echo2031/src", os.environ.get("PYTHONPATH", "")]
    return subprocess.run(
        [sys.executable, "-m", "svgpbench.cli", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, map(str, paths)))},
    )


def test_its_experiment_is_found_by_name_and_its_claims_by_its_own(
    tmp_path: Path, paper: Path
) -> None:
    named = run(tmp_path, "table", "echo2031-fig1")
    assert "no records of echo2031-fig1 in runs; run it first" in named.stderr
    missed = run(tmp_path, "run", "echo2031-fig2")
    assert "unknown experiment 'echo2031-fig2'; did you mean 'echo2031-fig1'?" in missed.stderr
    claims = run(tmp_path, "claims", "echo2031")
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
def test_a_wrong_predicate_is_one_line(tmp_path: Path, paper: Path, new: str, words: str) -> None:
    file = paper / "claims.toml"
    text = file.read_text()
    assert 'predicate = "ordering"\n' in text
    file.write_text(text.replace('predicate = "ordering"\n', new))
    done = run(tmp_path, "claims", "echo2031")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert words in done.stderr
