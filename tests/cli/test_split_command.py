"""`svgpbench data split`: the rows that a run takes, told by hash and written as masks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import Cli

from svgpbench_datasets import REGISTRY, k_fold, random_split
from svgpbench_datasets.masks import read_masks


def test_folds_are_those_of_a_run_and_their_masks_partition_the_rows(
    cli: Cli, tmp_path: Path
) -> None:
    out = tmp_path / "folds.csv"
    printed = cli("data", "split", "boston", "--folds", "4", "--seed", "1", "--out", out, "--json")
    assert (printed.code, printed.err) == (0, "")
    told = json.loads(printed.out)
    masks = read_masks(out.read_bytes(), 506, 4, "folds.csv")
    assert (masks.sum(axis=1) == 1).all()
    for fold, facts in enumerate(told):
        split = k_fold(506, 4, fold, 1)
        assert facts["hash"] == split.hash
        assert (facts["n_train"], facts["n_test"]) == (len(split.train), len(split.test))
        assert np.array_equal(np.flatnonzero(masks[:, fold]), split.test)
    assert sorted(tmp_path.iterdir()) == [out]


def test_a_random_split_and_published_ones(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "masks.csv"
    random = cli("data", "split", "sonar", "--kind", "random", "--test-fraction", "0.25").out
    assert random.splitlines()[1].split() == ["0", "156", "52", random_split(208, 0.25, 0).hash]
    entry = REGISTRY.describe("banana:full")
    assert entry.splits is None
    refused = cli("data", "split", "banana:full", "--kind", "fixed", "--out", out)
    assert (refused.code, refused.out) == (2, "")
    assert "data set 'banana:full' has no fixed splits" in refused.err
    assert not out.exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--folds", "600"), "600 folds of 506 rows: some would be empty; use at most 506"),
        (("--kind", "random", "--test-fraction", "1.5"), "test fraction 1.5: give a number betw"),
        (("--kind", "random", "--test-fraction", "1e-9"), "leaves no test row"),
        (("--out", "no/such/folder.csv"), "no/such/folder.csv cannot be written (No such file"),
    ],
)
def test_a_split_that_cannot_be_is_one_line(cli: Cli, options: tuple[str, ...], words: str) -> None:
    outcome = cli("data", "split", "boston", *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert words in outcome.err
    assert outcome.err.count("\n") == 1
