"""Splits that were published with a data set."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from declared import declared

from svgpbench_datasets import REGISTRY, DataError, DatasetEntry
from svgpbench_datasets.masks import fixed_split

MASKS = b"1,0\n0,1\n0,0\n0,0\n"


def entry(splits: dict[str, Any] | None) -> DatasetEntry:
    return declared(rows=4, columns=["a", "b"], target="b", splits=splits)


MASKED = {"masks": {"path": "t.masks", "sha256": "0" * 64}, "count": 2}


def test_a_mask_marks_the_test_rows() -> None:
    split = fixed_split(entry(MASKED), 1, lambda _: MASKS)
    assert split.test.tolist() == [1]
    assert split.train.tolist() == [0, 2, 3]
    assert (split.kind, split.fold, split.folds, split.seed) == ("fixed", 1, 2, 0)


def test_leading_rows_train() -> None:
    split = fixed_split(entry({"train_rows": 3}), 0, lambda _: b"")
    assert (split.train.tolist(), split.test.tolist()) == ([0, 1, 2], [3])


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"1,0\n0,1\n0,0\n", r"of shape \(3, 2\); masks of 0 and 1, \[4, 2\], are declared"),
        (b"1\n0\n0\n0\n", r"of shape \(4, 1\)"),
        (b"1,0\n0,2\n0,0\n0,0\n", r"masks of 0 and 1"),
        (b"1,0\n0,x\n0,0\n0,0\n", "not a table of numbers"),
        (b"0,0\n0,1\n0,0\n0,0\n", "test part of a split has shape"),
    ],
)
def test_a_mask_that_is_none_is_refused(raw: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        fixed_split(entry(MASKED), 0, lambda _: raw)


def test_a_split_that_is_not_there_is_refused_in_one_line() -> None:
    with pytest.raises(
        DataError, match="'t' has 2 fixed splits, numbered from 0: there is no fold 2"
    ):
        fixed_split(entry(MASKED), 2, lambda _: MASKS)
    with pytest.raises(DataError, match="has 1 fixed split, numbered from 0"):
        fixed_split(entry({"train_rows": 3}), 1, lambda _: b"")
    with pytest.raises(DataError, match="'airfoil' has no fixed splits; use split kind 'k-fold'"):
        REGISTRY.fixed_split("airfoil", 0)


def test_the_published_split_of_mnist_is_pinned() -> None:
    split = REGISTRY.fixed_split("mnist", 0)  # reads no file
    assert np.array_equal(split.train, np.arange(60000))
    assert np.array_equal(split.test, np.arange(60000, 70000))
    assert split.hash == "sha256:8b73fb5e979680cd92f8b2955f66cd7c2750e5bf89335cc0d6bbe1702047a225"
