"""The messages between a worker and its parent, one line of JSON each."""

from __future__ import annotations

from svgpbench.config import CellConfig, Strict
from svgpbench.environment import Environment
from svgpbench.experiments.outcome import CellOutcome
from svgpbench.training.checkpoints import EVERY_S

TARGET = "svgpbench.experiments.cell"
"""The module whose `run_cell` a worker calls and whose `identify` the parent calls."""


class Hello(Strict):
    """The first message of a worker, which is set up and waits for cells."""

    environment: Environment


class Request(Strict):
    """A request to run a cell, with a checkpoint file if one is named."""

    config: CellConfig
    checkpoint: str | None = None
    every_s: float = EVERY_S


class Answer(CellOutcome):
    """The outcome of a cell, and facts of the process that ran it."""

    traceback: str = ""  # or the end of what a dead worker wrote to stderr
    environment: Environment | None = None  # None if the worker died before it reported it
    peak_memory_bytes: int | None = None
