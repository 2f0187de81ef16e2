"""Imports of third-party code with a time limit; an import that hangs is reported and left in its thread."""

from __future__ import annotations

import math
import os
import queue
import threading
from collections.abc import Callable
from typing import Any

from svgpbench.errors import UserError

VARIABLE = "SVGPBENCH_IMPORT_LIMIT"
"""Environment variable with the seconds that replace both limits, for example on a slow disk."""

LIMIT_S = 20.0
FRAMEWORK_LIMIT_S = 120.0
"""Limit for a module that imports a framework."""


class HangsError(UserError):
    """Error of an import that did not end within its time limit."""


def limit_s(usual: float) -> float:
    """Return the time limit of an import in seconds: the environment variable, or `usual` if it is not set.

    Raises `UserError` if the variable is not a number above 0.
    """
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
)  # modules whose import hangs and holds the import lock; a second import would wait for it


def import_in_time(module: str, load: Callable[[], Any], seconds: float) -> Any:
    """Return the result of `load`, which imports `module`.

    Raises the exception of `load`. Raises `HangsError` after `seconds`, or at once if an earlier import of
    `module` hangs. `load` runs in a thread, because a signal cannot interrupt a worker's threads or code
    that is not Python.
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
        except BaseException as error:  # SystemExit too, which would end only this thread
            outcomes.put((None, error))

    # a daemon, or an import that hangs would keep the process from ending
    threading.Thread(target=attempt, daemon=True, name=f"import {module}").start()
    try:
        found, error = outcomes.get(timeout=seconds)
    except queue.Empty:
        _hanging.add(module)
        raise refusal from None
    if error is not None:
        raise error
    return found
