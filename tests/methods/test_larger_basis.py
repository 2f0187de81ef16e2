"""A grown basis: what stays the same, what a wrong map looks like, and who refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from svgpbench.backends import load_backend
from svgpbench.checks.bench import Bench
from svgpbench.checks.cases import USUAL, VARIANTS, build_model, small_problem
from svgpbench.checks.evaluate import RATE
from svgpbench.checks.identities_of_bases import growth_gap
from svgpbench.errors import UserError
from svgpbench.kernels.bases import Decoupled
from svgpbench.methods import AnyMethod, build_method, decoupled
from svgpbench.methods.basis_extension import extend_moments, zero_pad
from svgpbench.methods.dual import DualSVGP
from svgpbench.methods.mean_covariance import MeanCholeskySVGP
from svgpbench.methods.tying import DualState
from svgpbench.numerics.adam import adam_ascent, adam_start
from svgpbench.ops import Array, Ops
from svgpbench.training.blocks import data_term

PROBLEM = small_problem()


def bench(method: AnyMethod, likelihood: str = "bernoulli-logit") -> Bench:
    model = build_model(likelihood, "matern52")
    return Bench(load_backend("numpy"), model, method, PROBLEM)


class ZeroPaddedSums(DualSVGP):
    """The fault that looks right: λ̄₁ and Λ̄₂ padded with zeros in place of T₁ and T₂."""

    def grow(self, ops: Ops, p: Any, state: DualState) -> DualState:
        M, L = p.L.shape[-1], p.L

        def whitened(x: Array) -> Array:
            return ops.solve_triangular(L, x)

        old = L[..., : state.c.shape[-1], : state.c.shape[-1]]
        first = (old @ state.c[..., None])[..., 0]
        second = old @ state.C @ ops.matrix_transpose(old)
        half = whitened(zero_pad(ops, second, (1, M, M)))
        c = whitened(zero_pad(ops, first, (1, M))[..., None])[..., 0]
        return DualState(c, whitened(ops.matrix_transpose(half)), (), state.halvings)


def test_zero_padded_sums_do_not_keep_q() -> None:
    assert growth_gap(bench(DualSVGP()), PROBLEM.gamma) < 1e-12
    assert growth_gap(bench(ZeroPaddedSums()), PROBLEM.gamma) > 1e-2


def test_unwhitened_state_padded_as_if_whitened_does_not_keep_q() -> None:
    class Padded(MeanCholeskySVGP):
        def grow(self, ops: Ops, p: Any, state: Any) -> Any:
            return MeanCholeskySVGP(whiten=True).grow(ops, p, state)

    assert growth_gap(bench(MeanCholeskySVGP(whiten=False)), PROBLEM.gamma) < 1e-12
    assert growth_gap(bench(Padded(whiten=False)), PROBLEM.gamma) > 1e-2


def test_decoupled_basis_grows_up_to_the_square_of_its_small_diagonal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    more = Decoupled(PROBLEM.Z + 0.3, PROBLEM.gamma)
    gaps = {}
    for start in (1e-2, 1e-3, 0.0):
        b = bench(build_method("decoupled", {}), "gaussian")  # its own state is the same each time
        monkeypatch.setattr(decoupled, "START", start)
        gaps[start] = growth_gap(b, more)
        monkeypatch.undo()
    assert gaps[0.0] < 1e-13  # but there the gradient in the new part of L_B is exactly 0
    assert 0.0 < gaps[1e-3] < 1e-5
    assert gaps[1e-2] / gaps[1e-3] == pytest.approx(100.0, rel=0.2)


def test_new_part_of_a_decoupled_state_has_a_gradient_and_the_mean_is_the_same() -> None:
    ops, method = load_backend("numpy"), build_method("decoupled", {})
    b = bench(method, "gaussian")
    state = b.e_step(b.start, b.full, 0.05)
    larger = Decoupled(*(np.concatenate([z, z + 0.3]) for z in b.raw.inducing))
    raw = b.raw._replace(inducing=larger)
    p = b.steps.prior(raw)
    grown = method.grow(ops, p, state)
    f, f_old = b.steps.factor(raw, p, b.full), b.steps.factor(b.raw, b.prior, b.full)
    mean, _ = method.marginals(ops, f, method.factorise(ops, f, grown))
    before, _ = method.marginals(ops, f_old, method.factorise(ops, f_old, state))
    np.testing.assert_allclose(mean, before, rtol=1e-12)
    data = data_term(b.model, PROBLEM.theta(b.model, "decoupled"), b.full, b.one)
    g = method.gradients(ops, f, data, grown)
    assert np.all(np.diagonal(g.L_B[0])[len(PROBLEM.Z) :] != 0.0)


GROWING = [n for n in USUAL if n.startswith(("t-svgp", "q-svgp")) and "untied" not in n]


@pytest.mark.parametrize("name", GROWING)
def test_a_grown_state_goes_on(name: str) -> None:
    """Steps on the larger basis improve the bound beyond what the smaller could reach."""
    of, options = VARIANTS[name]
    method = build_method(of, options)
    b = bench(method, "gaussian")
    rate, state = (0.05 if method.first_order else RATE), b.start
    for _ in range(60):
        state = b.e_step(state, b.full, rate)
    before = float(b.bound(state, b.full))
    raw = b.raw._replace(inducing=np.concatenate([b.raw.inducing, PROBLEM.gamma]))
    b.move(raw)
    state = method.grow(b.ops, b.prior, state)
    assert float(b.bound(state, b.full)) == pytest.approx(before, rel=1e-12)
    for _ in range(60):
        state = b.e_step(state, b.full, rate)
    assert float(b.bound(state, b.full)) > before + 1.0


def test_sites_at_the_data_do_not_grow() -> None:
    method = build_method("t-svgp", {"tying": "untied"})
    with pytest.raises(UserError, match='use tying = "tied-projected"') as caught:
        method.grow(load_backend("numpy"), None, None)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("ops", ["numpy"], indirect=True)
def test_new_entries_of_adam_start_as_at_a_first_step(ops: Ops) -> None:
    rate = ops.asarray(np.float64(0.1))
    small = (ops.asarray(np.array([1.0, -2.0])), ops.asarray(np.array([[0.5]])))
    state = adam_start(ops, small)
    for k in range(5):
        gradient = (ops.asarray(np.array([0.3, -1.0 - k])), ops.asarray(np.array([[2.0]])))
        small, state = adam_ascent(ops, state, small, gradient, rate)
    large = (zero_pad(ops, small[0], (3,)), small[1])
    state = extend_moments(ops, state, large)
    gradient = (ops.asarray(np.array([0.4, 1.0, -7.0])), ops.asarray(np.array([[2.0]])))
    moved, _ = adam_ascent(ops, state, large, gradient, rate)
    kept = adam_start(ops, (ops.asarray(np.zeros(2)),))
    x = (ops.asarray(np.array([1.0, -2.0])),)
    for g in [[0.3, -1.0 - k] for k in range(5)] + [[0.4, 1.0]]:
        x, kept = adam_ascent(ops, kept, x, (ops.asarray(np.array(g)),), rate)
    np.testing.assert_allclose(ops.to_numpy(moved[0])[:2], ops.to_numpy(x[0]), rtol=1e-14)
    assert float(ops.to_numpy(moved[0])[2]) == pytest.approx(-0.1, rel=1e-6)
