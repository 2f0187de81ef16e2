"""DECOUPLED: its gradients, its sampled columns, and the coupled posterior inside it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from finite_differences import gradient

from svgpbench.checks.cases import build_model, small_problem
from svgpbench.errors import UserError
from svgpbench.likelihoods import Conditional
from svgpbench.methods import Method, build_method, elbo
from svgpbench.methods.decoupled import DecoupledState, DecoupledSVGP, MeanPrecision
from svgpbench.model import Model, constrain, unconstrain
from svgpbench.ops import Ops
from svgpbench.plugins import load_backend
from svgpbench.steps import factor_at, prior_at
from svgpbench.tree import tree_map

Floats = npt.NDArray[np.float64]
PROBLEM = small_problem()
NUMPY = load_backend("numpy")
SCALE = 3.0


class At(NamedTuple):
    """A method's blocks at the problem's θ and its first batch."""

    model: Model
    f: Any
    likelihood: Conditional
    y: Any


def at_first_batch(
    ops: Ops, method: Method, likelihood: str, rows: npt.ArrayLike | None = None
) -> At:
    model = build_model(likelihood, "matern52")
    raw = tree_map(ops.asarray, unconstrain(PROBLEM.theta(model, method.basis)))
    theta = constrain(ops, raw)
    index = PROBLEM.batches[0]
    drawn = () if rows is None else ops.asarray(np.asarray(rows))
    X = ops.asarray(PROBLEM.X[index])
    p = prior_at(ops, model, method, theta)
    f = factor_at(ops, model, method, theta, p, X, drawn)
    y = ops.asarray(PROBLEM.targets(model.likelihood.support)[index])
    return At(model, f, model.conditional(theta), y)


def some_state(ops: Ops) -> DecoupledState:
    rng = np.random.default_rng(3)
    M_a, M_b = len(PROBLEM.gamma), len(PROBLEM.Z)
    L_B = np.tril(0.3 * rng.standard_normal((1, M_b, M_b))) + 0.5 * np.eye(M_b)
    q = MeanPrecision(ops.asarray(0.4 * rng.standard_normal((1, M_a))), ops.asarray(L_B))
    return DecoupledState(q, ())


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli-logit"])
def test_closed_form_gradients_are_those_of_the_bound(likelihood: str) -> None:
    method = DecoupledSVGP(optimiser="sgd")
    at, state = at_first_batch(NUMPY, method, likelihood), some_state(NUMPY)

    def bound(a: Floats, L_B: Floats) -> float:
        moved = DecoupledState(MeanPrecision(a, np.tril(L_B)), ())
        return float(elbo(NUMPY, method, at.f, at.likelihood, at.y, moved, np.float64(SCALE)))

    found = method.gradients(NUMPY, at.f, at.likelihood, at.y, state, np.float64(SCALE))
    for exact, numeric in zip(found, gradient(bound, list(state.q)), strict=True):
        np.testing.assert_allclose(exact, numeric, rtol=0, atol=1e-8)


def test_sampled_columns_average_to_the_whole_in_value_and_gradient(ops: Ops) -> None:
    whole, method = DecoupledSVGP(), DecoupledSVGP(subset=4)
    state, scale = some_state(ops), ops.asarray(np.float64(SCALE))

    def of(m: DecoupledSVGP, rows: npt.ArrayLike | None) -> list[Floats]:
        at = at_first_batch(ops, m, "bernoulli-logit", rows)
        value = elbo(ops, m, at.f, at.likelihood, at.y, state, scale)
        g = m.gradients(ops, at.f, at.likelihood, at.y, state, scale)
        return [ops.to_numpy(x) for x in (value, *g)]

    parts = np.random.default_rng(0).permutation(len(PROBLEM.gamma)).reshape(-1, 4)
    sampled = [of(method, rows) for rows in parts]
    for mean, wanted in zip(
        (np.mean(x, axis=0) for x in zip(*sampled, strict=True)), of(whole, None), strict=True
    ):
        np.testing.assert_allclose(mean, wanted, rtol=0, atol=1e-12 * np.max(np.abs(wanted)))
    assert abs(sampled[0][0] - sampled[1][0]) > 1e-2  # one part alone is not the whole


def test_kl_with_sampled_columns_may_be_negative() -> None:
    method = DecoupledSVGP(subset=1)
    q = MeanPrecision(np.zeros((1, len(PROBLEM.gamma))), 1e-3 * np.eye(len(PROBLEM.Z))[None])
    near = np.argsort(np.sum((PROBLEM.gamma - PROBLEM.gamma[0]) ** 2, axis=1))[:2]
    q.a[0, near] = (1.0, -100.0)  # the drawn one is small and its neighbour is not
    at = at_first_batch(NUMPY, method, "gaussian", near[:1])
    assert method.kl(NUMPY, at.f, method.factorise(NUMPY, at.f, DecoupledState(q, ()))) < 0.0


def test_bad_options_are_one_line() -> None:
    with pytest.raises(UserError, match="unknown E-step of decoupled 'sdg'; did you mean 'sgd'"):
        build_method("decoupled", {"optimiser": "sdg"})
    with pytest.raises(UserError, match="'subset' of method 'decoupled' must be 0"):
        build_method("decoupled", {"subset": -1})
