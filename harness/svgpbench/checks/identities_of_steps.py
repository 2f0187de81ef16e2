"""Identities of E-steps: two ways to the same q, and averages over minibatches."""

from __future__ import annotations

import dataclasses

import numpy as np

from svgpbench.checks.bench import Bench, Floats, Names, bench, posterior_of, worst_of
from svgpbench.checks.cases import VARIANTS, build_model, residual_variance_of
from svgpbench.checks.dense import sgpr_bound
from svgpbench.checks.matrix import SMALLEST_SLOPE, difference
from svgpbench.kernels import Theta, constrain
from svgpbench.methods.diagonal_precision import DiagonalState
from svgpbench.ops import Array, Ops, Tree
from svgpbench.training.blocks import Batch, data_term, factor_at, prior_at
from svgpbench.tree import leaves


def steps_agree(ops: Ops, likelihoods: Names) -> float:
    """t-SVGP ≡ q-SVGP natgrad, closed form and (not sampled) autodiff, over 50 minibatch steps."""
    return max(
        worst_of(reference, posterior_of(ops, name, likelihood))
        for likelihood in likelihoods
        for reference in [posterior_of(ops, "t-svgp tied-projected", likelihood)]
        for name in ("q-svgp natgrad", "q-svgp natgrad autodiff")
        # a sampled V̂ has its own slope in v, which is not −β/2
        if "autodiff" not in name or not build_model(likelihood, "se").likelihood.samples
    )


def one_step_reaches_sgpr(ops: Ops, likelihoods: Names) -> float:
    """Gaussian, rate 1, full batch: one step from q = p gives SGPR's q and bound, of any q(f|u)."""
    sgpr = bench(ops, "sgpr", "gaussian")
    q = sgpr.posterior(sgpr.e_step(sgpr.start, sgpr.full, 1.0))
    worst = 0.0
    for method in VARIANTS:
        if method.startswith(("t-svgp", "q-svgp natgrad", "sgpr")):
            b = bench(ops, method, "gaussian")
            state = b.e_step(b.start, b.full, 1.0)
            theta, residual = b.problem.theta(b.model), residual_variance_of(method)
            best = sgpr_bound(theta, "matern52", b.problem.X, b.y, 1e-6, residual)
            worst = max(worst, difference(b.ops.to_numpy(b.bound(state, b.full)), best))
            worst = max(worst, worst_of(b.posterior(state)[:2], q[:2]))
    return worst


def tyings_agree_at_fixed_theta(ops: Ops, likelihoods: Names) -> float:
    """Untied = tied = tied-projected at fixed θ, on minibatches with decay of all sites."""
    sums = []
    for likelihood in likelihoods:
        reference = posterior_of(ops, "t-svgp tied-projected", likelihood)
        sums += [worst_of(reference, posterior_of(ops, "t-svgp tied", likelihood))]
        b = bench(ops, "t-svgp untied", likelihood)
        state = b.minibatch_run(50)
        sums += [worst_of(reference, b.posterior(state))]
        # the sums rebuilt from all sites equal those of the state
        f = b.steps.factor(b.raw, b.prior, b.full)
        p = b.model.conditional(constrain(ops, b.raw))
        rebuilt = b.method.state_at(ops, f, p, b.method.invariant(ops, b.prior, p, state))
        sums += [difference(ops.to_numpy(rebuilt[i]), ops.to_numpy(state[i])) for i in range(2)]
    return max(sums)


def whitening_keeps_values(ops: Ops, likelihoods: Names) -> float:
    """Whitened = unwhitened in value at matched q; θ-gradients equal where ∂ELBO/∂q = 0."""
    worst = 0.0
    for likelihood in likelihoods:
        a = bench(ops, "q-svgp natgrad", likelihood)
        b = bench(ops, "q-svgp natgrad unwhitened", likelihood)
        worst = max(
            worst, worst_of(a.posterior(a.minibatch_run(5)), b.posterior(b.minibatch_run(5)))
        )
    a, b = (bench(ops, m, "gaussian") for m in ("q-svgp natgrad", "q-svgp natgrad unwhitened"))
    best = [x.e_step(x.start, x.full, 1.0) for x in (a, b)]
    slopes = [x.objective(s, x.raw)[1] for x, s in zip((a, b), best, strict=True)]
    away = [x.objective(x.e_step(x.start, x.full, 0.5), x.raw)[1] for x in (a, b)]
    if worst_of(*away) < 1e-3:  # slopes equal everywhere would prove nothing
        return float("inf")
    return max(worst, worst_of(*slopes))


