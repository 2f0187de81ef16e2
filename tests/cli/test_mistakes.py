"""Every mistake of a user's: one line that says what is wrong, exit code 2, nothing written."""

from __future__ import annotations

import shlex
from glob import glob
from pathlib import Path

import pytest
from command_line import Cli
from command_table import COMMANDS, ENTRIES, WRONG_ENTRIES, WRONG_KEYS
from own_experiment import EXPERIMENT, write_own

from svgpbench.api import fit
from svgpbench.errors import UserError


def refused(cli: Cli, line: str) -> str:
    """Return the one line that a mistake prints; the files of the folder stay as they were."""
    before = _files()
    outcome = cli(*shlex.split(line))
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error: ")
    assert outcome.err.count("\n") == 1
    assert _files() == before
    return outcome.err


def _files() -> dict[Path, int]:
    """Return the paths below this folder, with the times when files were written."""
    paths = sorted(Path.cwd().rglob("*"))
    return {path: 0 if path.is_dir() else path.stat().st_mtime_ns for path in paths}


@pytest.mark.parametrize("line", COMMANDS[2])
def test_a_mistake_on_the_command_line_is_one_line(
    in_place: Cli, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    if "--dask" in line:
        pytest.importorskip("distributed", reason="the extra `dask` is not installed")
        monkeypatch.setattr("svgpbench.cli.clusters.CONNECT_S", 2.0)
    assert COMMANDS[2][line] in refused(in_place, line)


@pytest.mark.parametrize(
    ("line", "old", "new", "words"),
    [*(("run changed.toml", *change) for change in WRONG_KEYS), *WRONG_ENTRIES],
)
def test_a_mistake_in_an_experiment_file_is_one_line_that_names_the_file(
    in_place: Cli, line: str, old: str, new: str, words: str
) -> None:
    assert old in EXPERIMENT + ENTRIES
    text = EXPERIMENT + ENTRIES
    Path("changed.toml").write_text(text.replace(old, new) if old else text)
    message = refused(in_place, line)
    assert words in message
    if line == "run changed.toml":
        assert message.startswith("error: changed.toml")


@pytest.mark.skipif(bool(glob("/dev/nvidia[0-9]*")), reason="has an accelerator")
@pytest.mark.parametrize("backend", ["jax", "torch", "tensorflow"])
def test_a_device_that_is_not_there_is_refused_before_workers_start(
    cli: Cli, tmp_path: Path, backend: str
) -> None:
    pytest.importorskip(backend)
    write_own(tmp_path)
    line = refused(cli, f"run mine.toml --backend {backend} --device cuda")
    assert line == f"error: backend '{backend}' has no device 'cuda' here; see `svgpbench doctor`\n"
    with pytest.raises(UserError, match=f"^backend '{backend}' has no device 'cuda' here"):
        fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0], inducing=2, backend=backend, device="cuda")
