"""One run of one's own does not hide the shipped grades."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Cli
from own_experiment import write_own

CLAIM = "adam2021-16"


@pytest.fixture
def after_a_run(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_own(tmp_path, ("folds = [0, 1]", "folds = [0]"))
    assert cli("run", "mine.toml").code == 0
    return tmp_path


@pytest.mark.slow
def test_a_claim_that_nothing_of_ones_own_decides_has_its_shipped_grade(
    cli: Cli, after_a_run: Path
) -> None:
    done = cli("claims", CLAIM)
    assert f"{CLAIM}  t-SVGP is at least as good" in done.out
    assert ": holds (as printed)" in done.out
    assert "--results runs shows yours alone" in " ".join(done.err.split())
    (entry,) = json.loads(cli("claims", CLAIM, "--json").out)
    assert (entry["grade"], entry["released"]["grade"]) == ("not run", "holds")
    alone = cli("claims", CLAIM, "--results", "runs")
    assert "not run" in alone.out and "shipped" not in alone.out + alone.err
