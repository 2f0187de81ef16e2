"""The same quantities by dense Gaussian algebra in plain NumPy: explicit inverses, no `Ops`.

It shares no code with the methods, so a fault in a method, which every backend would repeat, shows
as a difference from this column.
"""

from __future__ import annotations

from collections.abc import Callable

from svgpbench.checks.cases import VARIANTS, Case, Problem
from svgpbench.checks.dense.coupled import coupled_arrays
from svgpbench.checks.dense.decoupled import decoupled_arrays
from svgpbench.checks.dense.diagonal import diagonal_arrays
from svgpbench.checks.dense.exact import gpr_arrays, gpr_bound, sgpr_arrays
from svgpbench.checks.dense.gaussians import kernel_matrix, log_normal, sgpr_bound
from svgpbench.checks.dense.two_part import two_part_arrays
from svgpbench.checks.evaluate import Arrays

__all__ = ["dense_arrays", "gpr_bound", "kernel_matrix", "log_normal", "sgpr_bound"]

FAMILIES: dict[str, Callable[[Case, Problem, Arrays], Arrays]] = {
    "t-svgp": coupled_arrays,
    "q-svgp": coupled_arrays,
    "t-vgp": coupled_arrays,
    "q-vgp": coupled_arrays,
    "gpr": gpr_arrays,
    "sgpr": sgpr_arrays,
    "decoupled": decoupled_arrays,
    "orth": two_part_arrays,
    "hybrid": two_part_arrays,
    "diagonal-precision": diagonal_arrays,
}
"""By method name; a third party's method has no dense column."""


def dense_arrays(case: Case, problem: Problem, numbers: Arrays) -> Arrays | None:
    """What dense algebra says of the state that the numpy backend reached."""
    family = FAMILIES.get(VARIANTS[case.method][0])
    return family(case, problem, numbers) if family else None
