"""A data set keeps its numbers to itself, and its fingerprint is of them alone."""

from __future__ import annotations

import hashlib
import struct
from typing import Any

import numpy as np
import pytest

from svgpbench_datasets import DataError, Dataset, fingerprint

X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
Y = np.array([0.0, 1.0, 1.0])


def made(**changes: Any) -> Dataset:
    fields: dict[str, Any] = {
        "name": "t",
        "task": "regression",
        "X": X,
        "y": Y,
        "feature_names": ("a", "b"),
        "target_name": "y",
        "source": "made in a test",
    }
    return Dataset(**{**fields, **changes})


def test_the_fingerprint_is_pinned() -> None:
    raw = b"X (3, 2) <f8\n" + struct.pack("<6d", 1, 2, 3, 4, 5, 6)
    raw += b"y (3,) <f8\n" + struct.pack("<3d", 0, 1, 1)
    expected = "sha256:b91ce25948de7b1ba0ed6aecc69d29990b429750684f3b2b7e19f24b4a14ad7b"
    assert f"sha256:{hashlib.sha256(raw).hexdigest()}" == expected
    assert made().fingerprint == fingerprint(X, Y) == expected


def test_the_fingerprint_does_not_depend_on_layout_or_names() -> None:
    expected = made().fingerprint
    assert made(X=np.asfortranarray(X)).fingerprint == expected
    assert made(X=X.astype(">f8"), y=Y.astype(np.float32)).fingerprint == expected
    assert made(y=np.array([-0.0, 1.0, 1.0])).fingerprint == expected
    assert made(name="other", feature_names=("c", "d")).fingerprint == expected


def test_the_fingerprint_tells_any_other_numbers_apart() -> None:
    others = [
        made(X=X[::-1]),
        made(X=X[:, ::-1]),
        made(X=np.nextafter(X, 10)),
        made(y=Y[::-1]),
        made(X=X[:2], y=Y[:2]),
        made(X=X.reshape(3, 2)[:, :1], feature_names=("a",)),
    ]
    assert len({made().fingerprint, *(other.fingerprint for other in others)}) == 7


def test_arrays_are_private_and_read_only() -> None:
    mine = X.copy()
    dataset = made(X=mine)
    mine[0, 0] = 99.0
    assert dataset.X[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        dataset.X[0, 0] = 99.0
    grouped = made(groups=[0, 1, 0], group_labels=("a", "b"))
    assert grouped.groups is not None and not grouped.groups.flags.writeable
    with pytest.raises(AttributeError):
        dataset.name = "other"  # type: ignore[misc]


def test_binary_and_multiclass_labels_are_accepted() -> None:
    assert made(task="classification", class_labels=("no", "yes")).class_labels == ("no", "yes")
    three = made(task="multiclass", y=np.array([0, 1, 2]), class_labels=("a", "b", "c"))
    assert three.y.dtype == np.float64


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": X[:2]}, r"X has shape \(2, 2\) and y \(3,\)"),
        ({"X": X[:, 0]}, r"give X \[N, D\] and y \[N\]"),
        ({"y": Y[:, None]}, r"y \(3, 1\)"),
        ({"X": X[:0], "y": Y[:0]}, r"X has shape \(0, 2\)"),
        ({"X": X[:, :0], "feature_names": ()}, r"X has shape \(3, 0\)"),
        ({"feature_names": ("a",)}, "1 feature names for 2 columns"),
        ({"y": np.array([0, np.nan, 1])}, "holds NaN or infinity"),
        ({"X": np.where(X == 3, np.inf, X)}, "holds NaN or infinity"),
        ({"class_labels": ("a", "b")}, "regression has no class labels"),
        ({"task": "classification"}, "classification with 0 class labels"),
        ({"task": "classification", "class_labels": ("a", "b", "c")}, "with 3 class labels"),
        (
            {"task": "classification", "class_labels": ("a", "b"), "y": np.array([0, 1, 2])},
            "labels must be whole numbers from 0 to 1",
        ),
        (
            {"task": "multiclass", "class_labels": ("a", "b", "c"), "y": np.array([0, 0.5, 2])},
            "labels must be whole numbers from 0 to 2",
        ),
        *(
            (
                {"groups": groups, "group_labels": ("a", "b")},
                "groups must be a whole number per row",
            )
            for groups in ([0, 1], [[0, 1, 1]], [0.0, 1.0, 1.0], [0, 1, 2], [0, -1, 1])
        ),
        ({"groups": [0, 0, 0]}, "the place of its group among the 0 group_labels"),
    ],
)
def test_numbers_that_are_no_data_set_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        made(**changes)
