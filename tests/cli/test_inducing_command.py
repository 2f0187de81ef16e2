"""`svgpbench inducing`: its table, its answer and its picture."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import Cli

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


@pytest.mark.parametrize(
    ("name", "why"), [("bounds.xyz", "name a file ending in"), ("absent/bounds.png", "absent")]
)
def test_a_picture_that_cannot_be_written_is_refused_before_the_fits(
    cli: Cli, sine: Path, tmp_path: Path, name: str, why: str
) -> None:
    done = cli("inducing", sine, "--target", "price", "--out", tmp_path / name)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert why in done.err


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
