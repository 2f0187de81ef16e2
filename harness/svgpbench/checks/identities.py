"""Identities of the mathematics that the numbers must satisfy, each under its stated conditions.

Most compare methods with one another on one backend; three compare with textbook bounds in plain NumPy.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from svgpbench.bases import Features
from svgpbench.checks.cases import (
    METHODS,
    Problem,
    build_model,
    likelihoods_of,
    small_problem,
)
from svgpbench.checks.dense import gpr_bound, sgpr_bound
from svgpbench.checks.evaluate import LEARN, RATE, step_by_step
from svgpbench.checks.matrix import SMALLEST_SLOPE, difference
from svgpbench.likelihoods import LIKELIHOODS
from svgpbench.methods import Method, build_method, elbo
from svgpbench.methods.diagonal_precision import DiagonalState
from svgpbench.model import Model, Theta, constrain, unconstrain
from svgpbench.ops import Array, Ops, Tree
from svgpbench.steps import (
    Batch,
    compile_steps,
    factor_at,
    learned,
    m_objective,
    prior_at,
)
from svgpbench.tree import leaves, rebuild, tree_map

Floats = npt.NDArray[np.float64]
Names = tuple[str, ...]


@dataclass(frozen=True)
class Identity:
    """One identity on one backend: how far its two sides are apart, and how far they may be."""

    number: int
    statement: str
    backend: str
    worst: float
    tolerance: float

    @property
    def ok(self) -> bool:
        """Whether the identity holds."""
        return self.worst <= self.tolerance


class Bench:
    """A model and a method at a θ on one backend, with the few moves that the identities make."""

    def __init__(self, ops: Ops, model: Model, method: Method, problem: Problem) -> None:
        self.ops, self.model, self.method, self.problem = ops, model, method, problem
        self.y = problem.targets(model.likelihood.support)
        self.n = len(problem.X)
        self.raw: Theta = tree_map(ops.asarray, unconstrain(problem.theta(model, method.basis)))
        self.steps = compile_steps(ops, model, method, 1, 1, LEARN)
        self.prior = self.steps.prior(self.raw)
        self.start = method.initial_state(ops, self.prior, model.latents, self.n)
        self.one = self.number(1.0)

    def number(self, x: float) -> Array:
        """A scalar on the device."""
        return self.ops.asarray(np.float64(x))

    def batch(self, rows: npt.NDArray[np.int64]) -> Batch:
        """Rows of the problem on the device."""
        asarray = self.ops.asarray
        drawn = Batch(asarray(self.problem.X[rows]), asarray(self.y[rows]), asarray(rows))
        return drawn._replace(**self.problem.draws(self.ops, self.model, self.method, rows))

    @property
    def full(self) -> Batch:
        """All rows."""
        return self.batch(np.arange(self.n))

    def e_step(self, state: Tree, batch: Batch, rate: float) -> Tree:
        """One E-step at the fixed θ."""
        f = self.steps.factor(self.raw, self.prior, batch)
        scale = self.number(self.n / len(batch.y))
        return self.steps.e_phase(self.raw, f, batch, state, self.number(rate), scale)

    def minibatch_run(self, steps: int) -> Tree:
        """E-steps over the problem's batches from q = p."""
        state = self.start
        for rows in self.problem.batches[:steps]:
            state = self.e_step(state, self.batch(rows), RATE)
        return state

    def posterior(self, state: Tree) -> list[Floats]:
        """Mean and covariance of q(u), and the full-data bound."""
        ops = self.ops
        mean, covariance = self.method.posterior(
            ops, self.prior, self.method.factorise(ops, self.prior, state)
        )
        return [ops.to_numpy(x) for x in (mean, covariance, self.bound(state, self.full))]

    def bound(self, state: Tree, batch: Batch) -> Array:
        """The bound, or its minibatch estimate."""
        f = self.steps.factor(self.raw, self.prior, batch)
        scale = self.number(self.n / len(batch.y))
        return self.steps.bound(self.raw, f, batch, state, scale)

    def kl(self, state: Tree) -> float:
        """KL[q(u) ‖ p(u)]."""
        f = self.steps.factor(self.raw, self.prior, self.full)
        q = self.method.factorise(self.ops, f, state)
        return float(self.ops.to_numpy(self.method.kl(self.ops, f, q)))

    def marginals(self, state: Tree) -> list[Floats]:
        """Mean and variance of q(f) at all rows."""
        f = self.steps.factor(self.raw, self.prior, self.full)
        q = self.method.factorise(self.ops, f, state)
        return [self.ops.to_numpy(x) for x in self.method.marginals(self.ops, f, q)]

    def objective(self, state: Tree, at: Theta) -> tuple[float, list[Floats]]:
        """M-step objective and its θ-gradient at raw θ `at`, q held as the method says."""
        ops = self.ops
        likelihood = self.model.conditional(constrain(ops, self.raw))
        held = self.method.hold(ops, self.prior, likelihood, state)

        def f(part: Tree) -> Array:
            moved = at._replace(**dict(zip(LEARN, part, strict=True)))
            return m_objective(ops, self.model, self.method, moved, held, self.full, self.one)

        value, gradient = ops.value_and_grad(f)(learned(at, LEARN))
        return float(ops.to_numpy(value)), [ops.to_numpy(g) for g in leaves(gradient)]


