"""The quantities of the check by dense Gaussian algebra in plain NumPy: explicit inverses, no `Ops`.

This code shares none with the methods. A fault in a method, which is the same on every backend, shows
only as a difference from this column.
"""

from __future__ import annotations

from collections.abc import Callable

from svgpbench.checks.cases import COMPOUND_KERNELS, VARIANTS, MatrixCase, SmallProblem
from svgpbench.checks.dense.coupled import coupled_arrays
from svgpbench.checks.dense.decoupled import decoupled_arrays
from svgpbench.checks.dense.diagonal import diagonal_arrays
from svgpbench.checks.dense.exact import gpr_arrays, gpr_bound, sgpr_arrays
from svgpbench.checks.dense.expectations import KNOWN_LIKELIHOODS
from svgpbench.checks.dense.gaussians import KERNELS, kernel_matrix, log_normal, sgpr_bound
from svgpbench.checks.dense.relaxed import relaxed_arrays
from svgpbench.checks.dense.two_part import two_part_arrays
from svgpbench.checks.evaluate import Arrays

__all__ = [
    "dense_arrays",
    "gpr_bound",
    "kernel_matrix",
    "log_normal",
    "sgpr_bound",
    "without_dense",
]

FAMILIES: dict[str, Callable[[MatrixCase, SmallProblem, Arrays], Arrays]] = {
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
    "r-svgp": relaxed_arrays,
}
"""Method name → function that returns its arrays."""


def without_dense(case: MatrixCase) -> str:
    """Return the part of a case that dense algebra does not know, or an empty string.

    Methods, likelihoods and kernels of third parties are not known.
    """
    name, _ = VARIANTS[case.method]
    for what, part, names in (
        ("method", name, FAMILIES),
        ("likelihood", case.likelihood, KNOWN_LIKELIHOODS),
        ("kernel", case.kernel, {*KERNELS, *COMPOUND_KERNELS}),
    ):
        if part not in names:
            return f"{what} {part!r}"
    return ""


def dense_arrays(case: MatrixCase, problem: SmallProblem, numbers: Arrays) -> Arrays | None:
    """Return the dense arrays at the numpy backend's state, or None if a part is not known."""
    if without_dense(case):
        return None
    return FAMILIES[VARIANTS[case.method][0]](case, problem, numbers)
