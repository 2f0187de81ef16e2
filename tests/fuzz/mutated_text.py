"""A tree made wrong, as the TOML or JSON that says it."""

from __future__ import annotations

import json
import random
from typing import Any

from mutations import bytes_mutated, mutated
from toml_text import toml_text

WHOLE_FILES = 0.12
"""Of the files, how many are mutated as bytes; the others as what they say."""


def toml_mutated(tree: dict[str, Any], rng: random.Random) -> bytes:
    if rng.random() < WHOLE_FILES:
        return bytes_mutated(toml_text(tree).encode(), rng)
    return toml_text(mutated(tree, rng)).encode("utf-8", "surrogatepass")


def json_mutated(tree: Any, rng: random.Random) -> bytes:
    if rng.random() < WHOLE_FILES:
        return bytes_mutated(json.dumps(tree).encode(), rng)
    return json.dumps(mutated(tree, rng), default=str).encode()