def _bench(ops: Ops, method: str, likelihood: str, *, jitter: float = 1e-6) -> Bench:
    model = build_model(likelihood, "matern52", jitter=jitter)
    name, options = METHODS[method]
    return Bench(ops, model, build_method(name, options), small_problem())


def _worst(a: list[Floats], b: list[Floats], *, unit: float = 0.0) -> float:
    return max(difference(x, y, unit=unit) for x, y in zip(a, b, strict=True))


def steps_agree(ops: Ops, likelihoods: Names) -> float:
    """1: t-SVGP ≡ q-SVGP natgrad, closed form and (not sampled) autodiff, over 50 minibatch steps."""
    return max(
        _worst(reference, _posterior_of(ops, name, likelihood))
        for likelihood in likelihoods
        for reference in [_posterior_of(ops, "t-svgp tied-projected", likelihood)]
        for name in ("q-svgp natgrad", "q-svgp natgrad autodiff")
        # a sampled V̂ has its own slope in v, which is not −β/2
        if "autodiff" not in name or not build_model(likelihood, "se").likelihood.samples
    )


def _posterior_of(ops: Ops, method: str, likelihood: str) -> list[Floats]:
    b = _bench(ops, method, likelihood)
    return b.posterior(b.minibatch_run(50))


def tyings_agree_at_fixed_theta(ops: Ops, likelihoods: Names) -> float:
    """5: untied = tied = tied-projected at fixed θ, on minibatches with decay of all sites."""
    sums = []
    for likelihood in likelihoods:
        reference = _posterior_of(ops, "t-svgp tied-projected", likelihood)
        sums += [_worst(reference, _posterior_of(ops, "t-svgp tied", likelihood))]
        b = _bench(ops, "t-svgp untied", likelihood)
        state = b.minibatch_run(50)
        sums += [_worst(reference, b.posterior(state))]
        # and the sums rebuilt from every site are the state's own
        f = b.steps.factor(b.raw, b.prior, b.full)
        p = b.model.conditional(constrain(ops, b.raw))
        rebuilt = b.method.tie(ops, f, p, b.method.hold(ops, b.prior, p, state))
        sums += [difference(ops.to_numpy(rebuilt[i]), ops.to_numpy(state[i])) for i in range(2)]
    return max(sums)


