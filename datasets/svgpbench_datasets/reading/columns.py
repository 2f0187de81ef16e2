"""Reading of inputs and target by column name; the names are checked before any number is read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from svgpbench_datasets.dataset import Floats
from svgpbench_datasets.errors import DataError, did_you_mean, join_names
from svgpbench_datasets.reading.cells import control_character, is_numeral, quoted
from svgpbench_datasets.reading.formats import open_table
from svgpbench_datasets.reading.numbers import (
    Block,
    MissingValueError,
    Numbers,
    Positions,
    count_missing,
    inputs_and_target,
    merge_spellings,
    stack,
)
from svgpbench_datasets.reading.table import Layout, TableFile

_SAVED_INDEX = re.compile(r"Unnamed: 0(\.[0-9]+)?|__index_level_[0-9]+__")
"""Names that pandas gives to a saved row index when it reads a .csv, and when it writes a .parquet."""
_UNNAMED = re.compile(r"Unnamed: [0-9]+([._].*)?")
"""Names that pandas gives to other columns without a name."""


class ReadColumns(NamedTuple):
    """Columns read from a table: X [N, D] and y [N], read-only, and the class number of each label in y."""

    features: tuple[str, ...]
    X: Numbers
    y: Floats
    labels: dict[str, int]
    notes: tuple[str, ...] = ()  # what a reader of the numbers should know, one line each


def read_columns(
    table: TableFile,
    where: str,
    *,
    target: str,
    features: Sequence[str] | None = None,
    outputs: Collection[str] = (),
    groups: str | None = None,
    labelled: bool = False,
) -> ReadColumns:
    """Read inputs and target of a table; columns without names are called x1, ..., xC.

    `features` are the inputs in this order; None for every column but the target, the outputs, the groups
    and a saved index of the rows. If `labelled`, the target becomes class numbers in order of
    appearance.

    Raises:
        DataError: as `choose_features`; or a cell holds no finite number.
    """
    names, index = table.names, _numbered(target)
    spelled = (index,) if labelled and index is not None else ()
    if names is None:
        frames = table.frames(None, spelled)
        first = next(frames, None)
        if first is None:
            raise DataError(f"{where}: no data rows; give at least two")
        names = tuple(f"x{number}" for number in range(1, first.shape[1] + 1))
        frames = chain([first], frames)
    used = {target, *outputs, groups}
    left_out: list[str] = []
    if features is None:  # by what the file says, or by the name that pandas gives
        indices = [x for x in names if x in table.row_index or _SAVED_INDEX.fullmatch(x)]
        left_out = [x for x in indices if x not in used]
    inputs = choose_features(
        [name for name in names if name not in left_out],
        target=target,
        features=features,
        outputs=outputs,
        groups=groups,
        where=where,
    )
    if table.names is not None:
        spelled = (names.index(target),) if labelled else ()
        frames = table.frames({names.index(name) for name in (*inputs, target)}, spelled)
    labels: dict[str, int] = {}
    places: dict[str, str] = {}
    numbered = {name: i for i, name in enumerate(names, start=1)}
    positions = Positions(where, numbered, table.separator)

    def blocks() -> Iterator[Block]:
        named = (frame.set_axis([names[int(i)] for i in frame.columns], axis=1) for frame in frames)
        classes = labels if labelled else None
        for frame in named:
            try:
                yield inputs_and_target(
                    frame, inputs, target, positions, classes, more=True, places=places
                )
            except MissingValueError as error:
                # `named` goes on behind the bad frame: the message counts all that is missing
                counts = count_missing(chain([frame], named), [*inputs, target])
                raise MissingValueError(f"{error}{_in_all(counts)}") from None

    X, y = stack(blocks(), len(inputs))
    notes: tuple[str, ...] = ()
    if labelled:
        y, labels, notes = merge_spellings(y, labels, places, f"{where}: column {target!r}")
    if left_out:
        few = join_names(map(repr, left_out), 5)
        said = any(name in table.row_index for name in left_out)
        why = "the file says that it is" if said else "pandas calls so"
        notes = (
            *notes,
            f"{where}: {few} left out: {why} the saved index of the rows; name it in `features` to have "
            "it as an input",
        )
    return ReadColumns(inputs, X, y, labels, notes)


def _numbered(name: str) -> int | None:
    """Return the column number from 0 of a name such as `x3`, or None."""
    return int(name[1:]) - 1 if re.fullmatch("x[1-9][0-9]{0,8}", name) else None


def _in_all(counts: dict[str, int]) -> str:
    """Return a remark on all missing cells of a table by column; empty if there is one only."""
    total = sum(counts.values())
    if total < 2:
        return ""
    columns = join_names((f"{name!r}: {count}" for name, count in counts.items()), 12)
    few = "1 column is" if len(counts) == 1 else f"{len(counts)} columns are"
    return f" (in all {total:,} cells in {few} empty or missing: {columns})"


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
    groups: str | None = None,
    where: str,
) -> tuple[str, ...]:
    """Check the column names of a table and return the D input columns; arguments as `read_columns`.

    Raises:
        DataError: a name is repeated or has control characters, or that of an input is empty; a target,
            output, column of groups or feature does not exist; one of the first three is among the
            features; or there is no feature.
    """
    _check_names(names, where, {target, *outputs, groups}, all_read=features is None)
    listing = f"(columns: {join_names(map(repr, names), 12)})"
    roles = dict.fromkeys([target, *outputs], "target")
    if groups is not None:
        roles.setdefault(groups, "column of groups")
    for name, role in roles.items():
        if name not in names:
            hint = did_you_mean(name, names)
            if list(names) == [f"x{number}" for number in range(1, len(names) + 1)]:
                hint = f"; a table without names has columns x1 to x{len(names)}"
            elif any(map(is_numeral, names)):
                hint += "; if the first line is data, say `header = false` (--no-header)"
            what = "the groups" if role == "column of groups" else f"the {role}"
            raise DataError(f"{where}: no column {name!r} for {what}{hint} {listing}")
    inputs = features if features is not None else [x for x in names if x not in roles]
    if not inputs:
        raise DataError(f"{where}: no feature columns beside the target {target!r}; add some")
    for name, times in Counter(inputs).items():
        if name not in names:
            hint = did_you_mean(name, names)
            raise DataError(f"{where}: no feature column {name!r}{hint} {listing}")
        if times > 1:
            raise DataError(f"{where}: feature {name!r} is named {times} times; name it once")
        if name in roles:
            raise DataError(
                f"{where}: the {roles[name]} {name!r} is among the features; remove it there"
            )
    return tuple(inputs)


def _check_names(
    names: Sequence[str], where: str, asked: Collection[str | None], *, all_read: bool
) -> None:
    for number, name in enumerate(names, start=1):
        if control_character(name):
            raise DataError(
                f"{where}: the name of column {number}, {quoted(name)}, has a control character; "
                "rename it"
            )
        unnamed = not name.strip() or _UNNAMED.fullmatch(name)
        if unnamed and all_read and name not in asked:
            why = "(a saved row index?); name it or remove the column"
            if number == len(names) > 1:
                why = (
                    "(a separator at the end of lines, or a saved row index?); remove it or name it"
                )
            what = "no name" if not name.strip() else f"no name of its own but {name!r}"
            listed = "" if not name.strip() else ", or list the inputs as features"
            raise DataError(f"{where}: column {number} has {what} {why}{listed}")
    for name, times in Counter(name for name in names if name.strip()).items():
        if times > 1:
            first = names.index(name) + 1
            second = names.index(name, first) + 1
            raise DataError(
                f"{where}: {times} columns are named {name!r} (columns {first} and {second}); "
                "give each its own name"
            )
