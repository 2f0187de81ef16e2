"""A large set is held once, from its text to minibatches: measured in processes of their own.

What libraries need for themselves is the same for a small and a large table, so that the difference counts.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from declared import declared, write_registry
from interpreter import python

BLOCK, COLUMNS = 10_000, 20
PARTS = """
import sys
from pathlib import Path
import numpy as np
import pandas, pyarrow.parquet  # what they need for themselves is there before
from svgpbench.runs.worker_setup import peak_memory_bytes as peak
from svgpbench.training.batches import Batches, TrainingData
from svgpbench.initialization.inducing_inputs import initial_inducing_inputs
from svgpbench.kernels.kernels import kernel
from svgpbench.likelihoods import GaussianLikelihood
from svgpbench.methods import build_method
from svgpbench.kernels import Model
from svgpbench.backends import load_backend
from svgpbench_datasets import Registry, prepare, random_split
from svgpbench_datasets.sources import Sources

folder = Path(sys.argv[1])
ops, method = load_backend("numpy"), build_method("t-svgp", {})
before = peak()
dataset = Registry(folder, Sources(folder, cache=folder / "cache", mirrors=(sys.argv[1],))).load("t")
loaded = peak()
ready = prepare(dataset, random_split(len(dataset.y), 0.1, 0))
data = TrainingData(ready.X_train, ready.y_train, ready.X_test, ready.y_test)
Z = initial_inducing_inputs(data.X, 10, "k-means", 0)
batches = Batches(ops, Model(kernel("se"), GaussianLikelihood()), method, data, 1000, 0)
seen = sum(float(batches.minibatches(5, Z).y.sum()) for _ in range(20))
for chunk in batches.evaluation(Z):
    seen += float(chunk.X.sum())
print([dataset.X.nbytes, loaded - before, peak() - before])
"""


def declare(folder: Path, times: int) -> None:
    """A table of some blocks of rows and its registry."""
    columns = [*(f"x{at}" for at in range(COLUMNS)), "y"]
    files = [{"path": "t.csv", "at_most": 10**9}]
    write_registry(folder, declared(files=files, rows=times * BLOCK, columns=columns, target="y"))
    block = "".join(
        ",".join(str((row * 31 + at * 17) % 997 / 8) for at in range(COLUMNS + 1)) + "\n"
        for row in range(BLOCK)
    )
    with (folder / "t.csv").open("w") as out:
        for _ in range(times):
            out.write(block)


def measured(folder: Path) -> list[int]:
    """Bytes of the table, and of the peak above the libraries': once loaded, and at the end."""
    alone = {"SVGPBENCH_MIRROR": "", "PYTHONPATH": ":".join(sys.path)}
    done = python("-c", PARTS, folder, env=alone)
    assert done.returncode == 0, done.stderr
    return [int(number) for number in json.loads(done.stdout)]


@pytest.mark.long
def test_no_second_copy_is_held_from_the_text_to_minibatches(tmp_path: Path) -> None:
    declare(tmp_path / "small", 10)
    declare(tmp_path / "large", 50)
    for _ in ("parsed from text", "read from what was kept"):
        small, large = measured(tmp_path / "small"), measured(tmp_path / "large")
        table, loaded, whole = (more - less for more, less in zip(large, small, strict=True))
        assert table == 40 * BLOCK * COLUMNS * 8
        assert 0.9 * table < loaded < 1.4 * table, (small, large)
        assert 0.9 * table < whole < 1.6 * table, (small, large)
