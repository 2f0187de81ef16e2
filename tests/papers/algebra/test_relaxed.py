"""R-SVGP: slopes of its E-step, the search for T, q against dense algebra, training beside L-SVGP."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from small_training import PROBLEM, trainer

from svgpbench.backends import load_backend
from svgpbench.checks.bench import Bench
from svgpbench.checks.cases import build_model
from svgpbench.errors import UserError
from svgpbench.methods import AnyMethod
from svgpbench.methods.diagonal_precision import DiagonalPrecision
from svgpbench.ops import Ops
from svgpbench.training.blocks import data_term
from svgpbench.training.em import Trained
from svgpbench.tree import leaves, tree_map
from svgpbench_papers.cortinovis2026.algebra import drawn, factor_of_inverse, gap
from svgpbench_papers.cortinovis2026.relaxed import (
    FIRST_FACTOR,
    Moved,
    RelaxedState,
    RelaxedSVGP,
    scaled_down,
)

Floats = npt.NDArray[np.float64]
NUMPY = load_backend("numpy")


def bench(ops: Ops = NUMPY, likelihood: str = "gaussian", **options: Any) -> Bench:
    return Bench(ops, build_model(likelihood, "matern52"), RelaxedSVGP(**options), PROBLEM)


def on(ops: Ops, state: RelaxedState) -> RelaxedState:
    return tree_map(lambda x: ops.asarray(np.array(x)), state)  # type: ignore[no-any-return]


@pytest.mark.parametrize("likelihood", ["gaussian", "heteroskedastic", "student-t"])
@pytest.mark.parametrize("precondition", [True, False])
def test_the_e_step_s_slope_is_that_of_the_bound_at_a_fixed_t(
    ops: Ops, likelihood: str, precondition: bool
) -> None:
    b = bench(ops, likelihood, precondition=precondition)
    # off the best T, where terms that cancel there do not
    state = on(ops, drawn(bench(likelihood=likelihood), seed=3, error=0.2))
    batch = b.batch(PROBLEM.batches[0])
    f, scale = b.steps.factor(b.raw, b.prior, batch), b.number(3.0)
    theta = tree_map(ops.asarray, PROBLEM.theta(b.model))
    data = data_term(b.model, theta, batch, scale)
    got = b.method.gradients(ops, f, data, state)

    def bound(moved: Moved) -> Any:
        return b.method.bound(ops, f, data, state._replace(moved=moved))

    _, wanted = ops.value_and_grad(bound)(state.moved)
    for ours, by_autodiff in zip(leaves(got), leaves(wanted), strict=True):
        x, y = ops.to_numpy(ours), ops.to_numpy(by_autodiff)
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-11 * np.abs(y).max())


def test_steps_on_b_end_within_the_tolerance_and_are_counted(ops: Ops) -> None:
    ends = {}
    for tolerance in (0.3, 1e-3, 1e-12):
        b = bench(ops, tolerance=tolerance, initial_s=0.05)
        K_s = np.array(ops.to_numpy(b.prior.K))[0] + 0.05 * np.eye(8)
        left = gap(K_s, np.array(ops.to_numpy(b.start.B))[0])
        assert left <= tolerance
        ends[tolerance] = float(ops.to_numpy(b.start.rounds)), left
    rounds = [x for x, _ in ends.values()]
    assert rounds == sorted(rounds) and rounds[0] >= 5
    assert rounds[2] <= rounds[0] + 7  # errors square: 0.3 to 1e-12 in seven steps
    assert ends[0.3][1] > 1e-3  # and not further


def test_no_step_is_taken_where_t_is_good_enough_and_no_more_than_allowed() -> None:
    b = bench(tolerance=0.01)
    f = b.steps.factor(b.raw, b.prior, b.full)
    again = b.method.with_inverse(NUMPY, f, b.start)
    np.testing.assert_array_equal(again.B, b.start.B)
    assert again.rounds == b.start.rounds
    left = gap(np.array(f.K)[0] + 1e-4 * np.eye(8), np.array(b.start.B)[0])
    for factor, steps in ((1.001, 0.0), (0.999, 1.0)):
        method = RelaxedSVGP(tolerance=factor * left)
        assert method.with_inverse(NUMPY, f, b.start).rounds == b.start.rounds + steps
    few = bench(most_rounds=3).start
    assert few.rounds == 3.0
    # from far below each step grows B by half, less a share of about λB²/3 = 1e-5
    assert np.max(few.B) == pytest.approx(1.5**3 * FIRST_FACTOR, rel=1e-4)


def test_the_log_linear_schedule_rises_to_one_in_ten_steps() -> None:
    method = RelaxedSVGP(schedule="log-linear")
    rates = [float(method.rate_on_factor(NUMPY, NUMPY.asarray(float(k)))) for k in range(12)]
    np.testing.assert_allclose(rates[:10], np.logspace(-5.0, 0.0, 10), rtol=1e-12)
    assert rates[10:] == [1.0, 1.0]
    assert RelaxedSVGP().rate_on_factor(NUMPY, NUMPY.asarray(0.0)) == 1.0
    # of 12 steps the first nine hardly move B
    slow, quick = (bench(schedule=x, most_rounds=12).start for x in ("log-linear", "constant"))
    assert np.max(slow.B) < 10 * FIRST_FACTOR < np.max(quick.B)


def test_of_several_latents_the_worst_decides(ops: Ops) -> None:
    b = bench(ops, "softmax", tolerance=1e-10)
    raw_s = np.log(np.expm1(np.array([1e-3, 0.1, 10.0])[:, None] * np.ones((3, 8))))
    state = b.start._replace(
        moved=b.start.moved._replace(raw_s=ops.asarray(raw_s)),
        B=ops.asarray(FIRST_FACTOR * np.broadcast_to(np.eye(8), (3, 8, 8))),
    )
    B = np.array(ops.to_numpy(b.method.with_inverse(ops, b.prior, state).B))
    K = np.array(ops.to_numpy(b.prior.K))[0]
    for i, s in enumerate((1e-3, 0.1, 10.0)):
        best = factor_of_inverse(K + s * np.eye(8))
        np.testing.assert_allclose(B[i], best, rtol=0, atol=1e-8 * np.abs(best).max())


@pytest.mark.parametrize("error", [0.0, 0.3])
def test_marginals_are_those_of_its_posterior_and_the_mean_of_its_terms(error: float) -> None:
    b = bench(likelihood="softmax")
    state = drawn(b, seed=1, error=error)
    m, S, _ = b.posterior(state)
    f = b.steps.factor(b.raw, b.prior, b.full)
    K, k, kff = np.array(f.K)[0], np.array(f.K_f)[0], np.array(f.kff)[0]
    mu, v = b.marginals(state)
    to_u = np.linalg.solve(K, k)
    np.testing.assert_allclose(mu, m @ to_u, rtol=0, atol=1e-9)
    conditional = kff - np.sum(k * to_u, axis=0)
    np.testing.assert_allclose(
        v, conditional + np.einsum("ib,pij,jb->pb", to_u, S, to_u), rtol=0, atol=1e-9
    )
    q = b.method.factorise(b.ops, b.prior, state)
    T, a = np.array(q.B) @ np.swapaxes(q.B, -1, -2), np.array(state.moved.a)
    near = 2.0 * T - T @ (K + np.array(q.s)[..., None] * np.eye(8)) @ T
    np.testing.assert_allclose(q.mu, np.einsum("pij,pj->pi", near, a), rtol=0, atol=1e-10)
    (term,) = b.method.mean_terms(b.ops, PROBLEM.Z, b.prior, q)
    np.testing.assert_allclose(term.weights @ k, mu, rtol=0, atol=1e-12)


def test_an_m_step_finds_t_at_the_theta_that_it_starts_from() -> None:
    b = bench(tolerance=1e-12)
    off = drawn(b, seed=2, error=0.05)
    held = b.method.invariant(NUMPY, b.prior, None, off)
    np.testing.assert_allclose(held.B, drawn(b, seed=2).B, rtol=0, atol=1e-9)


def test_only_a_latent_with_a_large_row_is_divided_and_its_eigenvalues_are_at_most_1() -> None:
    A = np.array([[[1.9, -1.8], [-1.8, 1.9]], [[1.2, 0.7], [0.7, 1.2]]])  # rows: 3.7, and 1.9
    B = np.broadcast_to(np.eye(2), (2, 2, 2))
    divided, G = scaled_down(NUMPY, B, A)
    np.testing.assert_allclose(G, np.swapaxes(divided, -1, -2) @ A @ divided, rtol=1e-14)
    assert np.linalg.eigvalsh(G[0])[-1] == pytest.approx(1.0)
    np.testing.assert_array_equal((divided[1], G[1]), (B[1], A[1]))


def test_divided_steps_find_t_where_plain_ones_diverge(ops: Ops) -> None:
    """After K̃ has grown eightfold, of one latent of three."""
    ends = {}
    for scaled in (False, True):
        b = bench(ops, "softmax", tolerance=1e-10, scaled=scaled, initial_s=0.05)
        K_s = np.array(ops.to_numpy(b.prior.K))[0] + 0.05 * np.eye(8)
        best = np.stack([factor_of_inverse(x * K_s) for x in (1.0, 1.0, 0.125)])
        state = b.start._replace(B=ops.asarray(best))
        ends[scaled] = b.method.with_inverse(ops, b.prior, state)
    found = np.array(ops.to_numpy(ends[True].B))
    assert max(gap(K_s, B) for B in found) <= 1e-10
    # where nothing is to be divided, nothing is
    np.testing.assert_allclose(found[0], best[0], rtol=0, atol=1e-12 * np.abs(best[0]).max())
    plain = np.array(ops.to_numpy(ends[False].B))[2]
    assert not np.isfinite(plain).all() or gap(K_s, plain) > 0.1


def trained(method: AnyMethod) -> Trained:
    rates = {"e_rate": 0.02, "m_rate": 0.02}
    often = {"em_iterations": 400, "m_steps": 1, "batch_size": 16, "trace_every": 100}
    return trainer(NUMPY, method, **rates, **often).run()


def test_training_is_that_of_l_svgp_where_t_is_exact() -> None:
    by_steps, by_factor = (
        trained(RelaxedSVGP(inverse=x, tolerance=1e-13, initial_s=0.1))
        for x in ("natural", "cholesky")
    )
    for x, y in zip(leaves(by_steps.theta), leaves(by_factor.theta), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-7)
    bounds = [[p["elbo"] for p in x.trace] for x in (by_steps, by_factor)]
    np.testing.assert_allclose(*bounds, rtol=1e-8)
    # the family of `diagonal-precision`, whose exact steps go to the same optimum
    exact = trained(DiagonalPrecision()).trace[-1]["elbo"]
    assert bounds[0][-1] == pytest.approx(exact, abs=1.5)
    assert bounds[0][-1] > bounds[0][0] + 10.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inverse": "naturl"}, "unknown inverse of r-svgp 'naturl'; did you mean 'natural'"),
        ({"schedule": "linear"}, "unknown schedule of r-svgp 'linear'; did you mean 'log-linear'"),
        ({"tolerance": 0.0}, "option 'tolerance' of method 'r-svgp' must be above 0"),
        ({"initial_s": -1.0}, "option 'initial_s' of method 'r-svgp' must be above 0"),
        ({"most_rounds": 0}, "option 'most_rounds' of method 'r-svgp' must be 1 or more"),
    ],
)
def test_a_wrong_option_is_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        RelaxedSVGP(**options)
