"""Count of compiled programs, to find steps that are compiled more than once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from svgpbench.ops import Ops
from svgpbench.plugins import framework_of
from svgpbench.runs.worker_setup import load_framework


def compilations(ops: Ops, functions: Sequence[Callable[..., Any]]) -> int:
    """Return the programs compiled so far for functions of `ops.jit`; 0 if the backend compiles none."""
    framework = framework_of(ops.name)
    return framework.compilations(load_framework(ops.name), functions) if framework else 0
