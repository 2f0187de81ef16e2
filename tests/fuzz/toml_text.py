"""A tree of tables, lists and values as TOML, a line a key of the outermost table."""

from __future__ import annotations

import json
import math
from datetime import date
from typing import Any


def toml_text(tree: dict[str, Any]) -> str:
    """TOML that `tomllib` reads back as the tree, but for nulls, which it cannot say: they are left out."""
    lines = [
        f"{_text(str(key))} = {_value(value)}\n" for key, value in tree.items() if value is not None
    ]
    return "".join(lines)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        pairs = [f"{_text(str(k))} = {_value(x)}" for k, x in value.items() if x is not None]
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, list):
        return f"[{', '.join(_value(x) for x in value if x is not None)}]"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    return (
        _text(value)
        if isinstance(value, str)
        else f"{value:%Y-%m-%d}"
        if isinstance(value, date)
        else str(value)
    )


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