def whitening_keeps_values(ops: Ops, likelihoods: Names) -> float:
    """7: whitened = unwhitened in value at matched q; θ-gradients equal where ∂ELBO/∂q = 0."""
    worst = 0.0
    for likelihood in likelihoods:
        a = _bench(ops, "q-svgp natgrad", likelihood)
        b = _bench(ops, "q-svgp natgrad unwhitened", likelihood)
        worst = max(worst, _worst(a.posterior(a.minibatch_run(5)), b.posterior(b.minibatch_run(5))))
    a, b = (_bench(ops, m, "gaussian") for m in ("q-svgp natgrad", "q-svgp natgrad unwhitened"))
    best = [x.e_step(x.start, x.full, 1.0) for x in (a, b)]
    slopes = [x.objective(s, x.raw)[1] for x, s in zip((a, b), best, strict=True)]
    away = [x.objective(x.e_step(x.start, x.full, 0.5), x.raw)[1] for x in (a, b)]
    if _worst(*away) < 1e-3:  # equal everywhere would prove nothing
        return float("inf")
    return max(worst, _worst(*slopes))


def minibatches_average(ops: Ops, likelihoods: Names) -> float:
    """11: bound, its θ-gradient and the dual targets average to the full batch at fixed q."""
    worst = 0.0
    for likelihood in likelihoods:
        b = _bench(ops, "t-svgp tied-projected", likelihood)
        state = b.minibatch_run(3)
        parts = np.random.default_rng(0).permutation(b.n).reshape(3, -1)
        # where the likelihood samples, the parts share the noise of the whole
        batches = [b.batch(rows)._replace(noise=b.full.noise) for rows in parts]
        bounds = [b.ops.to_numpy(b.bound(state, x)) for x in batches]
        bound = float(ops.to_numpy(b.bound(state, b.full)))
        worst = max(worst, difference(np.mean(bounds), bound))
        # a step of rate 1 is the dual target itself, which need not have a positive precision
        raw = dataclasses.replace(b.model.likelihood, negative_beta="raw")
        free = Bench(ops, dataclasses.replace(b.model, likelihood=raw), b.method, b.problem)
        targets = [free.e_step(state, x, 1.0) for x in batches]
        whole = free.e_step(state, b.full, 1.0)
        for i in range(2):
            mean = np.mean([ops.to_numpy(t[i]) for t in targets], axis=0)
            worst = max(worst, difference(mean, ops.to_numpy(whole[i])))
        slopes = _mean_slope(b, state, batches), _mean_slope(b, state, [b.full])
        worst = max(worst, _worst(*slopes, unit=SMALLEST_SLOPE * abs(bound)))
    return worst


def _mean_slope(b: Bench, state: Tree, batches: list[Batch]) -> list[Floats]:
    def f(raw: Theta, batch: Batch, scale: Array) -> Array:
        theta = constrain(b.ops, raw)
        p = prior_at(b.ops, b.model, b.method, theta)
        f = factor_at(b.ops, b.model, b.method, theta, p, batch.X, batch.rows)
        likelihood = b.model.conditional(theta, batch.noise)
        return elbo(b.ops, b.method, f, likelihood, batch.y, state, scale)

    slopes = []
    for x in batches:
        _, g = b.ops.value_and_grad(f)(b.raw, x, b.number(b.n / len(x.y)))
        slopes.append([b.ops.to_numpy(leaf) for leaf in leaves(g)])
    return [np.mean(group, axis=0) for group in zip(*slopes, strict=True)]


def coupled_inside_decoupled(ops: Ops, likelihoods: Names) -> float:
    """6: ORTH without γ, HYBRID at a = 0, DECOUPLED with α = β, a = K⁻¹m, B = S⁻¹ − K⁻¹: the coupled q."""
    empty = dataclasses.replace(small_problem(), gamma=small_problem().gamma[:0])
    shared = dataclasses.replace(small_problem(), gamma=small_problem().Z)
    worst = 0.0
    for likelihood in likelihoods:
        b = _bench(ops, "t-svgp tied-projected", likelihood)
        state = b.minibatch_run(5)
        m, S, _ = b.posterior(state)
        theirs = _said(b, state)
        o = Bench(ops, b.model, build_method("orth", {"coupled": "t-svgp"}), empty)
        worst = max(worst, _worst(_said(o, o.minibatch_run(5)), theirs))
        h = Bench(ops, b.model, build_method("hybrid", {"coupled": "t-svgp"}), b.problem)
        worst = max(worst, _worst(_said(h, h.start._replace(coupled=state)), theirs))
        K = ops.to_numpy(b.prior.Kuu)
        B = np.linalg.inv(S) - np.linalg.inv(K)
        if np.linalg.eigvalsh(B).min() <= 0.0:  # DECOUPLED has no such B
            if b.model.likelihood.log_concave:
                return float("inf")
            continue
        q = (np.linalg.solve(K, m[..., None])[..., 0], np.linalg.cholesky(B))
        d = Bench(ops, b.model, build_method("decoupled", {}), shared)
        same = d.start._replace(q=rebuild(d.start.q, iter([ops.asarray(x) for x in q])))
        worst = max(worst, _worst(_said(d, same), theirs))
    return worst


