"""The script that compares the fingerprints of registry files with the numbers, and corrects them."""

from __future__ import annotations

import shutil
from importlib.resources import files
from pathlib import Path

import pytest
from pin_fingerprints import main

from svgpbench_datasets import REGISTRY

REGISTRY_FILE = Path(str(files("svgpbench_datasets"))) / "registry.toml"


@pytest.fixture(autouse=True)
def nothing_but_what_is_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVGPBENCH_DATA", str(tmp_path / "cache"))
    monkeypatch.delenv("SVGPBENCH_MIRROR", raising=False)


def test_a_wrong_fingerprint_is_found_and_corrected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "registry.toml"
    shutil.copy(REGISTRY_FILE, copy)
    before = copy.read_text(encoding="utf-8")
    right = REGISTRY.describe("concrete:5").fingerprint
    assert right
    wrong = "sha256:" + "0" * 64
    copy.write_text(before.replace(right, wrong), encoding="utf-8")
    assert main([str(copy)]) == 1
    printed = capsys.readouterr().out
    assert f"DIFFERS concrete:5 {right}" in printed
    assert printed.count("DIFFERS") == 1
    assert printed.count("same") == 9
    assert wrong in copy.read_text(encoding="utf-8")
    assert main([str(copy), "--write"]) == 0
    assert copy.read_text(encoding="utf-8") == before
    assert main([str(copy)]) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[boston]\n", "notes.toml; name a registry file"),
        (f'[seas]\nfingerprint = "sha256:{"0" * 64}"\n', "error: unknown data set 'seas'"),
    ],
)
def test_a_file_that_pins_nothing_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    (tmp_path / "notes.toml").write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main([str(tmp_path / "notes.toml")])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err.splitlines()[-1]
