"""Properties that every method must have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from svgpbench.backends import load_backend
from svgpbench.checks.bench import Bench
from svgpbench.checks.cases import MatrixCase, small_problem
from svgpbench.checks.evaluate import REFERENCE, evaluate
from svgpbench.checks.identities_of_bases import growth_gap
from svgpbench.checks.kit.programs import CountedPrograms
from svgpbench.checks.matrix import compare
from svgpbench.config import LikelihoodConfig
from svgpbench.likelihoods import build_likelihood, likelihoods
from svgpbench.methods.method import CoupledMethod, MethodInfo
from svgpbench.ops import Ops, Tree
from svgpbench.plugins import METHODS, load
from svgpbench.training.blocks import Batch
from svgpbench.tree import leaves, named_leaves, rebuild, tree_map


def bench_of(ops: Ops, case: MatrixCase) -> Bench:
    """Return the bench of a case on the small problem."""
    return Bench(ops, *case.build(), small_problem())


def host(ops: Ops, tree: Tree) -> list[Any]:
    """Return the leaves as NumPy arrays."""
    return [np.array(ops.to_numpy(x)) for x in leaves(tree)]


def stepped(b: Bench, steps: int = 3) -> Tree:
    """Return the state after E-steps on minibatches, or on all data for a collapsed method."""
    state, rows = b.start, b.problem.batches_of(b.method)
    for turn in range(steps):
        state = b.e_step(state, b.batch(rows[turn]), b.rate)
    return state


def bound(b: Bench, state: Tree, batch: Batch) -> float:
    """Return the bound on a batch."""
    return float(b.ops.to_numpy(b.bound(state, batch)))


def test_it_says_what_it_is_and_what_it_refuses(variant: MatrixCase) -> None:
    _, method = variant.build()
    cls = load(METHODS, method.name)
    assert (cls.__doc__ or "").strip()
    assert isinstance(cls.version, int) and cls.version >= 1
    assert isinstance(cls.info, MethodInfo) and cls.info.variants
    assert method.basis in ("inducing", "data", "decoupled")
    for name in likelihoods():
        assert isinstance(method.refuses(build_likelihood(LikelihoodConfig(name=name))), str)
    assert hash(method) == hash(variant.build()[1]) and method == variant.build()[1]


def test_it_starts_at_the_prior_and_its_kl_is_positive(typed: Ops, variant: MatrixCase) -> None:
    b = bench_of(typed, variant)
    unit = 1e-9 if typed.dtype == "float64" else 1e-3
    if b.method.starts_at_prior and not b.method.sampled_points:
        assert abs(b.kl(b.start)) <= unit
    state = stepped(b)
    assert all(np.all(np.isfinite(x)) for x in host(typed, state))
    if not b.method.sampled_points:  # sampled points give an estimate, of either sign
        assert b.kl(state) >= -unit


def test_marginals_and_kl_are_those_of_its_posterior(typed: Ops, variant: MatrixCase) -> None:
    """With m and S of q(u), W = L⁻¹K_uf: μ = Wᵀ(L⁻¹m), v = κ − wᵀw + wᵀ(L⁻¹SL⁻ᵀ)w, and KL[q ‖ N(0, LLᵀ)]."""
    b = bench_of(typed, variant)
    if not isinstance(b.method, CoupledMethod):
        pytest.skip("asked of a q of one set of inducing variables")
    state = stepped(b)
    m, S, _ = (np.asarray(x, dtype=np.float64) for x in b.posterior(state))
    f = b.steps.factor(b.raw, b.prior, b.full)
    L, W, kff = (np.asarray(typed.to_numpy(x), dtype=np.float64) for x in (b.prior.L, f.W, f.kff))
    a = np.linalg.solve(L, m[..., None])[..., 0]
    B = np.linalg.solve(L, np.swapaxes(np.linalg.solve(L, S), -1, -2))
    mu = np.einsum("pmb,pm->pb", W, a)
    v = kff + np.einsum("pmb,pmk,pkb->pb", W, B - np.eye(B.shape[-1]), W)
    unit = 1e-8 if typed.dtype == "float64" else 1e-2
    got_mu, got_v = b.marginals(state)
    np.testing.assert_allclose(got_mu, mu, rtol=0, atol=unit * np.abs(mu).max())
    np.testing.assert_allclose(got_v, v, rtol=0, atol=unit * np.abs(kff).max())
    trace = np.trace(B, axis1=-2, axis2=-1) + np.square(a).sum(axis=-1)
    kl = 0.5 * (trace - B.shape[-1] - np.linalg.slogdet(B)[1]).sum()
    assert b.kl(state) == pytest.approx(kl, rel=unit, abs=unit * B.shape[-1])


def test_a_step_keeps_the_state_s_form_and_leaves_its_arguments_alone(
    typed: Ops, variant: MatrixCase
) -> None:
    b = bench_of(typed, variant)
    before = host(typed, b.start)
    after = b.e_step(b.start, b.batch(b.problem.batches_of(b.method)[0]), b.rate)
    assert [name for name, _ in named_leaves(after)] == [name for name, _ in named_leaves(b.start)]
    for old, new in zip(before, host(typed, after), strict=True):
        assert (new.shape, new.dtype) == (old.shape, old.dtype)
        assert new.dtype.kind != "f" or new.dtype == np.dtype(typed.dtype)
    for old, now in zip(before, host(typed, b.start), strict=True):
        np.testing.assert_array_equal(old, now)


def test_e_steps_on_all_data_raise_the_bound(ops: Ops, variant: MatrixCase) -> None:
    b = bench_of(ops, variant)
    state, full = b.start, b.full
    for _ in range(20):
        state = b.e_step(state, full, b.rate)
    reached, start = bound(b, state, full), bound(b, b.start, full)
    hint = (
        "" if b.method.first_order else "; set first_order = True, if its E-step is a gradient step"
    )
    assert reached > start or (b.method.collapsed and reached >= start), (
        f"20 E-steps at rate {b.rate} take the bound from {start:.6g} to {reached:.6g}{hint}"
    )


def test_a_step_at_scale_2_is_a_step_on_the_same_data_twice(ops: Ops, variant: MatrixCase) -> None:
    """The data term of a batch of b of n rows is multiplied by n/b."""
    b = bench_of(ops, variant)
    if b.method.collapsed or any(x.shape[-1:] == (b.n,) for x in host(ops, b.start)):
        pytest.skip("asked of methods that take minibatches and keep nothing of a row")
    rows = b.problem.batches[0]
    once = b.batch(rows)
    random = {name: getattr(once, name) for name in ("noise", "basis_points")}
    twice = b.batch(np.concatenate([rows, rows]))._replace(**random)
    state, ends = stepped(b), []
    for batch, scale in ((once, 2.0), (twice, 1.0)):
        f = b.steps.factor(b.raw, b.prior, batch)
        after = b.steps.e_phase(b.raw, f, batch, state, b.number(b.rate), b.number(scale))
        ends.append(host(ops, after))
    unit = 1e-9 if ops.dtype == "float64" else 1e-3
    for x, y in zip(*ends, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=unit * max(1.0, np.abs(y).max(initial=0.0)))


def test_e_steps_end_where_the_bound_is_stationary(ops: Ops, variant: MatrixCase) -> None:
    """The bound's gradient where steps end is at most 1e-6 of the gradient at the start.

    Entries of the state that are 0 at the end are no parameters, as above the diagonal of a factor.
    """
    b = bench_of(ops, variant)
    if not type(ops).capabilities.autodiff or ops.dtype != "float64":
        pytest.skip(f"backend {ops.name!r} has no autodiff in float64")
    if not b.method.stationary or b.method.first_order or b.model.likelihood.samples:
        pytest.skip("its steps end elsewhere by design, or need thousands, or take draws")
    if not b.model.likelihood.log_concave:
        pytest.skip("a step is cut where the precision would not stay positive definite")
    full, state = b.full, b.start
    before = state
    for _ in range(100):
        before, state = state, b.e_step(state, full, b.rate)
    end = host(ops, state)
    moved = zip(end, host(ops, before), strict=True)
    if any(np.abs(x - y).max(initial=0.0) > 1e-8 * np.abs(x).max(initial=0.0) for x, y in moved):
        pytest.skip("its steps have not ended after 100")
    f = b.steps.factor(b.raw, b.prior, full)

    def largest_slope(q: Tree) -> float:
        _, slopes = ops.value_and_grad(lambda s: b.steps.bound(b.raw, f, full, s, b.one))(q)
        pairs = zip(host(ops, slopes), end, strict=True)
        return max(float(np.abs(g[x != 0.0]).max(initial=0.0)) for g, x in pairs)

    assert largest_slope(state) <= 1e-6 * max(1.0, largest_slope(b.start))


def test_the_same_steps_give_the_same_bits(typed: Ops, variant: MatrixCase) -> None:
    first, second = (host(typed, stepped(bench_of(typed, variant))) for _ in range(2))
    for x, y in zip(first, second, strict=True):
        np.testing.assert_array_equal(x, y)


def test_numbers_that_end_are_nan_and_raise_nothing(ops: Ops, variant: MatrixCase) -> None:
    b = bench_of(ops, variant)
    state = stepped(b, 1)
    spoiled = tree_map(lambda x: x * ops.asarray(np.float64(np.nan)), b.raw.inducing)
    raw = b.raw._replace(inducing=spoiled)
    prior = b.steps.prior(raw)
    f = b.steps.factor(raw, prior, b.full)
    after = b.steps.e_phase(raw, f, b.full, state, b.number(b.rate), b.one)
    value = float(ops.to_numpy(b.steps.bound(raw, f, b.full, after, b.one)))
    assert not np.isfinite(value)


def test_m_steps_go_up_the_gradient_of_the_objective(ops: Ops, variant: MatrixCase) -> None:
    """Compare the slope along a direction in θ with a fourth-order finite difference."""
    if ops.dtype != "float64":
        pytest.skip(f"backend {ops.name!r} offers no float64, whose differences tell")
    b = bench_of(ops, variant)
    if not (type(ops).capabilities.autodiff or b.method.has_adjoint):
        pytest.skip(f"backend {ops.name!r} has no autodiff")
    state = stepped(b)
    rng = np.random.default_rng(0)
    moves = b.method.basis != "data"  # a basis of data points is not moved
    size = [1.0] * len(leaves(b.raw._replace(inducing=()))) + [float(moves)] * len(
        leaves(b.raw.inducing)
    )
    direction = [
        k * rng.standard_normal(x.shape) for k, x in zip(size, host(ops, b.raw), strict=True)
    ]

    def raw_at(h: float) -> Any:
        shifted = [ops.asarray(x + h * d) for x, d in zip(host(ops, b.raw), direction, strict=True)]
        return rebuild(b.raw, iter(shifted))

    def objective(h: float) -> float:
        return b.objective(state, raw_at(h))[0]

    value, slopes = b.objective(state, raw_at(0.0))
    got = sum(float(np.sum(g * d)) for g, d in zip(slopes, direction, strict=True))
    h = 1e-3
    expected = (8 * (objective(h) - objective(-h)) - (objective(2 * h) - objective(-2 * h))) / (
        12 * h
    )
    assert got == pytest.approx(expected, rel=1e-6, abs=1e-7 * abs(value))


def test_a_step_is_compiled_once(typed: Ops, variant: MatrixCase) -> None:
    b = bench_of(typed, variant)
    step = CountedPrograms(
        typed,
        lambda f, batch, state, rate: b.steps.e_phase(b.raw, f, batch, state, rate, b.one),
    )
    # arrays in rows, as steps return them: torch.compile makes one more program for a start that is a
    # view of one matrix for all latents, or a factor in columns
    start = tree_map(lambda x: typed.asarray(np.array(typed.to_numpy(x), order="C")), b.start)

    def three_steps() -> None:
        state = start
        for rows in b.problem.batches_of(b.method)[:3]:
            batch = b.batch(rows)
            f = b.steps.factor(b.raw, b.prior, batch)
            state = step(f, batch, state, b.number(b.rate))

    three_steps()
    if step.per_call[0] > 1:
        # the backend cuts the step into parts, such as the body of a loop, and compiles each where it is
        # first reached; the same three steps again reach no others
        step.per_call = [sum(step.per_call)]
        three_steps()
    step.assert_compiled_once()


def test_every_dtype_has_the_reference_s_numbers(typed: Ops, variant: MatrixCase) -> None:
    if typed.name == REFERENCE:
        pytest.skip("the reference is compared with itself by no one")
    case = MatrixCase(variant.method, variant.likelihood, variant.kernel, typed.dtype)
    arrays = {
        backend.name: evaluate(backend, *case.build(), small_problem(), "none")
        for backend in (load_backend(REFERENCE), typed)
    }
    assert [(x.group, x.array, x.worst) for x in compare(case, arrays, None) if not x.ok] == []


def test_a_larger_basis_keeps_q(ops: Ops, variant: MatrixCase) -> None:
    b = bench_of(ops, variant)
    if why := b.method.refuses_growth():
        pytest.skip(why)
    if ops.dtype != "float64" or b.method.basis != "inducing":
        pytest.skip("asked of inducing inputs in float64")
    if getattr(b.method, "residual_variance", "prior") != "prior":
        pytest.skip("a larger basis leaves less of f, so that a narrower q(f|u) is another")
    assert growth_gap(b, b.problem.gamma) <= 1e-10
