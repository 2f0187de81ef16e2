"""Traces of the bound planted so that runs converge when a test says."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from planted_frames import planted, together

from svgpbench.stats.convergence import BoundTrace

NOT_REACHED: Final = math.inf
STEPS: Final = (0.96, 0.995, 1.0)
"""The share of the way at which a run is near by 5 %, by 1 % and by 0.1 %."""

When = float | tuple[float, float, float] | None
"""T at every tolerance, or at each of 5 %, 1 % and 0.1 %; None where the cell failed."""


def trace(when: When, best: float = 1.0, start: float = 0.0) -> BoundTrace:
    """A bound that goes from `start` to `best` in steps, one at each T."""
    times = when if isinstance(when, tuple) else (when or NOT_REACHED,) * 3
    looks = sorted({0.5, *(t for t in times if t != NOT_REACHED), 1e5})
    share = [
        max((s for t, s in zip(times, STEPS, strict=True) if t <= at), default=0.0) for at in looks
    ]
    bound = start + (best - start) * np.array(share)
    return BoundTrace(np.array(looks), bound, best, start=float(bound[0]))


def converging(
    methods: Mapping[str, Sequence[When]], data: str = "a", **columns: Any
) -> pd.DataFrame:
    """One row per method and fold, with a trace that converges when it says."""
    status = {m: [None if when is None else 1.0 for when in times] for m, times in methods.items()}
    frame = planted(status, "elbo", data=data, **columns)
    return frame.assign(bound_trace=[trace(when) for times in methods.values() for when in times])


def on_sets(*sets: tuple[Sequence[When], Sequence[When]]) -> pd.DataFrame:
    """T of A and of B on some data sets."""
    return together(
        *(converging({"A": a, "B": b}, data=f"set {at}") for at, (a, b) in enumerate(sets))
    )
