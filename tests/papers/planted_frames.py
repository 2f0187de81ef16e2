"""Frames of results planted by hand: what every predicate reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

Values = Sequence[float | None]
"""One a unit: a fold, or a seed; None where the cell failed."""


def planted(
    methods: Mapping[str, Values],
    metric: str = "nlpd",
    *,
    units: str = "fold",
    data: str = "a",
    perturbation: float = 0.0,
    **columns: Any,
) -> pd.DataFrame:
    """A row a method and unit, of 80 training and 20 test data."""
    rows = [
        {
            "data": data,
            "method": method,
            "split_seed": 0,
            "fold": at if units == "fold" else 0,
            "seed": at if units == "seed" else 0,
            "perturbation": perturbation,
            "status": "ok" if value is not None else "diverged",
            "n_train": 80,
            "n_test": 20,
            "n_bound": 80,
            metric: value,
        }
        | columns
        for method, values in methods.items()
        for at, value in enumerate(values)
    ]
    return pd.DataFrame(rows).astype({metric: float})


def together(*frames: pd.DataFrame) -> pd.DataFrame:
    """Frames one below the other."""
    return pd.concat(frames, ignore_index=True)


def around(mean: float, spread: float = 1e-4, units: int = 5) -> list[float]:
    """Numbers of a mean, evenly about it."""
    return [mean + spread * (at - (units - 1) / 2) for at in range(units)]


def reversed_around(mean: float, spread: float = 1e-4, units: int = 5) -> list[float]:
    """The same numbers the other way round, so that differences from `around` vary."""
    return around(mean, spread, units)[::-1]
