"""Equivalence matrix: the worst difference of every case between every two sources of numbers."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from svgpbench.backends import load_backend
from svgpbench.checks.cases import KERNELS_IN_TURN, MatrixCase, small_problem
from svgpbench.checks.evaluate import GROUPS, SKIPPED, Arrays
from svgpbench.ops import eps

FLOAT64 = {
    "values": 1e-10,
    "gradients": 1e-10,
    "e_step": 1e-10,
    "e_trajectory": 1e-9,
    "m_trajectory": 1e-9,
    "dense": 1e-10,
}
CONDITION = 18.0
"""Largest condition number of K(Z, Z) in the small problem."""
CONDITIONS = {"data": {"se": 33_800.0, "matern32": 570.0, "matern52": 1_750.0}}
"""Condition number of K(X, X) by kernel, for methods whose basis is the data."""
FLOAT32 = dict.fromkeys(("values", "gradients", "e_step"), 16.0) | dict.fromkeys(
    ("e_trajectory", "m_trajectory"), 64.0
)
"""float32 bounds in units of eps · condition: 3e-5 for a step, 1.4e-4 for fifty."""


def bound(group: str, dtype: str, condition: float = CONDITION) -> float:
    """Return the largest difference that is allowed in a group of arrays."""
    return FLOAT64[group] if dtype == "float64" else FLOAT32[group] * condition * eps(dtype)


def condition_of(case: MatrixCase) -> float:
    """Return a condition number of the covariance of the case's basis, at least `CONDITION`."""
    model, method = case.build()
    if case.kernel in KERNELS_IN_TURN:
        return CONDITIONS.get(method.basis, {}).get(case.kernel, CONDITION)
    problem, ops = small_problem(), load_backend("numpy")
    basis = problem.X if method.basis == "data" else problem.Z
    K = model.covariance(ops, problem.theta(model)).square(basis)
    return max(CONDITION, float(np.linalg.cond(ops.to_numpy(K)[0])))


SMALLEST_SLOPE = 1e-3
"""A gradient below this share of the objective is measured in units of that share, since it is the rounding
of terms that cancel. An example is the kernel variance under robust-max with whitened q: scaling all latents
keeps the largest one the largest, so only the jitter keeps this slope from being 0."""


def difference(a: npt.ArrayLike, b: npt.ArrayLike, *, unit: float = 0.0) -> float:
    """Return max|a − b| over the largest of max|a|, max|b| and `unit`.

    The result is infinite for values that are not finite, unequal shapes, or empty arrays.
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if a.shape != b.shape or a.size == 0:
        return float("inf")
    if not (np.all(np.isfinite(a)) and np.all(np.isfinite(b))):
        return float("inf")
    size = max(np.max(np.abs(a)), np.max(np.abs(b)), unit)
    return float(np.max(np.abs(a - b)) / size) if size else 0.0


@dataclass(frozen=True)
class MatrixEntry:
    """A cell of the matrix: the worst difference in one group of arrays of a case."""

    case: str
    group: str
    worst: float
    array: str
    pair: tuple[str, str]
    tolerance: float

    @property
    def ok(self) -> bool:
        """Return True if the worst difference is within tolerance."""
        return self.worst <= self.tolerance


def compare(
    case: MatrixCase, numbers: dict[str, Arrays], dense: Arrays | None
) -> list[MatrixEntry]:
    """Return the entries of one case from the arrays of each backend.

    `dense` is compared with the arrays of `numpy`. In float32 the arrays of `numpy` are in float64. A
    backend takes no part in a group that it skips.
    """
    entries, computed = [], numbers
    for group in GROUPS:
        numbers = {b: x for b, x in computed.items() if f"{SKIPPED}/{group}" not in x}
        if len(numbers) < 2:
            continue
        prefix = f"{group}/"
        names = sorted({k for arrays in numbers.values() for k in arrays if k.startswith(prefix)})
        if group == "m_trajectory" and case.dtype != "float64":
            names = [k for k in names if _is_determined(k, numbers)]
        unit = _smallest_unit(group, numbers)
        differences = [
            # an array that one backend lacks differs by infinity
            (difference(numbers[a].get(k, []), numbers[b].get(k, []), unit=unit), k, (a, b))
            for a, b in itertools.combinations(numbers, 2)
            for k in names
        ]
        if differences:
            worst, array, pair = max(differences)
            tolerance = bound(group, case.dtype, condition_of(case))
            entries.append(MatrixEntry(case.name, group, worst, array, pair, tolerance))
    # `computed`: the loop leaves `numbers` without the backends that skip its last group
    if dense is not None and "numpy" in computed:
        differences = [
            (difference(computed["numpy"][k], x), k, ("numpy", "dense")) for k, x in dense.items()
        ]
        worst, array, pair = max(differences)
        entries.append(MatrixEntry(case.name, "dense", worst, array, pair, FLOAT64["dense"]))
    return entries


def _smallest_unit(group: str, numbers: dict[str, Arrays]) -> float:
    """Return the smallest size by which differences in a group are divided."""
    if group != "gradients":
        return 0.0
    objectives = [np.abs(arrays["gradients/objective"]) for arrays in numbers.values()]
    # 0 for an objective that is not finite: an infinite unit would hide every finite difference
    return SMALLEST_SLOPE * float(np.nan_to_num(np.max(objectives), posinf=0.0))


def _is_determined(name: str, numbers: dict[str, Arrays]) -> bool:
    """Return True if a parameter is learned and its slope is more than rounding.

    Adam moves the others by the last digits of their slopes.
    """
    slope = f"gradients/{name.removeprefix('m_trajectory/')}"
    slopes = [np.abs(arrays[slope]) for arrays in numbers.values() if slope in arrays]
    if not slopes:  # it is not learned
        return False
    return min(float(np.max(x)) for x in slopes) > _smallest_unit("gradients", numbers)
