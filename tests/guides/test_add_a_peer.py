"""docs/add-a-peer.md, followed: the peer's step agrees with ours and is timed; a wrong one is not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from guide import Guide

from svgpbench.benchmarks.timing.problems import make_problem


@pytest.fixture
def guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Guide:
    monkeypatch.setenv("SVGPBENCH_PLAIN_PYTHON", sys.executable)
    return Guide(tmp_path, "add-a-peer.md")


FAST = ("--repeats", "1", "--no-floor", "--max-other-cores", "64", "--threads", "1")


def test_the_peer_agrees_and_is_timed(guide: Guide) -> None:
    pytest.importorskip("torch")
    (command,) = guide.commands
    done = guide.run(*command, *FAST)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "× plain" in done.stdout and "2 cells, worst difference" in done.stdout
    refused = guide.run(*[x.replace("e_step", "m_step") for x in command], *FAST)
    assert "refused: it has E-steps with Gaussian noise alone" in refused.stdout
    guide.changed("plain_peer/steps.py", ("r * r / 3.0", "r * r / 3.001"))
    wrong = guide.run(*command, *FAST)
    assert wrong.returncode == 1 and "not timed" in wrong.stdout


def test_the_table_names_the_arrays_of_a_problem() -> None:
    page = (Path(__file__).parents[2] / "docs" / "add-a-peer.md").read_text("utf-8")
    _, _, table = page.partition("| name | shape | what |")
    arrays = {x for x, value in make_problem("tiny")._asdict().items() if value is not None}
    named = {
        x for line in table.splitlines() for x in line.partition("|")[2].split("|")[0].split("`")
    }
    assert arrays - named == {"rows", "rows_later", "two_bases"}  # which no peer's script reads
