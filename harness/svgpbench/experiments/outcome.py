"""Outcome of a cell in JSON form: its process returns it, and its record stores it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import Field, field_validator

from svgpbench.config import Strict

Status = Literal["ok", "not_pd", "diverged", "oom", "timeout", "crashed", "skipped", "error"]
Number = float | int | None


class Outcome(Strict):
    """Status and results of a cell; a numerical failure is an outcome, not an exception."""

    status: Status
    message: str = ""
    trace: dict[str, list[Number]] = Field(default_factory=dict)  # columns of equal length
    metrics: dict[str, Number] = Field(default_factory=dict)
    data: dict[str, Any] = Field(default_factory=dict)
    timing: dict[str, Number] = Field(default_factory=dict)
    resumptions: int = 0  # number of times that it resumed from a checkpoint

    @field_validator("trace", "metrics", "data", "timing", mode="before")
    @classmethod
    def _no_nan(cls, value: Any) -> Any:
        return json_value(value)


def json_value(value: Any) -> Any:
    """Convert a value to what JSON can hold.

    NaN and infinities become None, NumPy scalars and arrays become Python numbers and lists. Raises
    `TypeError` for any other type.
    """
    if isinstance(value, dict):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(item) for item in value]
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if hasattr(value, "tolist"):  # a NumPy scalar or array
        return json_value(value.tolist())
    raise TypeError(f"{type(value).__name__} has no place in a record")


def columns(points: Iterable[Mapping[str, Number]]) -> dict[str, list[Number]]:
    """Return a trace as columns; a point that lacks a column gets None in it."""
    points = list(points)
    names = dict.fromkeys(name for point in points for name in point)
    return {name: [point.get(name) for point in points] for name in names}
