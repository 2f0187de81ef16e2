"""Adam et al. 2021, the dual parameterization: results of the computed claims."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from svgpbench_papers.adam2021.algebra import (
    banana,
    bounds,
    costs,
    curvature,
    figure1,
    figure2,
    forms,
    lagrangian,
    steps,
    tying,
)

CLAIMS: dict[str, Callable[[], pd.DataFrame]] = {
    "adam2021-01": steps.steps_agree,
    "adam2021-02": steps.optimum_is_additive,
    "adam2021-03": bounds.dual_is_a_bound,
    "adam2021-04": bounds.gaussian_is_exact,
    "adam2021-05": bounds.conjugate_order,
    "adam2021-06": curvature.hessian_decides,
    "adam2021-07": curvature.only_kl_moves,
    "adam2021-08": forms.log_partition,
    "adam2021-09": costs.step_costs,
    "adam2021-10": tying.fixed_theta,
    "adam2021-11": figure1.dual_is_above,
    "adam2021-12": banana.fewest_iterations,
    "adam2021-13": figure2.flatness,
    "adam2021-14": figure2.em_counts,
    "adam2021-23": lagrangian.multipliers,
    "adam2021-24": costs.compute_saved,
    "fig1/objectives": figure1.objectives,
    "fig1/paths": banana.paths,
    "fig2/optima": figure2.optima,
    "fig2/iterates": figure2.iterates,
    "fig2/printed": figure2.beside_print,
}
"""Functions that compute a frame, by claim and by `ARTEFACT/FIGURE`."""
