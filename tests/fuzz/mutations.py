"""Valid content made wrong, by a seeded generator: bytes, or the nodes of a tree of tables and values."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from datetime import date
from typing import Any, TypeAlias

Node: TypeAlias = (
    Any  # what JSON and TOML have: dict, list, str, number, true and false, null, date
)
Place: TypeAlias = tuple[Any, Any]  # a dict or list, and the key in it


def nested(depth: int) -> Node:
    """A list in a list in a list."""
    inner: Node = 1
    for _ in range(depth):
        inner = [inner]
    return inner


VALUES: tuple[Node, ...] = (
    *(None, True, False, 0, 1, -1, 2, 3.5, -0.0, 1e-300, 1e308, float("nan"), float("inf")),
    *(
        2**31,
        2**63,
        10**30,
        -(10**25),
        "",
        " ",
        "0",
        "nan",
        "true",
        "\x00",
        "\n",
        "a\tb",
        "é漢\u2028",
    ),
    *(
        "x" * 5000,
        "../../elsewhere",
        "/dev/null",
        "name",
        "torch:compile",
        "~",
        "%s{0}",
        "-1",
        "1e999",
    ),
    *([], {}, [[]], [{}], {"": {}}, [None], [1, "a", []], {"name": "se"}, {"start": 1}, [0, 0]),
    *(date(2024, 2, 29), nested(30), nested(300)),
)
"""What no author of a parser thinks of first."""

KEYS = ("", "name", "Name", "kind", "\x00", "a.b", "a b", "é", "__class__", "-", "x" * 300, "0")


def places(tree: Node) -> Iterator[Place]:
    """Every node but the root, by who holds it and under what."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in items:
        yield tree, key
        if isinstance(value, dict | list):
            yield from places(value)


def mutated(tree: Node, rng: random.Random) -> Node:
    """A copy with a few of its nodes changed: one mostly, so that the rest leads to validation."""
    changed = copy.deepcopy(tree)
    for _ in range(rng.choice((1, 1, 1, 1, 2, 3))):
        if found := list(places(changed)):
            rng.choice(CHANGES)(*rng.choice(found), rng)
    return changed


def _replace(holder: Node, key: Any, rng: random.Random) -> None:
    holder[key] = copy.deepcopy(rng.choice(VALUES))


def _shift(holder: Node, key: Any, rng: random.Random) -> None:
    """Another value of the same type, which no type check refuses."""
    value = holder[key]
    if isinstance(value, bool):
        holder[key] = not value
    elif isinstance(value, int):
        holder[key] = rng.choice((-value, value + 1, value - 1, value * 1000, float(value)))
    elif isinstance(value, float):
        holder[key] = rng.choice((-value, value * 1e3, value / 1e9, value + 0.5))
    elif isinstance(value, str):
        holder[key] = rng.choice((value[:-1], value + "s", value.upper(), f" {value}", value * 2))
    elif isinstance(value, list):
        rng.shuffle(value)


def _drop(holder: Node, key: Any, rng: random.Random) -> None:
    del holder[key]


def _double(holder: Node, key: Any, rng: random.Random) -> None:
    if isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[key]))
    else:
        holder[f"{key}s"] = copy.deepcopy(holder[key])


def _rename(holder: Node, key: Any, rng: random.Random) -> None:
    if isinstance(holder, dict):
        new = rng.choice((rng.choice(KEYS), f"{key}s", str(key)[1:], str(key)[::-1]))
        holder[new] = holder.pop(key)


def _add(holder: Node, key: Any, rng: random.Random) -> None:
    value = copy.deepcopy(rng.choice(VALUES))
    if isinstance(holder, dict):
        holder[rng.choice(KEYS)] = value
    else:
        holder.append(value)


def _wrap(holder: Node, key: Any, rng: random.Random) -> None:
    value = holder[key]
    holder[key] = rng.choice(([value], {"name": value}, [value, value]))


def _take_from(holder: Node, key: Any, rng: random.Random) -> None:
    """What stands elsewhere in the same table or list."""
    keys = list(holder) if isinstance(holder, dict) else range(len(holder))
    holder[key] = copy.deepcopy(holder[rng.choice(keys)])


CHANGES = (_replace, _replace, _shift, _shift, _drop, _double, _rename, _add, _wrap, _take_from)


DEPTH = 3000
"""Of lists in lists, more than a stack holds."""


def bytes_mutated(raw: bytes, rng: random.Random) -> bytes:
    """A copy with bytes flipped, taken out, put in or doubled in a few places, or cut."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        if not raw:
            return bytes(rng.randrange(256) for _ in range(rng.randrange(20)))
        at = rng.randrange(len(raw))
        end = min(len(raw), at + rng.choice((1, 1, 1, 2, 8, 64)))
        raw = rng.choice((
            raw[:at] + bytes([raw[at] ^ (1 << rng.randrange(8))]) + raw[at + 1 :],
            raw[:at] + bytes([rng.choice((0, 1, 9, 10, 34, 44, 127, 255))]) + raw[at + 1 :],
            raw[:at] + raw[end:],
            raw[:end] + raw[at:end] * rng.choice((1, 1, 50)) + raw[end:],
            raw[:at] + bytes(rng.randrange(256) for _ in range(rng.randrange(1, 9))) + raw[at:],
            raw[:at] + b"[" * DEPTH + b"]" * DEPTH + raw[at:],
            raw[:at],
        ))  # fmt: skip
    return raw
