"""What a cell gave, in the form that JSON has: what crosses from its process, and what its record keeps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import Field, field_validator

from svgpbench.config import Strict

Status = Literal["ok", "not_pd", "diverged", "oom", "timeout", "crashed", "skipped", "error"]
Number = float | int | None


class Outcome(Strict):
    """How a cell ended; a failure of the numbers is an outcome, not an exception."""

    status: Status
    message: str = ""
    trace: dict[str, list[Number]] = Field(default_factory=dict)  # columns of equal length
    metrics: dict[str, Number] = Field(default_factory=dict)
    data: dict[str, Any] = Field(default_factory=dict)
    timing: dict[str, Number] = Field(default_factory=dict)
    resumptions: int = 0  # how often it went on from a checkpoint

    @field_validator("trace", "metrics", "data", "timing", mode="before")
    @classmethod
    def _no_nan(cls, value: Any) -> Any:
        return finite(value)


def finite(value: Any) -> Any:
    """The same JSON-able value with NaN, infinities and NumPy scalars made plain: JSON has none."""
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if hasattr(value, "tolist"):  # a NumPy scalar or array
        return finite(value.tolist())
    raise TypeError(f"{type(value).__name__} has no place in a record")


def columns(points: Iterable[Mapping[str, Number]]) -> dict[str, list[Number]]:
    """A trace by column; a point that lacks a column has None there."""
    points = list(points)
    names = dict.fromkeys(name for point in points for name in point)
    return {name: [point.get(name) for point in points] for name in names}
