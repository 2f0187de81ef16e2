"""What a worker and the process that started it say to each other: one line of JSON a message."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from svgpbench.config import CellConfig, Strict
from svgpbench.environment import Environment
from svgpbench.runner.records import Number, Status
from svgpbench.training.checkpoints import EVERY_S

TARGET = "svgpbench.cells.cell"
"""The module whose `run_cell` a worker calls and whose `identify` the parent calls."""


class Hello(Strict):
    """The worker is set up and waits for cells."""

    environment: Environment


class Request(Strict):
    """Run this cell, and keep its place in a file if one is named."""

    config: CellConfig
    checkpoint: str | None = None
    every_s: float = EVERY_S


class Answer(Strict):
    """How the cell ended."""

    status: Status
    message: str = ""
    traceback: str = ""
    trace: dict[str, list[Number]] = Field(default_factory=dict)
    metrics: dict[str, Number] = Field(default_factory=dict)
    data: dict[str, Any] = Field(default_factory=dict)
    timing: dict[str, Number] = Field(default_factory=dict)
    environment: Environment | None = None
    peak_memory_bytes: int | None = None
    resumptions: int = 0
