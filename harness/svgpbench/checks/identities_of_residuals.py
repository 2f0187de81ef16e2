"""The identity of bounds whose q(f|u) is narrower than p(f|u).

With v at its best, the bound rises with the number of free variances. All bounds are equal if Z = X.
With one v_i per datum, E-steps equal the usual ones, bit for bit, and the M-step objective of `untied`
is Titsias's bound at every θ and σ².
"""

from __future__ import annotations

import numpy as np

from svgpbench.checks.bench import Bench, Names, bench, scaled_theta
from svgpbench.checks.cases import build_model, grid_problem, small_problem
from svgpbench.checks.dense import gpr_bound, sgpr_bound
from svgpbench.checks.matrix import difference
from svgpbench.kernels import unconstrain
from svgpbench.methods import build_method
from svgpbench.ops import Ops
from svgpbench.tree import leaves, tree_map

WIDTHS = {"prior": "tied-projected", "scalar": "scalar", "diagonal": "diagonal"}
"""Residual variance → variant of t-SVGP."""


def narrower_is_tighter(ops: Ops, likelihoods: Names) -> float:
    """Gaussian: q(f|u) = p(f|u) ≤ one v ≤ a v_i each ≤ log p(y) at any q; `untied` is its SGPR."""
    rising = _bounds_at_one_q([bench(ops, f"t-svgp {x}", "gaussian") for x in WIDTHS.values()])
    problem = small_problem()
    model = build_model("gaussian", "matern52")
    rising.append(gpr_bound(problem.theta(model), "matern52", problem.X, problem.y))
    if not np.min(np.diff(rising)) >= 1e-3 * abs(rising[0]):  # also where a bound is NaN
        return float("inf")
    # at Z = X, without jitter and X well spaced, the bounds are equal
    problem, model = grid_problem(), build_model("gaussian", "matern32", jitter=0.0)
    at_data = []
    for width in WIDTHS:
        b = Bench(ops, model, build_method("t-svgp", {"residual_variance": width}), problem)
        at_data.append(ops.to_numpy(b.bound(b.e_step(b.start, b.full, 0.5), b.full)))
    worst = max(_gap_to_collapsed(ops), *(difference(x, at_data[0]) for x in at_data[1:]))
    return worst if _same_e_steps(ops) else float("inf")


def _bounds_at_one_q(benches: list[Bench]) -> list[float]:
    """Return the bounds at one general q, with the single v at its best.

    With Gaussian noise β, and so the best v, is the same at every q.
    """
    scalar = benches[1]
    residual = scalar.e_step(scalar.start, scalar.full, 1.0).residual
    q = benches[0].minibatch_run(5)
    residuals = ((), residual, ())
    return [
        float(b.ops.to_numpy(b.bound(q._replace(residual=x), b.full)))
        for b, x in zip(benches, residuals, strict=True)
    ]


def _gap_to_collapsed(ops: Ops) -> float:
    """Return the largest difference of `untied`'s M-step objective and the collapsed bound.

    They are compared where the kernel, Z and σ² have moved.
    """
    b = bench(ops, "t-svgp untied diagonal", "gaussian")
    state = b.e_step(b.start, b.full, 1.0)
    worst = 0.0
    for kernel, noise in ((0.4, 1.0), (1.3, 0.3), (2.0, 3.0)):
        new_theta = scaled_theta(b.problem.theta(b.model), kernel, noise, shift=0.1 * kernel)
        value, _ = b.objective(state, tree_map(ops.asarray, unconstrain(new_theta)))
        exact = sgpr_bound(new_theta, "matern52", b.problem.X, b.y, 1e-6, "diagonal")
        worst = max(worst, difference(value, exact))
    return worst


def _same_e_steps(ops: Ops) -> bool:
    """Return True if five minibatch steps with one v_i per datum equal the usual ones exactly."""
    pairs = (
        ("t-svgp tied-projected", "t-svgp diagonal"),
        ("t-svgp untied", "t-svgp untied diagonal"),
        ("q-svgp natgrad", "q-svgp natgrad diagonal"),
    )
    for pair in pairs:
        states = [bench(ops, title, "gaussian").minibatch_run(5) for title in pair]
        for usual_leaf, narrow_leaf in zip(*map(leaves, states), strict=True):
            if not np.array_equal(ops.to_numpy(usual_leaf), ops.to_numpy(narrow_leaf)):
                return False
    return True