def _said(b: Bench, state: Tree) -> list[Floats]:
    """Bound, KL and marginals at all rows."""
    bound = b.ops.to_numpy(b.bound(state, b.full))
    return [bound, np.asarray(b.kl(state)), *b.marginals(state)]


def divergence_is_positive(ops: Ops, likelihoods: Names) -> float:
    """12: KL ≥ 0, and 0 at the prior: the largest |KL| at q = p, infinite where a KL is negative."""
    at_prior = []
    for method in METHODS:
        if "gaussian" not in likelihoods_of(method):
            continue
        b = _bench(ops, method, "gaussian")
        if b.method.sampled_rows:  # an estimate, which may be negative
            continue
        if b.method.starts_at_prior:
            at_prior.append(abs(b.kl(b.start)))
        rate = 0.02 if b.method.first_order else RATE
        if b.kl(b.e_step(b.start, b.full, rate)) <= 0.0:
            return float("inf")
    return max(at_prior)


def one_step_reaches_sgpr(ops: Ops, likelihoods: Names) -> float:
    """2: Gaussian, rate 1, full batch: one step from q = p gives SGPR's q and bound."""
    sgpr = _bench(ops, "sgpr", "gaussian")
    q = sgpr.posterior(sgpr.e_step(sgpr.start, sgpr.full, 1.0))
    worst = 0.0
    for method in METHODS:
        if method.startswith(("t-svgp", "q-svgp natgrad", "sgpr")):
            b = _bench(ops, method, "gaussian")
            state = b.e_step(b.start, b.full, 1.0)
            best = sgpr_bound(b.problem.theta(b.model), "matern52", b.problem.X, b.y, 1e-6)
            worst = max(worst, difference(b.ops.to_numpy(b.bound(state, b.full)), best))
            worst = max(worst, _worst(b.posterior(state), q))
    return worst


def inducing_at_data_gives_gpr(ops: Ops, likelihoods: Names) -> float:
    """3: Z = X, Gaussian, no jitter, X well spaced: t-SVGP and SGPR have GPR's log p(y)."""
    grid = np.stack(np.meshgrid(*[np.linspace(-2, 2, 3)] * 3), axis=-1).reshape(-1, 3)
    y = np.sin(grid.sum(axis=1))
    problem = dataclasses.replace(small_problem(), X=grid, y=y, Z=grid)
    model = build_model("gaussian", "matern32", jitter=0.0)
    exact = gpr_bound(problem.theta(model), "matern32", grid, y)
    worst = 0.0
    for name in ("gpr", "sgpr", "t-svgp"):
        b = Bench(ops, model, build_method(name, {}), problem)
        state = b.e_step(b.start, b.full, 1.0)
        worst = max(worst, difference(ops.to_numpy(b.bound(state, b.full)), exact))
    return worst


def sites_of_data_stay_exact(ops: Ops, likelihoods: Names) -> float:
    """4: t-VGP, Gaussian: its M-step objective is log p(y) at every kernel θ and σ²."""
    worst = 0.0
    for method in ("t-vgp", "t-vgp negative sites"):
        b = _bench(ops, method, "gaussian")
        state = b.e_step(b.start, b.full, 1.0)
        theta = b.problem.theta(b.model, "data")
        for kernel, noise in ((0.4, 1.0), (1.3, 1.0), (2.0, 1.0), (1.0, 0.2), (0.7, 3.0)):
            moved = theta._replace(
                kernel=tree_map(lambda x, s=kernel: x * s, theta.kernel),
                likelihood=tree_map(lambda x, s=noise: x * s, theta.likelihood),
            )
            value, _ = b.objective(state, tree_map(ops.asarray, unconstrain(moved)))
            exact = gpr_bound(moved, "matern52", b.problem.X, b.y)
            worst = max(worst, difference(value, exact))
    return worst


