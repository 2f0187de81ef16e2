"""The generator of broken files: bytes that are damaged, and trees of tables and values that are changed.

Tests of every parser draw from these strategies; so does `make fuzz`, which draws more.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from typing import Any, TypeAlias

from hypothesis import strategies as st

Node: TypeAlias = Any  # what JSON and TOML have: dict, list, str, number, boolean, null, date

CHANGES = (1, 1, 1, 1, 2, 3)
"""Numbers of changes of a file. Mostly one, so that the rest of the file leads to validation."""

AS_BYTES = 12
"""Per cent of text files that are damaged as bytes; of the others, the content is changed."""


def nested(depth: int) -> Node:
    """Return a list in a list in a list."""
    inner: Node = 1
    for _ in range(depth):
        inner = [inner]
    return inner


# fmt: off
VALUES: tuple[Node, ...] = (
    None, True, False, 0, 1, -1, 2, 3.5, -0.0, 1e-300, 1e308, float("nan"), float("inf"), 2**31, 2**63,
    10**30, -(10**25), "", " ", "0", "nan", "true", "\x00", "\n", "a\tb", "é漢\u2028", "x" * 5000,
    "../../elsewhere", "/dev/null", "name", "torch:compile", "~", "%s{0}", "-1", "1e999",
    [], {}, [[]], [{}], {"": {}}, [None], [1, "a", []], {"name": "se"}, {"start": 1}, [0, 0],
    date(2024, 2, 29), nested(30), nested(300),
)
"""Values that no author of a parser thinks of first."""

KEYS = ("", "name", "Name", "kind", "\x00", "a.b", "a b", "é", "__class__", "-", "x" * 300, "0")

WAYS = ("replace", "replace", "shift", "shift", "drop", "double", "rename", "add", "wrap", "take")
# fmt: on


def seldom(per_cent: int) -> st.SearchStrategy[bool]:
    """Draw True in so many per cent of the cases."""
    return st.integers(0, 99).map(lambda number: number >= 100 - per_cent)


# --- trees


@st.composite
def changed(draw: st.DrawFn, tree: Node) -> Node:
    """Draw a copy of a tree with a few of its nodes changed."""
    tree = copy.deepcopy(tree)
    for _ in range(draw(st.sampled_from(CHANGES))):
        if places := list(_places(tree)):
            _change(draw, *draw(st.sampled_from(places)))
    return tree


def _places(tree: Node) -> Iterator[tuple[Any, Any]]:
    """Yield every node but the root, as the dict or list that holds it and its key there."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in items:
        yield tree, key
        if isinstance(value, dict | list):
            yield from _places(value)


def _change(draw: st.DrawFn, holder: Any, key: Any) -> None:
    table, value = isinstance(holder, dict), holder[key]
    other = copy.deepcopy(draw(st.sampled_from(VALUES)))
    match draw(st.sampled_from(WAYS)):
        case "replace":
            holder[key] = other
        case "shift":
            holder[key] = draw(st.sampled_from(_of_the_same_type(value)))
        case "drop":
            del holder[key]
        case "double" if table:
            holder[f"{key}s"] = copy.deepcopy(value)
        case "double":
            holder.insert(key, copy.deepcopy(value))
        case "rename" if table:
            names = (*KEYS, *(f"{key}s", str(key)[1:], str(key)[::-1]) * 4)
            holder[draw(st.sampled_from(names))] = holder.pop(key)
        case "add" if table:
            holder[draw(st.sampled_from(KEYS))] = other
        case "add":
            holder.append(other)
        case "wrap":
            holder[key] = draw(st.sampled_from(([value], {"name": value}, [value, value])))
        case "take":  # what stands elsewhere in the same table or list
            keys = list(holder) if table else range(len(holder))
            holder[key] = copy.deepcopy(holder[draw(st.sampled_from(keys))])


def _of_the_same_type(value: Node) -> tuple[Node, ...]:
    """Return other values that no check of types refuses."""
    match value:
        case bool():
            return (not value,)
        case int():
            return (-value, value + 1, value - 1, value * 1000, float(value))
        case float():
            return (-value, value * 1e3, value / 1e9, value + 0.5)
        case str():
            return (value[:-1], f"{value}s", value.upper(), f" {value}", value * 2)
        case list():
            return (value[::-1], value[1:] + value[:1], value[1:])
    return (value,)


# --- bytes

_BYTE = st.sampled_from([0, 1, 2, 4, 5, 6, 8, 9, 10, 13, 14, 15, 16, 32, 34, 44, 127, 128, 255])
_NOISE = st.one_of(_BYTE.map(lambda value: bytes([value])), st.binary(max_size=8))
_DEEP = b"[" * 3000 + b"]" * 3000  # deeper than a stack


@st.composite
def damaged(draw: st.DrawFn, whole: bytes, start: int = 0, end: int | None = None) -> bytes:
    """Draw a copy of a file with bytes overwritten, taken out, put in or doubled, or cut.

    Args:
        draw: Hypothesis' own.
        whole: the file.
        start: the first byte that may change.
        end: the byte after the last that may; None for the end of the file.
    """
    raw = whole
    for _ in range(draw(st.sampled_from(CHANGES))):
        last = min(len(raw), end or len(raw)) - 1
        if last < start:
            return draw(st.binary(max_size=20))
        # a part of the length, as some files are longer or shorter by what the clock says in them
        at = start + ((last + 1 - start) * draw(st.integers(0, 2**20 - 1)) >> 20)
        noise = draw(_NOISE)
        to = at + draw(st.sampled_from((1, 1, 1, 2, 8, 64)))
        flipped = bytes([raw[at] ^ (1 << draw(st.integers(0, 7)))])
        over = (noise, at + len(noise))
        put = ((noise, at), (_DEEP, at), (raw[at:to] * 2, to), (raw[at:to] * 50, to))
        taken = ((b"", to), (b"", len(raw)))
        flip = (flipped, at + 1)
        new, rest = draw(st.sampled_from((over, over, over, over, flip, flip, *put, *taken)))
        raw = raw[:at] + new + raw[rest:]
    return raw


# --- text files that say a tree


def toml_text(tree: dict[str, Any]) -> str:
    """Return TOML that `tomllib` reads back as the tree. TOML has no null, so nulls are left out."""
    return "".join(f"{pair}\n" for pair in _pairs(tree))


def _pairs(table: dict[str, Any]) -> list[str]:
    return [f"{_value(str(k))} = {_value(x)}" for k, x in table.items() if x is not None]


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(_pairs(value))} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(x) for x in value if x is not None)}]"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


@st.composite
def _broken_text(draw: st.DrawFn, tree: Node, text: Callable[[Node], str]) -> bytes:
    if draw(seldom(AS_BYTES)):
        return draw(damaged(text(tree).encode()))
    return text(draw(changed(tree))).encode("utf-8", "surrogatepass")


def broken_toml(tree: dict[str, Any]) -> st.SearchStrategy[bytes]:
    """Draw the TOML of a tree, broken."""
    return _broken_text(tree, toml_text)


def broken_json(tree: Node) -> st.SearchStrategy[bytes]:
    """Draw the JSON of a tree, broken."""
    return _broken_text(tree, partial(json.dumps, default=str))
