"""Identities of bases: nested families, inducing functions, and growth of the basis."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from svgpbench.checks.bench import Bench, Floats, Names, bench, bound_kl_and_marginals, worst_of
from svgpbench.checks.cases import USUAL, VARIANTS, SmallProblem, build_model, small_problem
from svgpbench.checks.matrix import difference
from svgpbench.kernels import Theta, constrain
from svgpbench.kernels.bases import Features
from svgpbench.methods import build_method
from svgpbench.ops import Ops, Tree
from svgpbench.tree import rebuild, tree_map


def coupled_inside_decoupled(ops: Ops, likelihoods: Names) -> float:
    """ORTH without γ, HYBRID at a = 0, DECOUPLED with α = β, a = K⁻¹m, B = S⁻¹ − K⁻¹: the coupled q."""
    empty = dataclasses.replace(small_problem(), gamma=small_problem().gamma[:0])
    shared = dataclasses.replace(small_problem(), gamma=small_problem().Z)
    worst = 0.0
    for likelihood in likelihoods:
        b = bench(ops, "t-svgp tied-projected", likelihood)
        state = b.minibatch_run(5)
        m, S, _ = b.posterior(state)
        expected = bound_kl_and_marginals(b, state)
        o = Bench(ops, b.model, build_method("orth", {"coupled": "t-svgp"}), empty)
        worst = max(worst, worst_of(bound_kl_and_marginals(o, o.minibatch_run(5)), expected))
        h = Bench(ops, b.model, build_method("hybrid", {"coupled": "t-svgp"}), b.problem)
        worst = max(
            worst, worst_of(bound_kl_and_marginals(h, h.start._replace(coupled=state)), expected)
        )
        K = ops.to_numpy(b.prior.Kuu)
        B = np.linalg.inv(S) - np.linalg.inv(K)
        if np.linalg.eigvalsh(B).min() <= 0.0:  # DECOUPLED has no such B
            # β ≥ 0 keeps S ⪯ K: there is such a B unless the method is wrong
            if b.model.likelihood.log_concave:
                return float("inf")
            continue
        q = (np.linalg.solve(K, m[..., None])[..., 0], np.linalg.cholesky(B))
        d = Bench(ops, b.model, build_method("decoupled", {}), shared)
        equal_state = d.start._replace(q=rebuild(d.start.q, iter([ops.asarray(x) for x in q])))
        worst = max(worst, worst_of(bound_kl_and_marginals(d, equal_state), expected))
    return worst


class WithoutWidth(SmallProblem):
    """A problem whose inducing inputs are inducing functions of width 0."""

    def inducing(self, basis: str) -> Features:
        return Features(self.Z, np.zeros_like(self.Z))


def functions_without_width_are_points(ops: Ops, likelihoods: Names) -> float:
    """Generalised SE of width 0 = SE in q(u), bound and θ-gradient; of any width, var φ = var f."""
    model, method = build_model("gaussian", "se"), build_method("t-svgp", {})
    problem = small_problem()
    points, functions = (
        Bench(ops, model, method, p) for p in (problem, WithoutWidth(**vars(problem)))
    )
    states = [b.minibatch_run(5) for b in (points, functions)]
    worst = worst_of(points.posterior(states[0]), functions.posterior(states[1]))
    *slope, in_centres, in_widths = functions.objective(states[1], functions.raw)[1]
    if np.any(in_widths):  # widths enter squared: the gradient at 0 is 0
        return float("inf")
    worst = max(worst, worst_of(points.objective(states[0], points.raw)[1], [*slope, in_centres]))
    cov = model.covariance(ops, constrain(ops, points.raw))
    wide = tree_map(ops.asarray, Features(problem.Z, np.abs(problem.Z)))
    # `cross`, not `square`: neither side has jitter
    variances = [ops.diagonal(cov.cross(wide, wide)), cov.diagonal(wide)]
    return max(worst, difference(*(ops.to_numpy(x) for x in variances)))


def growing_keeps_q(ops: Ops, likelihoods: Names) -> float:
    """Growing the basis leaves q(f), KL and bound as they are (t-SVGP of each tying, q-SVGP)."""
    worst = 0.0
    for method in USUAL:  # a narrower q(f|u) changes with the basis, and growth changes q(f)
        built = build_method(*VARIANTS[method])
        if built.basis == "inducing" and not built.refuses_growth():
            b = bench(ops, method, "gaussian")
            worst = max(worst, growth_gap(b, b.problem.gamma))
    return worst


def growth_gap(b: Bench, more: Tree) -> float:
    """Return the largest change of marginals, KL and bound when the basis grows by `more`.

    The state is that after two E-steps on all data.
    """
    state = b.e_step(b.e_step(b.start, b.full, b.rate), b.full, b.rate)
    larger = tree_map(
        lambda z, z_more: b.ops.concat([z, b.ops.asarray(z_more)], axis=0), b.raw.inducing, more
    )
    raw = b.raw._replace(inducing=larger)
    prior = b.steps.prior(raw)
    grown = b.method.grow(b.ops, prior, state)
    before = _marginals_kl_and_bound(b, b.raw, b.prior, state)
    return worst_of(before, _marginals_kl_and_bound(b, raw, prior, grown))


def _marginals_kl_and_bound(b: Bench, raw: Theta, prior: Any, state: Tree) -> list[Floats]:
    f = b.steps.factor(raw, prior, b.full)
    q = b.method.factorise(b.ops, f, state)
    values = (*b.method.marginals(b.ops, f, q), b.method.kl(b.ops, f, q))
    return [b.ops.to_numpy(x) for x in (*values, b.steps.bound(raw, f, b.full, state, b.one))]
