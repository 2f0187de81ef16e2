"""How near a backend must come to a file's numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

TOLERANCE = 1e-11
"""Relative to the largest entry. The files are printed to 17 digits and every backend is within 3e-14
of them, trajectories included; the rest is room for other BLAS libraries and processors."""


def agree(
    actual: npt.ArrayLike, expected: npt.ArrayLike, what: str, tolerance: float = TOLERANCE
) -> None:
    """Compare with the largest expected entry as the unit."""
    a, e = np.asarray(actual, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    assert a.shape == e.shape, f"{what}: shape {a.shape}, expected {e.shape}"
    error = float(np.max(np.abs(a - e)) / np.max(np.abs(e)))
    assert error <= tolerance, f"{what}: relative error {error:.2e} above {tolerance:.0e}"
