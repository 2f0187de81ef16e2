"""What a worker and the process that started it say to each other: one line of JSON a message."""

from __future__ import annotations

from svgpbench.config import CellConfig, Strict
from svgpbench.environment import Environment
from svgpbench.experiments.outcome import Outcome
from svgpbench.training.checkpoints import EVERY_S

TARGET = "svgpbench.experiments.cell"
"""The module whose `run_cell` a worker calls and whose `identify` the parent calls."""


class Hello(Strict):
    """The worker is set up and waits for cells."""

    environment: Environment


class Request(Strict):
    """Run this cell, and keep its place in a file if one is named."""

    config: CellConfig
    checkpoint: str | None = None
    every_s: float = EVERY_S


class Answer(Outcome):
    """How the cell ended, and what of the process."""

    traceback: str = ""  # or the end of what a dead worker wrote to stderr
    environment: Environment | None = None  # None where the worker died before it could say
    peak_memory_bytes: int | None = None