def objectives_meet(ops: Ops, likelihoods: Names) -> float:
    """9: tyings meet at θ_t, in slope too at the best q; `untied`, Gaussian, is SGPR at every θ."""
    worst = 0.0
    tyings = [m for m in METHODS if m.startswith("t-svgp")]
    for likelihood, steps in (("gaussian", 1), ("bernoulli-logit", 60)):
        values, slopes = [], []
        for method in tyings:
            b = _bench(ops, method, likelihood)
            generic = b.e_step(b.start, b.full, 0.5)
            values.append(b.objective(generic, b.raw)[0])
            best = b.start
            for _ in range(steps):
                best = b.e_step(best, b.full, 1.0)
            slopes.append(b.objective(best, b.raw)[1])
        worst = max(worst, *(difference(v, values[0]) for v in values))
        worst = max(worst, *(_worst(s, slopes[0]) for s in slopes))
    b = _bench(ops, "t-svgp untied", "gaussian")
    state = b.e_step(b.start, b.full, 1.0)
    for scale in (0.4, 1.3, 2.0):
        theta = b.problem.theta(b.model)
        moved = theta._replace(
            kernel=tree_map(lambda x, s=scale: x * s, theta.kernel),
            inducing=theta.inducing + 0.1 * scale,
        )
        value, _ = b.objective(state, tree_map(ops.asarray, unconstrain(moved)))
        exact = sgpr_bound(moved, "matern52", b.problem.X, b.y, 1e-6)
        worst = max(worst, difference(value, exact))
    return worst


def exact_diagonal_step_is_stationary(ops: Ops, likelihoods: Names) -> float:
    """8: diagonal precision: ∂ELBO/∂(μ, g) = 0 where `exact` stops, and not where `projected` does."""
    worst = 0.0
    for likelihood in ("gaussian", "bernoulli-logit"):
        for variant in ("projected-a", "projected-b"):
            b = _bench(ops, f"diagonal-precision {variant}", likelihood)
            if (
                _slope_of_q(b, _settled(b)) < 1e-3
            ):  # a step that stops there too would prove nothing
                return float("inf")
        b = _bench(ops, "diagonal-precision exact", likelihood)
        worst = max(worst, _slope_of_q(b, _settled(b)))
    return worst


def _settled(b: Bench) -> DiagonalState:
    state: DiagonalState = b.start
    for _ in range(50):
        state = b.e_step(state, b.full, 1.0)
    return state


def _slope_of_q(b: Bench, state: DiagonalState) -> float:
    """Largest |∂ELBO/∂(μ, g)| on all data, by autodiff."""
    f = b.steps.factor(b.raw, b.prior, b.full)
    likelihood = b.model.conditional(constrain(b.ops, b.raw))

    def bound(part: Tree) -> Array:
        at = state._replace(mu=part[0], g=part[1])
        return elbo(b.ops, b.method, f, likelihood, b.full.y, at, b.one)

    _, gradient = b.ops.value_and_grad(bound)((state.mu, state.g))
    return max(float(np.max(np.abs(b.ops.to_numpy(x)))) for x in gradient)


class WithoutWidth(Problem):
    """The problem with inducing functions of width 0 for its inducing inputs."""

    def inducing(self, basis: str) -> Features:
        return Features(self.Z, np.zeros_like(self.Z))


