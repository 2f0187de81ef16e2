"""Axes of the asv suites. The defaults take minutes; the variable SVGPBENCH_AXES selects more.

Set SVGPBENCH_AXES="full", or give the values of some axes; the other axes keep their defaults:

    SVGPBENCH_AXES="backend=torch,torch:compile; problem=reg-M500,softmax10-M100; dtype=float32"
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from svgpbench.benchmarks.timing.cases import USUAL_STEPS, usual_methods
from svgpbench.benchmarks.timing.problems import SHAPES, TIMED
from svgpbench.errors import UserError, refuse_unknown
from svgpbench.plugins import METHODS, frameworks, load_all

Axes = Mapping[str, Sequence[str]]

VARIABLE = "SVGPBENCH_AXES"
MODES = {"jax": ("eager",), "torch": ("compile",), "tensorflow": ("xla", "eager")}
"""Modes besides the default one, listed here because asking a backend imports its framework."""


def small() -> Axes:
    """Return the default axes."""
    return {
        "backend": tuple(frameworks()),
        "method": ("t-svgp", "q-svgp"),
        "problem": ("reg-M100",),
        "step": ("em_step",),  # steps.py does not use this axis: it has one class per step
        "dtype": ("float64",),
        "device": ("cpu",),
    }


def full() -> Axes:
    """Return every value of every axis. Combinations that cannot run are skipped with the reason."""
    variants = (
        f"{name} {variant}".strip()
        for name, method in load_all(METHODS).items()
        for variant in method.info.variants
    )
    modes = (f"{name}:{mode}" for name in frameworks() for mode in MODES.get(name, ()))
    return {
        "backend": (*frameworks(), *modes, "numpy"),
        "method": tuple(dict.fromkeys((*usual_methods(), *variants))),
        "problem": TIMED,
        "step": USUAL_STEPS,
        "dtype": ("float64", "float32"),
        "device": ("cpu", "cuda"),
    }


def axes() -> dict[str, list[str]]:
    """Return the axes that SVGPBENCH_AXES selects.

    Raises `UserError` for an entry of another form, an unknown axis or an unknown value.
    """
    selection = os.environ.get(VARIABLE, "").strip()
    if selection == "full":
        return {name: list(values) for name, values in full().items()}
    known_values = {**full(), "problem": tuple(SHAPES)}
    out = {name: list(values) for name, values in small().items()}
    for part in filter(None, map(str.strip, selection.split(";"))):
        name, equals, values = (word.strip() for word in part.partition("="))
        if not equals:
            raise UserError(
                f"{VARIABLE}: {part!r} is not AXIS=VALUE,VALUE; or write {VARIABLE}=full"
            )
        refuse_unknown(f"axis of {VARIABLE}", [name], known_values)
        out[name] = [value.strip() for value in values.split(",")]
        refuse_unknown(f"{name} of {VARIABLE}", out[name], known_values[name])
    return out
