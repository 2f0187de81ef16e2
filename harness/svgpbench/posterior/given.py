"""Conversion of X and y from Python to finite real numbers, with errors that locate a bad value."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from svgpbench.errors import UserError

Floats = npt.NDArray[np.float64]

KINDS = "biufOUS"
"""Kinds of NumPy dtypes that may hold numbers. Dates and complex numbers would convert to wrong ones."""


def table_of(X: npt.ArrayLike | pd.DataFrame) -> pd.DataFrame:
    """Return X [n, D] as a float64 frame; columns are named as in X, or x1 to xD.

    Raises `UserError` if X is not a table of finite real numbers.
    """
    if isinstance(X, pd.DataFrame):
        return pd.DataFrame(
            {name: finite(values, f"X[{name!r}]") for name, values in columns(X).items()}
        )
    rows = finite(X, "X")
    if rows.ndim != 2:
        raise UserError(f"X has shape {rows.shape}; give [n, D]")
    return pd.DataFrame(rows, columns=[f"x{index + 1}" for index in range(rows.shape[1])])


def columns(X: pd.DataFrame) -> dict[str, Any]:
    """Return the columns of a frame by name as text; raises `UserError` if two share a name."""
    by_name: dict[str, Any] = {}
    for index, name in enumerate(map(str, X.columns)):
        if name in by_name:
            raise UserError(f"X has more than one column {name!r}; give each a name of its own")
        by_name[name] = X.iloc[:, index]
    return by_name


def vector(y: npt.ArrayLike, n: int) -> npt.NDArray[Any]:
    """Return y as an array [n]; raises `UserError` for another shape."""
    values = np.asarray(y)
    if values.shape != (n,):
        raise UserError(f"y has shape {values.shape} for {n} rows of X; give [n]")
    return values


def finite(values: Any, what: str) -> Floats:
    """Return values as float64; raises `UserError` at the first that is not finite and real."""
    try:
        raw = np.asarray(values)
    except ValueError:
        raise UserError(f"{what} has rows of different lengths; give an array") from None
    if raw.dtype.kind not in KINDS:
        raise UserError(f"{what} is of type {raw.dtype}; give real numbers")
    try:
        floats = raw.astype(np.float64)
    except (TypeError, ValueError):
        for position, value in np.ndenumerate(raw):
            try:
                float(value)
            except (TypeError, ValueError):
                raise UserError(
                    f"{_item(what, position)} is {str(value)[:40]!r}, not a number; "
                    "encode it as numbers or leave it out"
                ) from None
        raise
    if not np.isfinite(floats).all():
        position = tuple(np.argwhere(~np.isfinite(floats))[0])
        raise UserError(
            f"{_item(what, position)} is {floats[position]}; fill in or remove that row"
        )
    return floats


def _item(what: str, position: tuple[int, ...]) -> str:
    return f"{what}[{', '.join(map(str, position))}]"
