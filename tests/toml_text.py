"""A tree of tables, lists and values as TOML, one line per key of the outermost table."""

from __future__ import annotations

import json
import math
from datetime import date
from typing import Any


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
