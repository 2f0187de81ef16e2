"""Conversion of X and y from Python to finite real numbers, with errors that locate a bad value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from numbers import Rational, Real
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from svgpbench.errors import UserError
from svgpbench_datasets.reading.cells import EXACT, finite_number

Floats = npt.NDArray[np.float64]

REMEDY = "fill in or remove that row"


def table_of(X: npt.ArrayLike | pd.DataFrame) -> pd.DataFrame:
    """Return X [n, D] as a float64 frame; columns are named as in X, or x1 to xD.

    Raises `UserError` if X is not a table of finite real numbers, or has no rows.
    """
    frame = frame_of(X)
    rows = finite(X, "X") if frame is None else frame
    if rows.ndim != 2 or not len(rows):
        raise UserError(f"X has shape {rows.shape}; give [n, D] with n ≥ 1")
    if frame is not None:
        by_name = columns(frame).items()
        return pd.DataFrame(
            {name: finite(values, f"X[{name!r}]") for name, values in by_name},
            index=range(len(frame)),  # of a frame without columns too
        )
    return pd.DataFrame(rows, columns=[f"x{index + 1}" for index in range(rows.shape[1])])


def distinct_rows(table: pd.DataFrame) -> int:
    """Return the number of rows of inputs that differ: the most inducing inputs that a fit takes."""
    # two equal inducing inputs are one: only jitter would keep K(Z, Z) from being singular
    return len(np.unique(table.to_numpy(), axis=0))


def frame_of(X: Any) -> pd.DataFrame | None:
    """Return X as a pandas frame if it is a table with column names, also of Polars or Arrow; else None."""
    if hasattr(X, "to_pandas"):
        X = X.to_pandas()
    return X if isinstance(X, pd.DataFrame) else None


def columns(X: pd.DataFrame) -> dict[str, Any]:
    """Return the columns of a frame by name as text; raises `UserError` if two share a name."""
    by_name: dict[str, Any] = {}
    for index, name in enumerate(map(str, X.columns)):
        if name in by_name:
            raise UserError(f"X has more than one column {name!r}; give each a name of its own")
        by_name[name] = X.iloc[:, index]
    return by_name


def vector(y: npt.ArrayLike, n: int) -> npt.NDArray[Any]:
    """Return y as an array [n]; raises `UserError` for another shape, and for a masked value."""
    values = whole_array(y, "y")
    if values.shape != (n,):
        raise UserError(f"y has shape {values.shape} for {n} rows of X; give [n]")
    return values


def whole_array(values: Any, what: str) -> npt.NDArray[Any]:
    """Return values as an array; raises `UserError` for what is no array, and for a masked value."""
    refuse_masked(values, what)
    if isinstance(values, Mapping):
        raise UserError(f"{what} is a {type(values).__name__}; give a DataFrame of it")
    if hasattr(values, "toarray"):
        raise UserError(f"{what} is sparse; give {what}.toarray()")
    try:
        array = np.asarray(values)
    except ValueError:
        raise UserError(f"{what} has rows of different lengths; give an array") from None
    except Exception as error:  # such as of a tensor on a GPU, or one with a gradient
        why = (str(error) or type(error).__name__).splitlines()[0]
        raise UserError(f"{what} cannot be made an array: {why}") from None
    if array.dtype == object and not array.ndim:
        raise UserError(f"{what} is a {type(values).__name__}; give an array")
    return array


def refuse_masked(values: Any, what: str) -> None:
    """Raise `UserError` at the first masked value of a masked array, or of a list of them.

    `np.asarray` would silently take the number below the mask, such as −9999 in a netCDF file.
    """
    if isinstance(values, list | tuple) and any(isinstance(x, np.ma.MaskedArray) for x in values):
        values = np.ma.array(values)
    if isinstance(values, np.ma.MaskedArray) and values.dtype.names is None:
        for position in np.argwhere(np.ma.getmaskarray(values))[:1]:
            raise UserError(f"{_item(what, position)} is masked; {REMEDY}")


def finite(values: Any, what: str) -> Floats:
    """Return values as float64.

    Raises `UserError` at the first that is missing, not finite, not real, or a whole number that float64
    cannot hold exactly.
    """
    raw = whole_array(values, what)
    if isinstance(values, list | tuple) and raw.dtype.kind == "f" and (np.abs(raw) >= EXACT).any():
        raw = np.asarray(values, dtype=object)  # its integers, beside floats, were rounded
    kind = raw.dtype.kind
    if kind in "OUS":
        floats = np.empty(raw.shape)
        for position, cell in np.ndenumerate(raw):
            floats[position] = _number(cell, what, position)
    elif kind in "biuf":
        with np.errstate(over="ignore"):  # of an extended precision, refused below
            floats = raw.astype(np.float64)
        rounded = _rounded_whole(raw, floats)
        if len(rounded):
            raise _inexact(raw[rounded[0]], what, rounded[0])
    else:
        raise UserError(f"{what} is of type {str(raw.dtype)[:40]}; give real numbers")
    if not np.isfinite(floats).all():
        position = tuple(np.argwhere(~np.isfinite(floats))[0])
        shown = raw[position] if kind == "f" else floats[position]
        raise UserError(f"{_item(what, position)} is {shown}; {REMEDY}")
    return floats


def refuse_far_rows(fits: npt.NDArray[np.bool_]) -> None:
    """Raise `UserError` for the first row of X, [t], whose numbers are not finite."""
    if not fits.all():
        raise UserError(f"row {np.argmin(fits)} of X is too far from the training's for float64")


def _rounded_whole(raw: npt.NDArray[Any], floats: Floats) -> list[tuple[int, ...]]:
    """Return the position of the first whole number that `floats` holds inexactly, if there is one."""
    # floats of 8 bytes or fewer convert exactly; 64-bit integers and long doubles may not
    if raw.dtype.kind == "b" or (raw.dtype.kind == "f" and raw.dtype.itemsize <= 8):
        return []
    large = np.isfinite(floats) & (np.abs(floats) >= EXACT)
    for position in map(tuple, np.argwhere(large)):
        value = raw[position]
        if int(value) == value and int(value) != int(floats[position]):
            return [position]
    return []


def _number(cell: Any, what: str, position: tuple[int, ...]) -> float:
    """Return one cell of objects or text as a float, which may be NaN; raises `UserError`."""
    item = _item(what, position)
    if isinstance(cell, bytes):
        cell = cell.decode(errors="replace")
    if isinstance(cell, str):
        value = finite_number(cell)
        is_whole = re.fullmatch(r"\s*[+-]?[0-9]+\s*", cell) is not None
        # `finite_number` is None for a long integer too, which is a number, but none of float64
        if is_whole and (value is None or int(value) != int(cell)):
            raise _inexact(cell.strip(), what, position)
        if value is None:
            raise UserError(
                f"{item} is {str(cell)[:40]!r}, not a number; encode it as numbers or leave it out"
            )
        return value
    if cell is np.ma.masked:
        raise UserError(f"{item} is masked; {REMEDY}")
    if cell is None or cell is pd.NA or cell is pd.NaT:
        raise UserError(f"{item} is missing; {REMEDY}")
    if not isinstance(cell, np.generic) and getattr(cell, "shape", None) == ():
        cell = cell.item()  # of a tensor
    if not isinstance(cell, Real | Decimal | np.bool_):  # no date, and no complex number
        raise UserError(
            f"{item} is {str(cell)[:40]!r}, not a number; encode it as numbers or leave it out"
        )
    try:
        value = float(cell)
    except OverflowError:
        raise UserError(f"{item} is too large for float64; rescale it") from None
    except ValueError:  # Decimal('sNaN')
        value = np.nan
    # a float is its own value; of integers, fractions and decimals `float` may have lost digits
    whole = isinstance(cell, Rational | Decimal) and np.isfinite(value) and not cell % 1
    if whole and cell != int(value):
        raise _inexact(cell, what, position)
    return value


def _inexact(value: Any, what: str, position: Any) -> UserError:
    return UserError(
        f"{_item(what, position)} is {value}, a whole number that float64 cannot hold exactly; "
        "subtract an offset or rescale"
    )


def _item(what: str, position: Any) -> str:
    return f"{what}[{', '.join(map(str, position))}]"
