"""Texts of numbers in tables and captions."""

from __future__ import annotations

import math
from collections.abc import Sequence

PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")


def plus_minus(estimate: tuple[float, float]) -> str:
    """Return text such as `-412.31±0.64` of (mean, error), with both rounded to the same place.

    The error has two digits, but at most three decimal places, or four if it is 0.001 or less. What four
    places would show as 0, such as an RMSE in tesla, and what is 1e6 or more, has an exponent.
    """
    mean, error = estimate
    if math.isnan(mean):
        return "–"
    size = max(abs(mean), 0.0 if math.isnan(error) else error)
    # below 5e-5 four decimal places round to 0.0000
    if size >= 1e6 or 0.0 < size < 5e-5:
        return f"{mean:.2e}" if math.isnan(error) else f"{mean:.2e}±{difference(error)}"
    if math.isnan(error):
        return f"{mean:.{_decimals(mean, 4)}f}"
    if error < 1e-6:
        return f"{mean:.{_decimals(mean, 4)}f}±0"
    decimals = min(_decimals(error, 2), 3 if error > 1e-3 else 4)
    return f"{mean:.{decimals}f}±{error:.{decimals}f}"


def _decimals(value: float, digits: int) -> int:
    """Return the number of decimal places, from 0 to 4, that shows `digits` significant digits."""
    size = math.floor(math.log10(abs(value))) if value else 0
    return min(4, max(0, digits - 1 - size))


def difference(value: float) -> str:
    """Return a relative difference with one digit."""
    return "0" if value == 0 else f"{value:.0e}"


def scaled(number: float) -> str:
    """Return a number with a prefix and three digits, such as `1.23 G`; `–` for NaN."""
    if math.isnan(number):
        return "–"
    return _with_unit(number, PREFIXES).strip()


def _with_unit(number: float, units: Sequence[str]) -> str:
    """Return a number with three digits and a unit. Each unit is 1000 of the one before it."""
    for unit in units[:-1]:
        if number < 999.5:  # from there on three digits would read 1e+03
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} {units[-1]}"


def milliseconds(seconds: float) -> str:
    """Return seconds as milliseconds: three digits, or all whole digits from 1 s on."""
    return f"{1000 * seconds:.3g}" if seconds < 0.9995 else f"{1000 * seconds:.0f}"


def in_bytes(size: float) -> str:
    """Return a number of bytes with a unit: `1.2 MB`."""
    return _with_unit(size, ("B", "kB", "MB", "GB", "TB"))
