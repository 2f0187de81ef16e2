"""Identities of bounds, compared with textbook bounds in plain NumPy or with one another."""

from __future__ import annotations

import numpy as np

from svgpbench.checks.bench import Bench, Names, bench, scaled_theta, worst_of
from svgpbench.checks.cases import USUAL, VARIANTS, build_model, grid_problem, likelihoods_of
from svgpbench.checks.dense import gpr_bound, sgpr_bound
from svgpbench.checks.matrix import difference
from svgpbench.kernels import constrain, unconstrain
from svgpbench.kernels.kernels import KernelParameters
from svgpbench.methods import build_method
from svgpbench.methods.collapsed import SGPR
from svgpbench.ops import Ops
from svgpbench.tree import tree_map


def inducing_at_data_gives_gpr(ops: Ops, likelihoods: Names) -> float:
    """Z = X, Gaussian, no jitter, X well spaced: t-SVGP and SGPR have GPR's log p(y)."""
    problem = grid_problem()
    model = build_model("gaussian", "matern32", jitter=0.0)
    exact = gpr_bound(problem.theta(model), "matern32", problem.X, problem.y)
    worst = 0.0
    for name in ("gpr", "sgpr", "t-svgp"):
        b = Bench(ops, model, build_method(name, {}), problem)
        state = b.e_step(b.start, b.full, 1.0)
        worst = max(worst, difference(ops.to_numpy(b.bound(state, b.full)), exact))
    return worst


def bounds_hold_at_every_size(ops: Ops, likelihoods: Names) -> float:
    """One step gives SGPR's bound at kernel variances 1e-4 to 1e6, lengthscales 1/100 to 100 times theirs."""
    worst = 0.0
    for name in ("t-svgp tied-projected", "q-svgp natgrad", "sgpr"):
        b = bench(ops, name, "gaussian")
        theta = b.problem.theta(b.model)
        variance, lengthscales = theta.kernel
        for kernel in (
            *(KernelParameters(np.array([10.0**k]), lengthscales) for k in range(-4, 7)),
            *(KernelParameters(variance, lengthscales * 10.0**k) for k in range(-2, 3)),
        ):
            new_theta = theta._replace(kernel=kernel)
            b.move(tree_map(ops.asarray, unconstrain(new_theta)))
            # the start at the old θ is λ = 0, or whitened (0, I): q = p at any θ
            state = b.e_step(b.start, b.full, 1.0)
            best = sgpr_bound(new_theta, "matern52", b.problem.X, b.y, 1e-6)
            worst = max(worst, difference(ops.to_numpy(b.bound(state, b.full)), best))
    return worst


def sites_of_data_stay_exact(ops: Ops, likelihoods: Names) -> float:
    """t-VGP, Gaussian: its M-step objective is log p(y) at every kernel θ and σ²."""
    worst = 0.0
    for method in ("t-vgp", "t-vgp negative sites"):
        b = bench(ops, method, "gaussian")
        state = b.e_step(b.start, b.full, 1.0)
        theta = b.problem.theta(b.model, "data")
        # exact where σ² moves only because sites are re-expressed as (y/σ², 1/σ²) at the new σ²
        for kernel, noise in ((0.4, 1.0), (1.3, 1.0), (2.0, 1.0), (1.0, 0.2), (0.7, 3.0)):
            new_theta = scaled_theta(theta, kernel, noise)
            value, _ = b.objective(state, tree_map(ops.asarray, unconstrain(new_theta)))
            exact = gpr_bound(new_theta, "matern52", b.problem.X, b.y)
            worst = max(worst, difference(value, exact))
    return worst


def objectives_meet(ops: Ops, likelihoods: Names) -> float:
    """Tyings meet at θ_t, in slope too at the best q; `untied`, Gaussian, is SGPR at every θ."""
    worst = 0.0
    tyings = [m for m in USUAL if m.startswith("t-svgp")]
    # slopes meet only where ∂ELBO/∂q = 0: a Gaussian is there after one step, others are not
    for likelihood, steps in (("gaussian", 1), ("bernoulli-logit", 60)):
        values, slopes = [], []
        for method in tyings:
            b = bench(ops, method, likelihood)
            generic = b.e_step(b.start, b.full, 0.5)
            values.append(b.objective(generic, b.raw)[0])
            best = b.start
            for _ in range(steps):
                best = b.e_step(best, b.full, 1.0)
            slopes.append(b.objective(best, b.raw)[1])
        worst = max(worst, *(difference(v, values[0]) for v in values))
        worst = max(worst, *(worst_of(s, slopes[0]) for s in slopes))
    b = bench(ops, "t-svgp untied", "gaussian")
    state = b.e_step(b.start, b.full, 1.0)
    for scale in (0.4, 1.3, 2.0):
        new_theta = scaled_theta(b.problem.theta(b.model), scale, shift=0.1 * scale)
        value, _ = b.objective(state, tree_map(ops.asarray, unconstrain(new_theta)))
        exact = sgpr_bound(new_theta, "matern52", b.problem.X, b.y, 1e-6)
        worst = max(worst, difference(value, exact))
    return worst


def divergence_is_positive(ops: Ops, likelihoods: Names) -> float:
    """KL ≥ 0, and 0 at the prior: the largest |KL| at q = p, infinite where a KL is negative."""
    at_prior = []
    for method in VARIANTS:
        if "gaussian" not in likelihoods_of(method):
            continue
        b = bench(ops, method, "gaussian")
        if b.method.sampled_points:  # the KL is an estimate, which may be negative
            continue
        if b.method.starts_at_prior:
            at_prior.append(abs(b.kl(b.start)))
        if not b.kl(b.e_step(b.start, b.full, b.rate)) > 0.0:  # also for NaN
            return float("inf")
    return float(np.max(at_prior))  # np.max keeps NaN; the built-in max may not


def evidence_is_between_bounds(ops: Ops, likelihoods: Names) -> float:
    """Gaussian: SGPR's bound < log p(y) < Titsias's upper bound (2014) at any θ; equal at Z = X."""
    sgpr = SGPR()

    def lower_and_upper(b: Bench) -> list[float]:
        f, p = b.steps.factor(b.raw, b.prior, b.full), b.model.conditional(constrain(ops, b.raw))
        sums = sgpr.sums(ops, f, p, b.full.y)
        bounds = sgpr.collapsed_bound(ops, p, sums), sgpr.upper_bound(ops, p, sums)
        return [float(ops.to_numpy(x)) for x in bounds]

    b = bench(ops, "sgpr", "gaussian")
    theta = b.problem.theta(b.model)
    for kernel, noise in ((0.4, 1.0), (1.3, 1.0), (2.0, 1.0), (1.0, 0.2), (0.7, 3.0)):
        new_theta = scaled_theta(theta, kernel, noise)
        b.move(tree_map(ops.asarray, unconstrain(new_theta)))
        lower, upper = lower_and_upper(b)
        exact = gpr_bound(new_theta, "matern52", b.problem.X, b.y)
        if not min(exact - lower, upper - exact) >= 1e-3 * abs(exact):  # also where a bound is NaN
            return float("inf")
    problem = grid_problem()
    model = build_model("gaussian", "matern32", jitter=0.0)
    exact = gpr_bound(problem.theta(model), "matern32", problem.X, problem.y)
    at_data = lower_and_upper(Bench(ops, model, sgpr, problem))
    return max(difference(x, exact) for x in at_data)