def minibatches_average(ops: Ops, likelihoods: Names) -> float:
    """The bound, its θ-gradient and the dual targets average to the full batch at fixed q."""
    worst = 0.0
    for likelihood in likelihoods:
        b = bench(ops, "t-svgp tied-projected", likelihood)
        state = b.minibatch_run(3)
        # disjoint and equal parts: their mean is the full batch exactly, not only in expectation
        parts = np.random.default_rng(0).permutation(b.n).reshape(3, -1)
        # if the likelihood samples, the parts use the noise of the full batch
        batches = [b.batch(rows)._replace(noise=b.full.noise) for rows in parts]
        bounds = [b.ops.to_numpy(b.bound(state, x)) for x in batches]
        bound = float(ops.to_numpy(b.bound(state, b.full)))
        worst = max(worst, difference(np.mean(bounds), bound))
        # a step of rate 1 is the dual target itself, which need not have a positive precision
        raw = dataclasses.replace(b.model.likelihood, negative_beta="raw")
        free = Bench(ops, dataclasses.replace(b.model, likelihood=raw), b.method, b.problem)
        targets = [free.e_step(state, x, 1.0) for x in batches]
        full_target = free.e_step(state, b.full, 1.0)
        for i in range(2):
            mean = np.mean([ops.to_numpy(t[i]) for t in targets], axis=0)
            worst = max(worst, difference(mean, ops.to_numpy(full_target[i])))
        slopes = _mean_slope(b, state, batches), _mean_slope(b, state, [b.full])
        worst = max(worst, worst_of(*slopes, unit=SMALLEST_SLOPE * abs(bound)))
    return worst


def _mean_slope(b: Bench, state: Tree, batches: list[Batch]) -> list[Floats]:
    """Return the θ-gradient of the bound, averaged over batches."""

    def f(raw: Theta, batch: Batch, scale: Array) -> Array:
        theta = constrain(b.ops, raw)
        p = prior_at(b.ops, b.model, b.method, theta)
        f = factor_at(b.ops, b.model, b.method, theta, p, batch.X, batch.basis_points)
        return b.method.bound(b.ops, f, data_term(b.model, theta, batch, scale), state)

    slopes = []
    for x in batches:
        _, g = b.ops.value_and_grad(f)(b.raw, x, b.number(b.n / len(x.y)))
        slopes.append([b.ops.to_numpy(leaf) for leaf in leaves(g)])
    return [np.mean(group, axis=0) for group in zip(*slopes, strict=True)]


def exact_diagonal_step_is_stationary(ops: Ops, likelihoods: Names) -> float:
    """Diagonal precision: ∂ELBO/∂(μ, g) = 0 where `exact` stops, and not where `projected` does."""
    worst = 0.0
    for likelihood in ("gaussian", "bernoulli-logit"):
        for variant in ("projected-a", "projected-b"):
            b = bench(ops, f"diagonal-precision {variant}", likelihood)
            # `projected` must stop at another point, or the identity proves nothing
            if not 1e-3 <= _slope_of_q(b, _fixed_point(b)) < np.inf:
                return float("inf")
        b = bench(ops, "diagonal-precision exact", likelihood)
        worst = max(worst, _slope_of_q(b, _fixed_point(b)))
    return worst


def _fixed_point(b: Bench) -> DiagonalState:
    """Return the state after fifty E-steps of rate 1 on all data."""
    state: DiagonalState = b.start
    for _ in range(50):
        state = b.e_step(state, b.full, 1.0)
    return state


def _slope_of_q(b: Bench, state: DiagonalState) -> float:
    """Return the largest |∂ELBO/∂(μ, g)| on all data, by autodiff; infinite if it is NaN."""
    f = b.steps.factor(b.raw, b.prior, b.full)
    data = data_term(b.model, constrain(b.ops, b.raw), b.full, b.one)

    def bound(part: Tree) -> Array:
        moved_state = state._replace(mu=part[0], g=part[1])
        return b.method.bound(b.ops, f, data, moved_state)

    _, gradient = b.ops.value_and_grad(bound)((state.mu, state.g))
    slopes = [np.abs(b.ops.to_numpy(x)) for x in gradient]
    return max(float(np.max(np.nan_to_num(x, nan=np.inf, posinf=np.inf))) for x in slopes)
