"""Imports of other people's code within a time: one that hangs is left behind in its thread, and named."""

from __future__ import annotations

import math
import os
import queue
import threading
from collections.abc import Callable
from typing import Any

from svgpbench.errors import UserError

VARIABLE = "SVGPBENCH_IMPORT_LIMIT"
"""Seconds that replace both limits: for a disk on which a sound package takes longer."""

LIMIT_S = 20.0
FRAMEWORK_LIMIT_S = 120.0
"""For what imports a framework."""


class HangsError(UserError):
    """An import that did not end within its time."""


def limit_s(usual: float) -> float:
    """Seconds that an import may take; raises `UserError` where the variable holds no such number."""
    text = os.environ.get(VARIABLE, "")
    try:
        seconds = float(text) if text else usual
    except ValueError:
        seconds = math.nan
    if not (0.0 < seconds < threading.TIMEOUT_MAX):
        raise UserError(f"{VARIABLE}={text!r}: give a number of seconds above 0")
    return seconds


_hanging: set[str] = (
    set()
)  # modules whose import holds its lock: a second one would wait for the first


def within(module: str, load: Callable[[], Any], seconds: float) -> Any:
    """What `load` gives, which imports `module`; raises what it raises, and `HangsError` after so long.

    In a thread, as a signal reaches neither a worker's threads nor code that is not Python.
    """
    refusal = HangsError(
        f"its import did not end within {seconds:g} s ({VARIABLE} gives it longer)"
    )
    if module in _hanging:
        raise refusal
    outcomes: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

    def attempt() -> None:
        try:
            outcomes.put((load(), None))
        except BaseException as error:  # SystemExit too, which would end this thread alone
            outcomes.put((None, error))

    threading.Thread(target=attempt, daemon=True, name=f"import {module}").start()
    try:
        found, error = outcomes.get(timeout=seconds)
    except queue.Empty:
        _hanging.add(module)
        raise refusal from None
    if error is not None:
        raise error
    return found
