"""Reading of inputs and target by column name; the names are checked before any number is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from svgpbench_datasets.dataset import Floats
from svgpbench_datasets.errors import DataError, did_you_mean, join_names
from svgpbench_datasets.reading.formats import open_table
from svgpbench_datasets.reading.layout import Layout
from svgpbench_datasets.reading.numbers import Block, Numbers, Positions, inputs_and_target, stack
from svgpbench_datasets.reading.table import TableFile


class ReadColumns(NamedTuple):
    """Columns read from a table: X [N, D] and y [N], read-only, and the class number of each label in y."""

    features: tuple[str, ...]
    X: Numbers
    y: Floats
    labels: dict[str, int]


def read_columns(
    table: TableFile,
    where: str,
    *,
    target: str,
    features: Sequence[str] | None = None,
    outputs: Collection[str] = (),
    labelled: bool = False,
) -> ReadColumns:
    """Read inputs and target of a table; columns without names are called x1, ..., xC.

    `features` are the inputs in this order; None for every column but the target and the outputs.
    If `labelled`, the target becomes class numbers in order of appearance.

    Raises:
        DataError: as `choose_features`; or a cell holds no finite number.
    """
    names, frames = table.names, None
    if names is None:
        frames = table.frames(None)
        first = next(frames, None)
        if first is None:
            raise DataError(f"{where}: no data rows; give at least two")
        names = tuple(f"x{number}" for number in range(1, first.shape[1] + 1))
        frames = chain([first], frames)
    inputs = choose_features(names, target=target, features=features, outputs=outputs, where=where)
    labels: dict[str, int] = {}
    positions = Positions(where, {name: i for i, name in enumerate(names, start=1)})

    def blocks() -> Iterator[Block]:
        indices = {names.index(name) for name in (*inputs, target)}
        for frame in table.frames(indices) if frames is None else frames:
            named = frame.set_axis([names[int(index)] for index in frame.columns], axis=1)
            classes = labels if labelled else None
            yield inputs_and_target(named, inputs, target, positions, classes, more=True)

    X, y = stack(blocks(), len(inputs))
    return ReadColumns(inputs, X, y, labels)


def read_numbers(file: Path, *, target: str, features: Sequence[str] | None) -> Block:
    """Read X [N, D] and y [N], read-only, from a Parquet file; arguments and errors as `read_columns`."""
    try:
        with file.open("rb") as stream:
            table = open_table(stream, str(file), Layout("parquet"))
            columns = read_columns(table, str(file), target=target, features=features)
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror or error}") from None
    return columns.X, columns.y


def choose_features(
    names: Sequence[str],
    *,
    target: str,
    features: Sequence[str] | None,
    outputs: Collection[str] = (),
    where: str,
) -> tuple[str, ...]:
    """Check the column names of a table and return the D input columns; arguments as `read_columns`.

    Raises:
        DataError: a name is empty or repeated; a target, output or feature does not exist; a
            target or output is among the features; or there is no feature.
    """
    _check_names(names, where)
    listing = f"(columns: {join_names(map(repr, names), 12)})"
    predicted = dict.fromkeys([target, *outputs])
    for name in predicted:
        if name not in names:
            hint = did_you_mean(name, names)
            if list(names) == [f"x{number}" for number in range(1, len(names) + 1)]:
                hint = f"; a table without names has columns x1 to x{len(names)}"
            raise DataError(f"{where}: no column {name!r} for the target{hint} {listing}")
    inputs = features if features is not None else [x for x in names if x not in predicted]
    if not inputs:
        raise DataError(f"{where}: no feature columns beside the target {target!r}; add some")
    for name, times in Counter(inputs).items():
        if name not in names:
            hint = did_you_mean(name, names)
            raise DataError(f"{where}: no feature column {name!r}{hint} {listing}")
        if times > 1:
            raise DataError(f"{where}: feature {name!r} is named {times} times; name it once")
        if name in predicted:
            raise DataError(f"{where}: the target {name!r} is among the features; remove it there")
    return tuple(inputs)


def _check_names(names: Sequence[str], where: str) -> None:
    if "" in names:
        number = names.index("") + 1
        why = "(a saved row index?); name it or remove the column"
        raise DataError(f"{where}: column {number} has no name {why}")
    for name, times in Counter(names).items():
        if times > 1:
            first = names.index(name) + 1
            second = names.index(name, first) + 1
            raise DataError(
                f"{where}: {times} columns are named {name!r} (columns {first} and {second}); "
                "give each its own name"
            )
