"""Splits partition the rows, and are the same on every machine; groups and blocks stay together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svgpbench_datasets import (
    DataError,
    Split,
    block_fold,
    column_fold,
    group_fold,
    hold_out,
    k_fold,
    load_user_table,
    random_split,
)


@st.composite
def fold_requests(draw: st.DrawFn) -> tuple[int, int, int]:
    n = draw(st.integers(2, 300))
    return n, draw(st.integers(2, min(n, 20))), draw(st.integers(0, 2**40))


@settings(deadline=None)
@given(fold_requests())
def test_the_test_parts_of_all_folds_partition_the_rows(request: tuple[int, int, int]) -> None:
    n, folds, seed = request
    splits = [k_fold(n, folds, fold, seed) for fold in range(folds)]
    together = np.concatenate([split.test for split in splits])
    assert sorted(together.tolist()) == list(range(n))
    sizes = [split.test.size for split in splits]
    assert max(sizes) - min(sizes) <= 1
    for fold, split in enumerate(splits):
        assert sorted([*split.train.tolist(), *split.test.tolist()]) == list(range(n))
        assert (np.diff(split.train) > 0).all()
        assert (np.diff(split.test) > 0).all()
        assert (split.kind, split.fold, split.folds, split.seed) == ("k-fold", fold, folds, seed)
    assert len({split.hash for split in splits}) == folds


@settings(deadline=None)
@given(st.integers(2, 300), st.floats(0.01, 0.99), st.integers(0, 2**40))
def test_a_random_split_partitions_the_rows(n: int, fraction: float, seed: int) -> None:
    try:
        split = random_split(n, fraction, seed)
    except DataError as error:
        assert "leaves no" in str(error)
        return
    assert sorted([*split.train.tolist(), *split.test.tolist()]) == list(range(n))
    assert abs(split.test.size - n * fraction) <= 0.5
    assert (split.kind, split.fold, split.folds) == ("random", 0, 1)


PINNED = [
    (506, 5, 0, 0, "sha256:5f99c8fa13b7c5981ba4b16774ac8c9a602ae3d4fcc02ced18b8eeefcbd9911d"),
    (506, 5, 4, 0, "sha256:5e01450537843b342e79472639d67a85127953f1f5351746fe720c36aa5eda31"),
    (1503, 5, 2, 19, "sha256:3ab9d6838b242b25da0b0fecee3650a89db364b00075c017f3c203f57a4ce64d"),
    (1030, 10, 9, 7, "sha256:28e90645269e41e3e29a9775d196503d4c8710df90748080317f27ce8b6ad867"),
    (208, 5, 1, 12345, "sha256:8b396bd050cf6e450c0f161265ff29da25d16af595ce36836b652491e5460658"),
    (400, 3, 2, 2**40, "sha256:aca9e142c7392a607b821756dc91450f5a5f6870dc38cb30ebd3e68de5691255"),
]


@pytest.mark.parametrize(("n", "folds", "fold", "seed", "expected"), PINNED)
def test_folds_are_the_same_on_every_machine(
    n: int, folds: int, fold: int, seed: int, expected: str
) -> None:
    assert k_fold(n, folds, fold, seed).hash == expected


def test_a_fold_is_pinned_row_by_row() -> None:
    assert k_fold(10, 5, 0, 0).test.tolist() == [4, 6]


def test_a_random_split_is_the_same_on_every_machine() -> None:
    expected = "sha256:dad31a89485c7a864f3e65e0726bef4dc835fd34edeedb3333bfaf55e36a78f2"
    assert random_split(506, 0.1, 0).hash == expected


def test_the_hash_is_of_the_rows_alone() -> None:
    split = k_fold(10, 2, 0, 0)
    same = Split(split.train[::-1].copy(), split.test, "random", 0, 1, 9)
    other = Split(split.test, split.train, "k-fold", 0, 2, 0)
    assert same.hash == split.hash
    assert other.hash != split.hash


def test_seeds_give_different_splits_and_repeat_themselves() -> None:
    assert k_fold(50, 5, 0, 1).hash != k_fold(50, 5, 0, 2).hash
    assert k_fold(50, 5, 0, 1).hash == k_fold(50, 5, 0, 1).hash


def test_rows_of_a_split_cannot_be_changed() -> None:
    split = k_fold(10, 2, 0, 0)
    with pytest.raises(ValueError, match="read-only"):
        split.train[0] = 5


@pytest.mark.parametrize(
    ("n", "folds", "fold", "seed", "message"),
    [
        (10, 1, 0, 0, "1 folds: cross-validation needs at least 2"),
        (10, 0, 0, 0, "0 folds"),
        (10, 11, 0, 0, "11 folds of 10 rows: some would be empty; use at most 10"),
        (10, 5, 5, 0, "fold 5 of 5: folds are numbered from 0 to 4"),
        (10, 5, -1, 0, "fold -1 of 5"),
        (10, 5, 0, -1, "seed -1: give a whole number from 0"),
    ],
)
def test_a_number_out_of_range_is_refused(
    n: int, folds: int, fold: int, seed: int, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        k_fold(n, folds, fold, seed)


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.5, 2.0, float("nan")])
def test_a_fraction_out_of_range_is_refused(fraction: float) -> None:
    with pytest.raises(DataError, match="give a number between 0 and 1"):
        random_split(10, fraction, 0)


def test_a_fraction_that_leaves_a_part_empty_is_refused() -> None:
    with pytest.raises(DataError, match=r"0\.01 of 10 rows leaves no test row"):
        random_split(10, 0.01, 0)
    with pytest.raises(DataError, match=r"0\.99 of 10 rows leaves no training row"):
        random_split(10, 0.99, 0)
    with pytest.raises(DataError, match="seed -1"):
        random_split(10, 0.5, -1)


@pytest.mark.parametrize(
    ("train", "test"), [([0, 1], [1, 2]), ([0, 0], [1]), ([-1, 0], [1]), ([], [1]), ([[0]], [1])]
)
def test_parts_that_overlap_or_are_empty_are_refused(train: list[int], test: list[int]) -> None:
    with pytest.raises(DataError):
        Split(np.array(train), np.array(test), "random", 0, 1, 0)


def test_parts_are_row_numbers_and_nothing_that_becomes_some() -> None:
    for part in ([0.5, 2.0], [True, False], [np.nan, 1.0]):
        with pytest.raises(DataError, match=r"train part of a split holds .* give row numbers"):
            Split(np.array(part), np.array([3]), "random", 0, 1, 0)  # type: ignore[arg-type]
    read = Split(np.array([0.0, 2.0]), np.array([3.0]), "random", 0, 1, 0)  # type: ignore[arg-type]
    assert read.train.tolist() == [0, 2]


@settings(deadline=None)
@given(fold_requests(), st.floats(0.05, 0.9))
def test_held_out_rows_are_of_the_training_part(
    request: tuple[int, int, int], share: float
) -> None:
    n, folds, seed = request
    outer = k_fold(n, folds, seed % folds, seed)
    try:
        inner = hold_out(outer, share, seed)
    except DataError as error:
        assert "leaves no" in str(error)
        return
    assert sorted([*inner.train.tolist(), *inner.test.tolist()]) == outer.train.tolist()
    assert not set(outer.test.tolist()) & {*inner.train.tolist(), *inner.test.tolist()}
    assert abs(inner.test.size - share * outer.train.size) <= 0.5
    again = hold_out(k_fold(n, folds, seed % folds, seed), share, seed)
    assert (again.train.tolist(), again.test.tolist()) == (
        inner.train.tolist(),
        inner.test.tolist(),
    )
    assert inner.hash != outer.hash
    assert (inner.kind, inner.fold, inner.folds, inner.seed) == (
        outer.kind,
        outer.fold,
        outer.folds,
        outer.seed,
    )


def test_held_out_rows_are_the_same_on_every_machine() -> None:
    assert hold_out(k_fold(506, 5, 0, 0), 0.1, 0).hash == HELD_OUT
    assert hold_out(k_fold(506, 5, 0, 0), 0.1, 1).hash != HELD_OUT


HELD_OUT = "sha256:bd4fff24e004b3b733719f6709a380832ac57ad64c1350e9c94773ae02d0177f"


def test_held_out_rows_of_other_folds_differ() -> None:
    """They are a random part of each fold's training rows, not the first ones."""
    rows = [hold_out(k_fold(100, 5, fold, 0), 0.2, 0).test.tolist() for fold in range(5)]
    assert len({tuple(x) for x in rows}) == 5
    assert all(x != sorted(k_fold(100, 5, f, 0).train)[:16] for f, x in enumerate(rows))


@pytest.mark.parametrize("share", [0.0, 1.0, 0.001])
def test_a_held_out_part_is_never_empty(share: float) -> None:
    with pytest.raises(DataError):
        hold_out(k_fold(50, 5, 0, 0), share, 0)


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
    for column, why in (
        ("same", r"has 1 distinct value \('a'\); a split by groups needs at least two: "),
        ("size", "has 4 distinct numbers in 4 rows, such as 0.5: these are no labels; "),
    ):
        file.write_text("same,size,x,y\na,0.7,1,2\na,0.5,2,3\na,1.5,3,5\na,2.5,3,5\n")
        with pytest.raises(DataError, match=f"groups '{column}' {why}choose another column of gr"):
            load_user_table(file, target="y", task="regression", features=["x"], groups=column)
    with pytest.raises(DataError, match="no column 'whom'"):
        load_user_table(file, target="y", task="regression", groups="whom")
