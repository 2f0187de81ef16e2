"""One-line messages: for a failed validation the table, the key and the expected value, and for bad data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, get_args, get_origin

from pydantic import BaseModel, ValidationError

from svgpbench.errors import UserError, must_be, nearest, unknown
from svgpbench.experiments.schema import data_sets_of
from svgpbench_datasets import DataError

Path: TypeAlias = tuple[str | int, ...]

_TABLES = frozenset({"kernel", "inducing", "split", "training", "presets"})
"""Keys at the top of an experiment file that name a table."""


def one_line(
    error: ValidationError, model: type[BaseModel], declared: Any, table: Path = ()
) -> str:
    """Return the message for one mistake: an unknown key if there is one, else the most deeply nested.

    Args:
        error: the failed validation.
        model: the model that the content was validated against.
        declared: the content of the file, or of the table at the path `table`.
        table: path of the table in the file; empty for the whole file.
    """
    located = [(_in_file(detail["loc"], declared), detail) for detail in error.errors()]
    # a misspelt key is often also a missing key; one member of a union is often nearer than another
    path, detail = min(
        located, key=lambda pair: (pair[1]["type"] != "extra_forbidden", -len(pair[0]))
    )
    if detail["type"] == "extra_forbidden":
        *inner_table, key = path
        # another type of the same table may have this key
        return unknown_key((*table, *path), _keys_at(model, inner_table) - {str(key)})
    if detail["type"] == "json_invalid":  # well-formed as a file, and deeper than JSON may be
        return "tables or lists are nested too deeply"
    path = (*table, *path)
    if detail["type"] in ("missing", "union_tag_not_found"):
        # not from `path`, which has only what is in the file
        key = str(detail["loc"][-1])
        if detail["type"] == "union_tag_not_found":
            key = str(detail["ctx"]["discriminator"]).strip("'")
        return f"missing key {key!r}{_where(path)}"
    message = detail["msg"].removeprefix("Value error, ").removesuffix(" or None")
    # a validator's own message is complete; other messages need the value
    if detail["type"] == "value_error":
        return f"{named(path)}: {message}" if path else message
    if detail["type"] == "union_tag_invalid":
        kinds = re.findall(r"'([^']*)'", detail["ctx"]["expected_tags"])
        kind = str(detail["ctx"]["discriminator"]).strip("'")
        return f"{named(path)}: {unknown(kind, detail['ctx']['tag'], kinds)}"
    text = repr(detail["input"])
    shown = text if len(text) <= 60 else text[:57] + "..."
    return f"{named(path)} {must_be(message)}, got {shown}"


def _in_file(loc: Path, declared: Any) -> Path:
    """Return the parts of a location that exist in the file.

    Pydantic adds union members and missing keys to locations.
    """
    path: list[str | int] = []
    for number, checked_part in enumerate(loc, start=1):
        part = checked_part
        try:
            if isinstance(declared, list):
                # a table with several targets is one in the file and several where it was checked
                numbers = [i for i, entry in enumerate(declared) for _ in data_sets_of(entry)]
                part = numbers[part]  # type: ignore[index]  # else TypeError, as below
            inner = declared[part]
        except (KeyError, IndexError, TypeError):
            continue
        # the kind of a union's table stands before the key, and may be named like one that has a
        # text, in which nothing can lie
        is_kind = isinstance(declared, dict) and declared.get("kind") == part
        if is_kind and isinstance(inner, str) and number < len(loc):
            continue
        declared = inner
        path.append(part)
    return tuple(path)


def unknown_key(path: Path, known_keys: Iterable[str]) -> str:
    """Return the message for an unknown key at `path`, with the nearest known key."""
    *table, key = path
    near = nearest(str(key), known_keys)
    hint = f"did you mean {near!r}?" if near else f"known: {', '.join(sorted(known_keys))}"
    return f"unknown key {key!r}{_where(tuple(table))}; {hint}"


def _where(path: Path) -> str:
    return f" in {named(path)}" if path else ""


def named(path: Path) -> str:
    """Return a path as written in the file: `[training] e_rate`, `[[problems]] no. 2: training.e_rate`."""
    head, tail = path[:1], path[1:]
    if tail and isinstance(tail[0], int):
        head_text, tail = f"[[{head[0]}]] no. {tail[0] + 1}", tail[1:]
        if tail:
            head_text += ":"
    elif head[0] == "presets" and tail:
        head_text, tail = f"[presets.{tail[0]}]", tail[1:]
    else:
        head_text = f"[{head[0]}]" if tail or head[0] in _TABLES else str(head[0])
    tail_text = "".join(
        f" no. {part + 1}" if isinstance(part, int) else f".{part}" for part in tail
    )
    return f"{head_text} {tail_text.removeprefix('.')}".strip()


def _keys_at(model: type[BaseModel], path: Sequence[str | int]) -> set[str]:
    """Return the keys that the table at `path` may have."""
    parts, models = iter(path), [model]
    for part in parts:
        if isinstance(part, int):
            continue  # an element has the model of its list
        annotation = models[0].model_fields[part].annotation
        models = _models_in(annotation) or models
        if get_origin(annotation) is dict:
            next(parts, None)  # a name the user chose
    return {key for table in models for key in table.model_fields}


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models_in(argument)]


@contextmanager
def as_user_errors() -> Iterator[None]:
    """Raise `UserError` with the same message for a `DataError` raised inside the context."""
    try:
        yield
    except DataError as error:
        raise UserError(str(error)) from error