def functions_without_width_are_points(ops: Ops, likelihoods: Names) -> float:
    """10: generalised SE of width 0 = SE in q(u), bound and θ-gradient; of any width, var φ = var f."""
    model, method = build_model("gaussian", "se"), build_method("t-svgp", {})
    problem = small_problem()
    points, functions = (
        Bench(ops, model, method, p) for p in (problem, WithoutWidth(**vars(problem)))
    )
    states = [b.minibatch_run(5) for b in (points, functions)]
    worst = _worst(points.posterior(states[0]), functions.posterior(states[1]))
    *slope, in_centres, in_widths = functions.objective(states[1], functions.raw)[1]
    if np.any(in_widths):  # widths enter squared
        return float("inf")
    worst = max(worst, _worst(points.objective(states[0], points.raw)[1], [*slope, in_centres]))
    cov = model.covariance(ops, constrain(ops, points.raw))
    wide = tree_map(ops.asarray, Features(problem.Z, np.abs(problem.Z)))
    variances = [ops.diagonal(cov.cross(wide, wide)), cov.diagonal(wide)]
    return max(worst, difference(*(ops.to_numpy(x) for x in variances)))


def growing_keeps_q(ops: Ops, likelihoods: Names) -> float:
    """13: growing the basis leaves q(f), KL and bound as they are (t-SVGP of each tying, q-SVGP)."""
    worst = 0.0
    for method, (name, options) in METHODS.items():
        built = build_method(name, options)
        if built.basis == "inducing" and not built.refuses_growth():
            b = _bench(ops, method, "gaussian")
            worst = max(worst, growth_gap(b, b.problem.gamma))
    return worst


def growth_gap(b: Bench, more: Tree) -> float:
    """How far marginals, KL and bound move where a general state gets the basis points `more`."""
    rate = 0.02 if b.method.first_order else RATE
    state = b.e_step(b.e_step(b.start, b.full, rate), b.full, rate)
    larger = tree_map(
        lambda z, z_more: b.ops.concat([z, b.ops.asarray(z_more)], axis=0), b.raw.inducing, more
    )
    raw = b.raw._replace(inducing=larger)
    prior = b.steps.prior(raw)
    grown = b.method.grow(b.ops, prior, state)
    return _worst(_of_f(b, b.raw, b.prior, state), _of_f(b, raw, prior, grown))


def _of_f(b: Bench, raw: Theta, prior: Any, state: Tree) -> list[Floats]:
    f = b.steps.factor(raw, prior, b.full)
    q = b.method.factorise(b.ops, f, state)
    values = (*b.method.marginals(b.ops, f, q), b.method.kl(b.ops, f, q))
    return [b.ops.to_numpy(x) for x in (*values, b.steps.bound(raw, f, b.full, state, b.one))]


IDENTITIES: dict[int, tuple[Callable[[Ops, Names], float], float]] = {
    1: (steps_agree, 1e-8),
    2: (one_step_reaches_sgpr, 1e-8),
    3: (inducing_at_data_gives_gpr, 1e-8),
    4: (sites_of_data_stay_exact, 1e-8),
    5: (tyings_agree_at_fixed_theta, 1e-8),
    6: (coupled_inside_decoupled, 1e-8),
    7: (whitening_keeps_values, 1e-8),
    8: (exact_diagonal_step_is_stationary, 1e-8),
    9: (objectives_meet, 1e-8),
    10: (functions_without_width_are_points, 1e-10),
    11: (minibatches_average, 1e-10),
    12: (divergence_is_positive, 1e-10),
    13: (growing_keeps_q, 1e-10),
}
"""By number, with the tolerance of each."""


def statement(number: int) -> str:
    """What an identity says, in a line."""
    return " ".join((IDENTITIES[number][0].__doc__ or "").split(": ", 1)[1].split())


def identities(ops: Ops, likelihoods: Names = tuple(LIKELIHOODS)) -> Iterator[Identity]:
    """Every identity on a float64 backend, step by step: they are about the mathematics.

    `likelihoods` are those over which an identity runs that is not about one of its own.
    """
    ops = step_by_step(ops)
    for number, (check, tolerance) in IDENTITIES.items():
        worst = check(ops, likelihoods)
        yield Identity(number, statement(number), ops.name, worst, tolerance)
