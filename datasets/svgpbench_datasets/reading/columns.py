"""Which columns of a user's table are the inputs, checked before any number is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from svgpbench_datasets.errors import DataError, did_you_mean
from svgpbench_datasets.reading.cells import finite_number


def choose_features(
    names: Sequence[str], *, target: str, features: Sequence[str] | None, where: str
) -> tuple[str, ...]:
    """Check a table's column names and name its input columns.

    Args:
        names: every column of the table, in its order.
        target: the column to predict.
        features: the inputs in the order wanted; None for every column but the target.
        where: the file, for messages.

    Returns:
        the D feature names.

    Raises:
        DataError: names that are empty or repeated, a target or feature that is not there,
            a target among the features, no feature at all.
    """
    _check_names(names, where)
    if target not in names:
        raise DataError(
            f"{where}: no column {target!r} for the target{_hint(target, names)} "
            f"(columns: {_listed(names)})"
        )
    chosen = tuple(name for name in names if name != target) if features is None else features
    if not chosen:
        raise DataError(f"{where}: no feature columns beside the target {target!r}; add some")
    for name, times in Counter(chosen).items():
        if name not in names:
            raise DataError(
                f"{where}: no feature column {name!r}{did_you_mean(name, names)} "
                f"(columns: {_listed(names)})"
            )
        if times > 1:
            raise DataError(f"{where}: feature {name!r} is named {times} times; name it once")
    if target in chosen:
        raise DataError(f"{where}: the target {target!r} is among the features; remove it there")
    return tuple(chosen)


def _check_names(names: Sequence[str], where: str) -> None:
    for number, name in enumerate(names, start=1):
        if not name:
            raise DataError(
                f"{where}: column {number} has no name (a saved row index?); "
                "name it or remove the column"
            )
    for name, times in Counter(names).items():
        if times > 1:
            at = names.index(name) + 1
            again = names.index(name, at) + 1
            raise DataError(
                f"{where}: {times} columns are named {name!r} (columns {at} and {again}); "
                "give each its own name"
            )


def _hint(target: str, names: Sequence[str]) -> str:
    if near := did_you_mean(target, names):
        return near
    if all(finite_number(name) is not None for name in names):
        return "; line 1 holds numbers: add a line of column names"
    for character, word in ((";", "semicolons"), ("\t", "tabs")):
        if len(names) == 1 and character in names[0]:
            return f"; line 1 is separated by {word}: separate the file by commas"
    return ""


def _listed(names: Sequence[str]) -> str:
    few = ", ".join(repr(name) for name in names[:12])
    return few + (f", ... {len(names)} in all" if len(names) > 12 else "")
