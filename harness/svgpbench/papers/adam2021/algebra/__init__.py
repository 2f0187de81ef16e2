"""Adam et al. 2021, the dual parameterization: results of the computed claims."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from svgpbench.papers.adam2021.algebra.banana import fewest_iterations, paths
from svgpbench.papers.adam2021.algebra.bounds import (
    conjugate_order,
    dual_is_a_bound,
    gaussian_is_exact,
)
from svgpbench.papers.adam2021.algebra.costs import compute_saved, step_costs
from svgpbench.papers.adam2021.algebra.curvature import hessian_decides, only_kl_moves
from svgpbench.papers.adam2021.algebra.figure1 import dual_is_above, objectives
from svgpbench.papers.adam2021.algebra.figure2 import (
    beside_print,
    em_counts,
    flatness,
    iterates,
    optima,
)
from svgpbench.papers.adam2021.algebra.forms import log_partition
from svgpbench.papers.adam2021.algebra.lagrangian import multipliers
from svgpbench.papers.adam2021.algebra.steps import optimum_is_additive, steps_agree
from svgpbench.papers.adam2021.algebra.tying import fixed_theta

CLAIMS: dict[str, Callable[[], pd.DataFrame]] = {
    "adam2021-01": steps_agree,
    "adam2021-02": optimum_is_additive,
    "adam2021-03": dual_is_a_bound,
    "adam2021-04": gaussian_is_exact,
    "adam2021-05": conjugate_order,
    "adam2021-06": hessian_decides,
    "adam2021-07": only_kl_moves,
    "adam2021-08": log_partition,
    "adam2021-09": step_costs,
    "adam2021-10": fixed_theta,
    "adam2021-11": dual_is_above,
    "adam2021-12": fewest_iterations,
    "adam2021-13": flatness,
    "adam2021-14": em_counts,
    "adam2021-23": multipliers,
    "adam2021-24": compute_saved,
    "fig1/objectives": objectives,
    "fig1/paths": paths,
    "fig2/optima": optima,
    "fig2/iterates": iterates,
    "fig2/printed": beside_print,
}
"""By claim: a frame with one row per case, its `check`, and its `residual` or its cost and sizes.

By figure: the frame that it draws, which also decides the claims about it.
"""
