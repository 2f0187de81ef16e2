"""`svgpbench inducing` and `advise`: their answers, a picture, and an experiment that runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import Cli

from svgpbench.experiments import Selection, load_experiment, resolve
from svgpbench.experiments.cell import load_data
from svgpbench.experiments.validation import checked_plan
from svgpbench.posterior.plots import plot_inducing_counts

PNG = b"\x89PNG"


@pytest.fixture
def sine(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 6.0, 60)
    pd.DataFrame({"x": x, "price": np.sin(x) + rng.normal(0.0, 0.1, 60)}).to_csv(
        tmp_path / "mine.csv", index=False
    )
    return tmp_path / "mine.csv"


def test_the_picture_has_the_bounds_per_row() -> None:
    table = pd.DataFrame({"inducing": [3, 12], "bound": [-8.0, 4.0], "upper_bound": [10.0, 6.0]})
    (axes,) = plot_inducing_counts(table, 2).axes
    bound, upper = axes.lines
    assert list(bound.get_ydata()) == [-4.0, 2.0]
    assert list(upper.get_ydata()) == [5.0, 3.0]


def test_table_and_answer_are_on_standard_output_and_a_picture_is_drawn(
    cli: Cli, sine: Path, tmp_path: Path
) -> None:
    picture = tmp_path / "bounds.png"
    counts = ("--count", "3", "--count", "12")
    arguments = ("inducing", sine, "--target", "price", "--backend", "numpy", *counts)
    done = cli(*arguments, "--out", picture)
    assert done.code == 0, done.err
    assert [line.split()[0] for line in done.out.splitlines()[1:3]] == ["3", "12"]
    assert picture.read_bytes().startswith(PNG)
    answer = json.loads(cli(*arguments, "--json").out)["answer"]
    assert answer.startswith("M = 12 is enough: at the hyperparameters of M = 12 log p(y)")
    assert " ".join(done.out.split()).endswith(answer)


def test_the_command_answers_in_three_lines_and_writes_a_file_that_runs(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i % 17},{(7 * i) % 23},{(i % 17) ** 0.5 + i % 3}\n" for i in range(60))
    (tmp_path / "mine.csv").write_text("a,b,y\n" + rows)
    done = cli("advise", "mine.csv", "--target", "y", "--write", "my.toml")
    assert done.code == 0, done.err
    assert done.out.startswith(
        "60 rows, 2 inputs, likelihood gaussian: take M = 48 inducing points"
    )
    answer = json.loads(cli("advise", "mine.csv", "--target", "y", "--json").out)
    names = [x["entrant"] for x in answer["recommended"]]
    assert len(names) == 3
    assert [x for x in names if x in done.out] == names
    assert "problems left out in turn" in " ".join(done.out.split())
    # with no more inducing inputs than the 48 rows that train
    cells = checked_plan("my.toml", None, Selection(backends=["numpy"])).configs
    assert {x.method.label for x in cells} == set(names)
    assert done.out.rstrip().endswith("next: svgpbench run my.toml")


def test_a_file_in_another_folder_names_the_table_as_run_reads_it(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text("a,y\n" + "".join(f"{i % 17},{i % 5}\n" for i in range(90)))
    (tmp_path / "far" / "off").mkdir(parents=True)
    (tmp_path / "link").symlink_to("far/off")
    for table in ("mine.csv", tmp_path / "mine.csv"):
        done = cli("advise", table, "--target", "y", "--write", "link/my.toml")
        assert done.code == 0, done.err
        cell, *_ = resolve(load_experiment("link/my.toml"))
        assert load_data(cell.data).X.shape == (90, 1)
