"""Inputs and a target out of a table by the names of its columns, checked before any number is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from svgpbench_datasets.dataset import Floats
from svgpbench_datasets.errors import DataError, did_you_mean, listed
from svgpbench_datasets.reading.formats import open_table
from svgpbench_datasets.reading.layout import Layout
from svgpbench_datasets.reading.numbers import (
    Block,
    Numbers,
    Places,
    gathered,
    inputs_and_target,
)
from svgpbench_datasets.reading.table import Table


class Columns(NamedTuple):
    """What was read: X [N, D] and y [N], sealed; of labels, the number that y has for each."""

    features: tuple[str, ...]
    X: Numbers
    y: Floats
    labels: dict[str, int]


def read_columns(
    table: Table,
    where: str,
    *,
    target: str,
    features: Sequence[str] | None = None,
    outputs: Collection[str] = (),
    labelled: bool = False,
) -> Columns:
    """Read columns of a table; where it does not name them they are x1, ..., xC.

    `features` are the inputs in the order wanted, None for every column but the target and the outputs;
    a target that is `labelled` becomes class numbers in the order of appearance.

    Raises:
        DataError: as `choose_features`; a cell that is no finite number, with its place.
    """
    names, frames = table.names, None
    if names is None:
        frames = table.frames(None)
        first = next(frames, None)
        if first is None:
            raise DataError(f"{where}: no data rows; give at least two")
        names = tuple(f"x{at + 1}" for at in range(first.shape[1]))
        frames = chain([first], frames)
    chosen = choose_features(names, target=target, features=features, outputs=outputs, where=where)
    labels: dict[str, int] = {}
    places = Places(where, {name: at for at, name in enumerate(names, start=1)})

    def blocks() -> Iterator[Block]:
        wanted = {names.index(name) for name in (*chosen, target)}
        for frame in table.frames(wanted) if frames is None else frames:
            named = frame.set_axis([names[int(at)] for at in frame.columns], axis=1)
            known = labels if labelled else None
            yield inputs_and_target(named, chosen, target, places, known, more=True)

    X, y = gathered(blocks(), len(chosen))
    return Columns(chosen, X, y, labels)


def read_numbers(file: Path, *, target: str, features: Sequence[str] | None) -> Block:
    """X [N, D] and y [N] of a Parquet file of numbers, sealed; arguments and errors as `read_columns`."""
    try:
        with file.open("rb") as stream:
            table = open_table(stream, str(file), Layout("parquet"))
            found = read_columns(table, str(file), target=target, features=features)
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror or error}") from None
    return found.X, found.y


def choose_features(
    names: Sequence[str],
    *,
    target: str,
    features: Sequence[str] | None,
    outputs: Collection[str] = (),
    where: str,
) -> tuple[str, ...]:
    """Check a table's column names, and name its D input columns; arguments as of `read_columns`.

    Raises:
        DataError: names that are empty or repeated, a target, output or feature that is not there,
            a target or output among the features, no feature at all.
    """
    _check_names(names, where)
    there = f"(columns: {listed(map(repr, names), 12)})"
    predicted = dict.fromkeys([target, *outputs])
    for one in predicted:
        if one not in names:
            raise DataError(f"{where}: no column {one!r} for the target{_hint(one, names)} {there}")
    chosen = features if features is not None else [x for x in names if x not in predicted]
    if not chosen:
        raise DataError(f"{where}: no feature columns beside the target {target!r}; add some")
    for name, times in Counter(chosen).items():
        if name not in names:
            near = did_you_mean(name, names)
            raise DataError(f"{where}: no feature column {name!r}{near} {there}")
        if times > 1:
            raise DataError(f"{where}: feature {name!r} is named {times} times; name it once")
        if name in predicted:
            raise DataError(f"{where}: the target {name!r} is among the features; remove it there")
    return tuple(chosen)


def _check_names(names: Sequence[str], where: str) -> None:
    if "" in names:
        number = names.index("") + 1
        why = "(a saved row index?); name it or remove the column"
        raise DataError(f"{where}: column {number} has no name {why}")
    for name, times in Counter(names).items():
        if times > 1:
            at = names.index(name) + 1
            again = names.index(name, at) + 1
            raise DataError(
                f"{where}: {times} columns are named {name!r} (columns {at} and {again}); "
                "give each its own name"
            )


def _hint(target: str, names: Sequence[str]) -> str:
    if list(names) == [f"x{at}" for at in range(1, len(names) + 1)]:
        return f"; a table without names has columns x1 to x{len(names)}"
    return did_you_mean(target, names)
