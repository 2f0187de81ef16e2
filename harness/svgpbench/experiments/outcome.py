"""Outcome of a cell in JSON form: its process returns it, and its record stores it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import Field, field_validator

from svgpbench.config import Strict
from svgpbench.json_values import json_value

Status = Literal["ok", "not_pd", "diverged", "oom", "timeout", "crashed", "skipped", "error"]
Number = float | int | None


class CellOutcome(Strict):
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


def columns(points: Iterable[Mapping[str, Number]]) -> dict[str, list[Number]]:
    """Return a trace as columns; a point that lacks a column gets None in it."""
    points = list(points)
    names = dict.fromkeys(name for point in points for name in point)
    return {name: [point.get(name) for point in points] for name in names}
