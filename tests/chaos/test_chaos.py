"""The chaos run itself, small: kills of every phase, and a fault that it must notice."""

from __future__ import annotations

from pathlib import Path

import chaos_run
import pytest
from chaos_kills import PHASES, Kill


@pytest.mark.slow
def test_ten_cells_survive_four_kills(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--cells", "10", "--kills", "4", "--iterations", "15", "--jobs", "1"]
    assert chaos_run.main(sizes) == 0, capsys.readouterr().out
    printed = capsys.readouterr().out
    assert "4 kills: 1 start, 1 mid-cell, 1 record write, 1 collecting" in printed
    assert "records and tables equal the undisturbed run's" in printed


def test_what_is_missing_or_differs_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that loses a record and changes another, in place of one that is killed."""

    def careless(folder: Path, options: object, seconds: float) -> tuple[list[Kill], int]:
        results = folder / "disturbed"
        chaos_run.command(folder, "run", "chaos.toml", "--results", str(results), "--jobs", "1")
        first, *_ = sorted(results.rglob("*.json"))
        first.unlink()
        (results / "chaos" / ".draft.1.tmp").write_text("")
        return [Kill(phase, "runner", False) for phase in PHASES], 1

    monkeypatch.setattr(chaos_run, "disturbed", careless)
    sizes = ["--cells", "10", "--kills", "4", "--iterations", "1", "--jobs", "1"]
    assert chaos_run.main(sizes) == 1
    printed = capsys.readouterr().out
    assert "1 cells have no record" in printed
    assert "the tables differ" in printed
    assert "1 files are left half-written, such as .draft.1.tmp" in printed
