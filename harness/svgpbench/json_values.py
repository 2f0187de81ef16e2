"""Conversion of values to what JSON can hold: a missing number is null."""

from __future__ import annotations

import json
import math
from dataclasses import fields, is_dataclass
from typing import Any


def json_value(value: Any) -> Any:
    """Convert a value to what JSON can hold.

    NaN and infinities become None. NumPy scalars and arrays become Python numbers and lists. Dataclasses and
    named tuples become dictionaries. Raises `TypeError` for any other type.
    """
    if value is None or isinstance(value, (str, bool, int)):
        return value
    # np.float64 is a float too; it becomes a plain one
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if hasattr(value, "tolist"):  # a NumPy scalar or array
        return json_value(value.tolist())
    if is_dataclass(value):
        value = {one.name: getattr(value, one.name) for one in fields(value)}
    elif isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(item) for item in value]
    raise TypeError(f"{type(value).__name__} has no place in JSON")


def json_text(value: Any) -> str:
    """Return a value as indented JSON."""
    return json.dumps(json_value(value), indent=2, ensure_ascii=False, allow_nan=False)
