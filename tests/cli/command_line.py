"""The type of the `cli` fixture."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Outcome(NamedTuple):
    """What a command printed and its exit code."""

    code: int
    out: str
    err: str


Cli = Callable[..., Outcome]
