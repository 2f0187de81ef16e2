"""Splits of rows that belong together: by group, by block, and by a column of the user's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from svgpbench_datasets import (
    DataError,
    block_fold,
    column_fold,
    group_fold,
    load_user_table,
)

SIZES = [30, 1, 1, 12, 7, 25, 3, 3]
GROUPS = np.random.default_rng(0).permutation(np.repeat(np.arange(len(SIZES)), SIZES))


@pytest.mark.parametrize("seed", range(5))
def test_a_group_is_on_one_side_and_every_row_is_tested_once(seed: int) -> None:
    splits = [group_fold(GROUPS, 3, fold, seed) for fold in range(3)]
    for split in splits:
        assert not set(GROUPS[split.train]) & set(GROUPS[split.test])
        assert len(split.train) + len(split.test) == len(GROUPS)
    tested = np.concatenate([split.test for split in splits])
    assert sorted(tested) == list(range(len(GROUPS)))
    sizes = [len(split.test) for split in splits]
    assert max(sizes) - min(sizes) <= max(SIZES)


def test_groups_are_permuted_by_the_seed() -> None:
    assert len({group_fold(GROUPS, 3, 0, seed).hash for seed in range(5)}) > 1
    assert group_fold(GROUPS, 3, 0, 1).hash == group_fold(GROUPS, 3, 0, 1).hash


def test_a_block_is_of_consecutive_rows() -> None:
    assert [block_fold(7, 3, fold).test.tolist() for fold in range(3)] == [
        *([0, 1, 2], [3, 4], [5, 6])
    ]
    assert block_fold(7, 3, 1).train.tolist() == [0, 1, 2, 5, 6]


def test_a_value_of_a_column_is_a_fold() -> None:
    split = column_fold(np.array([1, 0, 0, 2, 1]), 1)
    assert (split.train.tolist(), split.test.tolist()) == ([1, 2, 3], [0, 4])
    with pytest.raises(DataError, match="fold 3 of 3: folds are numbered from 0 to 2"):
        column_fold(np.array([1, 0, 0, 2, 1]), 3)


def test_more_folds_than_groups_are_refused() -> None:
    with pytest.raises(DataError, match="9 folds of 8 groups: some would be empty"):
        group_fold(GROUPS, 9, 0, 0)


def test_a_column_of_groups_is_no_input_and_part_of_the_fingerprint(tmp_path: Path) -> None:
    file = tmp_path / "patients.csv"
    file.write_text("who,x,y\nbo,1,2\nal,2,3\nbo,3,5\n")
    table = load_user_table(file, target="y", task="regression", groups="who")
    assert table.feature_names == ("x",)
    assert (table.groups.tolist(), table.group_labels) == ([1, 0, 1], ("al", "bo"))
    plain = load_user_table(file, target="y", task="regression", features=["x"])
    assert plain.groups is None
    assert plain.fingerprint != table.fingerprint
    file.write_text("who,x,y\nal,1,2\nal,2,3\nbo,3,5\n")
    other = load_user_table(file, target="y", task="regression", groups="who")
    assert other.fingerprint != table.fingerprint
    with pytest.raises(DataError, match="no column 'whom'"):
        load_user_table(file, target="y", task="regression", groups="whom")
