"""Timers of single calls: the first call, warm-up and rounds. A call must wait for its own result.

Peers import this file too, so it needs the standard library alone.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

WARM_CALLS, WARM_S = 3, 0.3


def first_call(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of a call that may trace and compile, and its result."""
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def warm_up(call: Callable[[], Any]) -> float:
    """Call at least `WARM_CALLS` times and for `WARM_S` seconds. Return the seconds of the fastest."""
    seconds: list[float] = []
    end = time.perf_counter() + WARM_S
    while len(seconds) < WARM_CALLS or time.perf_counter() < end:
        seconds.append(first_call(call)[0])
    return min(seconds)


def time_calls(call: Callable[[], Any], count: int) -> list[float]:
    """Return the seconds of each of `count` calls, without garbage collection between them."""
    collects = gc.isenabled()
    # a collection takes milliseconds, as long as a step
    gc.collect()
    gc.disable()
    try:
        return [first_call(call)[0] for _ in range(count)]
    finally:
        if collects:
            gc.enable()
