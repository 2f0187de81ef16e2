"""A failed validation as one line that a user can act on: where, which key, what it should be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

Path: TypeAlias = tuple[str | int, ...]


def one_line(
    error: ValidationError, model: type[BaseModel], declared: Any, table: Path = ()
) -> str:
    """The mistake to mend first: an unknown key before all others, then the most specific one.

    Args:
        error: what validation found.
        model: what the file was validated against.
        declared: the file's content, or that of the table of it that `table` leads to.
        table: empty for the whole file.
    """
    found = [(_in_file(detail["loc"], declared), detail) for detail in error.errors()]
    # a misspelt key is often also a missing one; one member of a union is often nearer than another
    path, detail = min(
        found, key=lambda pair: (pair[1]["type"] != "extra_forbidden", -len(pair[0]))
    )
    if detail["type"] == "extra_forbidden":
        return _unknown_key(path, model, table)
    if detail["type"] == "json_invalid":  # well-formed as a file, and deeper than JSON may be
        return "tables or lists are nested too deeply"
    if detail["type"] == "missing":
        return f"missing key {detail['loc'][-1]!r}{_where((*table, *path))}"
    return _wrong_value((*table, *path), detail)


def _in_file(loc: Path, declared: Any) -> Path:
    """The part of a location that is in the file: pydantic adds union members and missing keys."""
    path: list[str | int] = []
    for part in loc:
        try:
            declared = declared[part]
        except (KeyError, IndexError, TypeError):
            continue
        path.append(part)
    return tuple(path)


def _unknown_key(path: Path, model: type[BaseModel], outer: Path) -> str:
    *table, key = path
    # another kind of the same table may have it
    return unknown_key((*outer, *path), _keys_at(model, table) - {str(key)})


def unknown_key(path: Path, known: Iterable[str]) -> str:
    """The line for a key at `path` that is none of those known."""
    *table, key = path
    near = difflib.get_close_matches(str(key), sorted(known), n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(known))}"
    return f"unknown key {key!r}{_where(tuple(table))}; {hint}"


def _wrong_value(path: Path, detail: ErrorDetails) -> str:
    message = detail["msg"].removeprefix("Value error, ").removesuffix(" or None")
    # a check of a whole table says itself what is wrong; a value needs to be shown
    if detail["type"] == "value_error":
        return f"{named(path)}: {message}" if path else message
    message = message.replace("Input should be", "must be").replace(" valid ", " ")
    return f"{named(path)} {message}, got {_shown(detail['input'])}"


def _where(path: Path) -> str:
    return f" in {named(path)}" if path else ""


def named(path: Path) -> str:
    """A path as the file spells it: `[training] e_rate`, `[[problems]] no. 2: training.e_rate`."""
    head, rest = path[:1], path[1:]
    if rest and isinstance(rest[0], int):
        head_text, rest = f"[[{head[0]}]] no. {rest[0] + 1}", rest[1:]
        if rest:
            head_text += ":"
    elif head[0] == "presets" and rest:
        head_text, rest = f"[presets.{rest[0]}]", rest[1:]
    else:
        head_text = f"[{head[0]}]" if rest or head[0] in _TABLES else str(head[0])
    return f"{head_text} {_dotted(rest)}".strip()


_TABLES = frozenset({"kernel", "inducing", "split", "training", "presets"})


def _dotted(path: Path) -> str:
    text = ""
    for part in path:
        text += f" no. {part + 1}" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _keys_at(model: type[BaseModel], path: Sequence[str | int]) -> set[str]:
    """The keys that the table at `path` may have."""
    parts, models = iter(path), [model]
    for part in parts:
        if isinstance(part, int):
            continue  # an element is what its list holds
        annotation = models[0].model_fields[part].annotation
        models = _models_in(annotation) or models
        if get_origin(annotation) is dict:
            next(parts, None)  # a name the user chose
    return {key for each in models for key in each.model_fields}


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models_in(argument)]
