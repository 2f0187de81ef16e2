"""`svgpbench advise`: the answer from the shipped board, and the experiment that it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Cli

from svgpbench.experiments import load_experiment, resolve


def test_the_command_answers_in_three_lines_and_writes_a_file_that_runs(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i % 17},{(7 * i) % 23},{(i % 17) ** 0.5 + i % 3}\n" for i in range(60))
    (tmp_path / "mine.csv").write_text("a,b,y\n" + rows)
    done = cli("advise", "mine.csv", "--target", "y", "--write", "my.toml")
    assert done.code == 0, done.err
    assert done.out.startswith(
        "60 rows, 2 inputs, likelihood gaussian: take M = 50 inducing points"
    )
    answer = json.loads(cli("advise", "mine.csv", "--target", "y", "--json").out)
    names = [x["entrant"] for x in answer["recommended"]]
    assert len(names) == 3
    assert [x for x in names if x in done.out] == names
    assert "problems left out in turn" in " ".join(done.out.split())
    assert {x.method.label for x in resolve(load_experiment("my.toml"))} == set(names)
    assert done.out.rstrip().endswith("next: svgpbench run my.toml")


def test_a_file_of_another_kind_is_refused(cli: Cli) -> None:
    done = cli("advise", "airfoil", "--write", "my.json")
    assert (done.code, done.err) == (
        2,
        "error: --write my.json: an experiment file ends in .toml\n",
    )
