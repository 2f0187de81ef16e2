"""Class labels as written, to the numbers 0..K-1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svgpbench_datasets.dataset import Floats, Task
from svgpbench_datasets.errors import DataError
from svgpbench_datasets.reading.cells import finite_number, shown

_EXACT = 2.0**53  # beyond it two whole numbers can share one float: keep their text apart


def canonical_label(text: str) -> str:
    """One spelling for each label: `1`, `1.0` and `1.000e+00` are the same class."""
    value = finite_number(text)
    if value is None or abs(value) >= _EXACT:
        return text.strip()
    return repr(value + 0.0).removesuffix(".0")


def class_labels(
    labels: Iterable[str], where: str, *, task: Task
) -> tuple[Floats, tuple[str, ...]]:
    """Map distinct labels to 0..K-1 in sorted order: numbers by value, else as text.

    Args:
        labels: one a row, [N].
        where: the file and column, for messages.
        task: `classification` for exactly two classes, `multiclass` for two or more.

    Returns:
        y [N] in 0..K-1, and the labels of the classes, class 0 first.

    Raises:
        DataError: another number of distinct labels than the task takes.
    """
    canonical = [canonical_label(label) for label in labels]
    classes = tuple(_sorted_labels(set(canonical)))
    if len(classes) < 2 or (task == "classification" and len(classes) > 2):
        few = ", ".join([shown(label) for label in classes[:5]] + ["..."] * (len(classes) > 5))
        values = "value" if len(classes) == 1 else "values"
        other = "'multiclass'" if len(classes) > 2 else "'regression'"
        needs = "exactly two" if task == "classification" else "at least two"
        raise DataError(
            f"{where} has {len(classes)} distinct {values} ({few}); "
            f"{task} needs {needs}: choose another target or task {other}"
        )
    number = {label: float(k) for k, label in enumerate(classes)}
    return np.array([number[label] for label in canonical]), classes


def mapped_labels(
    labels: Iterable[str], mapping: Mapping[str, int], where: str, before: int = 0
) -> Floats:
    """Map labels to the class numbers that a registry entry gives them, [N]; `before` rows came before.

    Raises:
        DataError: a label that the mapping does not name, with its row from 1.
    """
    y = []
    for row, label in enumerate(labels, start=before + 1):
        canonical = canonical_label(label)
        if canonical not in mapping:
            raise DataError(
                f"{where}: data row {row}, label {shown(label)} is not among {', '.join(mapping)}"
            )
        y.append(mapping[canonical])
    return np.array(y, dtype=np.float64)


def mapped_numbers(
    values: NDArray[Any], mapping: Mapping[str, int], where: str, before: int = 0
) -> Floats:
    """Map labels that are numbers, [N], to the class numbers that a registry entry gives them.

    `before` rows came before.

    Raises:
        DataError: a label that the mapping does not name, with its row from 1.
    """
    distinct, places = np.unique(values, return_inverse=True)
    labels = [canonical_label(repr(float(one))) for one in distinct]
    for at, label in enumerate(labels):
        if label not in mapping:
            row = before + int(np.argmax(places == at)) + 1
            raise DataError(
                f"{where}: data row {row}, label {label!r} is not among {', '.join(mapping)}"
            )
    return np.array([mapping[label] for label in labels], dtype=np.float64)[places]


def _sorted_labels(labels: set[str]) -> Sequence[str]:
    values = {label: finite_number(label) for label in labels}
    if None in values.values():
        return sorted(labels)
    return sorted(labels, key=float)
