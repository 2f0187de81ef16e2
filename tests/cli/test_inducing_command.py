"""`svgpbench inducing`: its table, its answer and its picture."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import Cli

PNG = b"\x89PNG"


@pytest.fixture
def sine(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 6.0, 60)
    pd.DataFrame({"x": x, "price": np.sin(x) + rng.normal(0.0, 0.1, 60)}).to_csv(
        tmp_path / "mine.csv", index=False
    )
    return tmp_path / "mine.csv"


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
