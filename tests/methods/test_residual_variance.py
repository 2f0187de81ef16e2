"""Bounds whose q(f|u) is narrower than p(f|u), beyond what `svgpbench check` holds them to."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from svgpbench.backends import load_backend
from svgpbench.checks.bench import Bench, bench
from svgpbench.checks.cases import build_model, small_problem
from svgpbench.checks.dense import sgpr_bound
from svgpbench.checks.matrix import difference
from svgpbench.errors import UserError
from svgpbench.kernels import unconstrain
from svgpbench.methods import build_method
from svgpbench.methods.residual_variance import RESIDUAL_VARIANCES
from svgpbench.ops import Ops
from svgpbench.tree import leaves, tree_map

NUMPY = load_backend("numpy")
MOVES = ((0.4, 1.0), (1.3, 0.3), (2.0, 3.0), (1.0, 0.1))
"""Factors of the kernel's parameters and of σ²; Z moves along."""


@pytest.mark.parametrize("ops", ["numpy"], indirect=True)
@pytest.mark.parametrize(("kernel", "noise"), MOVES)
def test_untied_m_step_is_the_collapsed_bound_at_every_theta(
    ops: Ops, kernel: float, noise: float
) -> None:
    b = bench(ops, "t-svgp untied diagonal", "gaussian")
    state = b.e_step(b.start, b.full, 1.0)
    theta = b.problem.theta(b.model)
    moved = theta._replace(
        kernel=tree_map(lambda x: x * kernel, theta.kernel),
        likelihood=tree_map(lambda x: x * noise, theta.likelihood),
        inducing=theta.inducing + 0.1 * kernel,
    )
    raw = tree_map(ops.asarray, unconstrain(moved))
    value, gradient = b.objective(state, raw)
    exact = sgpr_bound(moved, "matern52", b.problem.X, b.y, 1e-6, "diagonal")
    assert value == pytest.approx(exact, rel=1e-10)
    collapsed = bench(ops, "sgpr diagonal", "gaussian")
    value, slope = collapsed.objective(collapsed.start, raw)
    assert value == pytest.approx(exact, rel=1e-10)
    for one, other in zip(gradient, slope, strict=True):
        assert difference(one, other) < 1e-9


METHODS = ("t-svgp", "q-svgp", "sgpr", "orth", "hybrid")


@pytest.mark.parametrize("name", METHODS)
def test_a_variance_each_is_for_gaussian_noise(name: str) -> None:
    method = build_method(name, {"residual_variance": "diagonal"})
    for likelihood in ("bernoulli-probit", "student-t", "softmax"):
        assert "Gaussian noise only" in method.refuses(build_model(likelihood, "se").likelihood)
    assert not method.refuses(build_model("gaussian", "se").likelihood)


@pytest.mark.parametrize("name", METHODS)
def test_another_word_is_refused_with_those_that_there_are(name: str) -> None:
    with pytest.raises(UserError, match=r"diagnal.*diagonal"):
        build_method(name, {"residual_variance": "diagnal"}).refuses(
            build_model("gaussian", "se").likelihood
        )


def test_a_part_without_the_option_is_refused() -> None:
    options = {"coupled": "diagonal-precision exact", "residual_variance": "scalar"}
    with pytest.raises(UserError, match="has no residual_variance; take q-svgp or t-svgp"):
        build_method("orth", options)


USUAL = {
    "t-svgp scalar": "t-svgp tied-projected",
    "q-svgp natgrad scalar": "q-svgp natgrad",
    "sgpr diagonal": "sgpr",
}


@pytest.mark.parametrize(("title", "usual"), USUAL.items())
def test_predictions_are_by_the_prior_s_conditional(title: str, usual: str) -> None:
    pair = bench(NUMPY, title, "gaussian"), bench(NUMPY, usual, "gaussian")
    one, other = (x.marginals(x.e_step(x.start, x.full, 1.0)) for x in pair)
    for mine, theirs in zip(one, other, strict=True):
        assert difference(mine, theirs) < 1e-14


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli-probit", "softmax"])
def test_steps_of_one_variance_average_to_the_full_batch(likelihood: str) -> None:
    b = bench(NUMPY, "t-svgp scalar", likelihood)
    state = b.minibatch_run(3)
    parts = np.random.default_rng(0).permutation(b.n).reshape(3, -1)
    batches = [b.batch(rows)._replace(noise=b.full.noise) for rows in parts]
    targets = [b.e_step(state, x, 0.7).residual for x in batches]
    assert difference(np.mean(targets, axis=0), b.e_step(state, b.full, 0.7).residual) < 1e-13
    bounds = [b.bound(state, x) for x in batches]
    assert difference(np.mean(bounds), b.bound(state, b.full)) < 1e-13


@pytest.mark.parametrize("title", ["t-svgp scalar", "q-svgp natgrad scalar", "q-svgp adam scalar"])
def test_one_variance_settles_where_the_bound_has_no_slope_in_it(title: str) -> None:
    name, options = {
        "t-svgp scalar": ("t-svgp", {}),
        "q-svgp natgrad scalar": ("q-svgp", {}),
        "q-svgp adam scalar": ("q-svgp", {"optimiser": "adam"}),
    }[title]
    method = build_method(name, {**options, "residual_variance": "scalar"})
    b = Bench(NUMPY, build_model("bernoulli-logit", "matern52"), method, small_problem())
    state = b.start
    for _ in range(400):
        state = b.e_step(state, b.full, 0.05 if method.first_order else 0.5)
    at = float(state.residual[0])
    around = [
        float(b.bound(state._replace(residual=np.array([at * x])), b.full)) for x in (0.99, 1.01)
    ]
    best = float(b.bound(state, b.full))
    assert max(around) < best
    curvature = best - 0.5 * sum(around)
    assert abs(around[1] - around[0]) < 0.05 * curvature  # third order alone
    assert at > 1.05


def test_where_beta_is_negative_one_variance_is_at_most_the_prior_s() -> None:
    model = build_model("student-t", "matern52")
    outliers = dataclasses.replace(small_problem(), y=10.0 * small_problem().y)
    method = build_method("t-svgp", {"residual_variance": "scalar"})
    b = Bench(NUMPY, model, method, outliers)
    state = b.start
    for _ in range(5):
        state = b.e_step(state, b.full, 0.5)
        assert float(state.residual[0]) >= 1.0


@pytest.mark.parametrize(
    "title", ["t-svgp scalar", "q-svgp natgrad scalar", "orth dual newton scalar"]
)
def test_m_steps_hold_one_variance(title: str) -> None:
    b = bench(NUMPY, title, "gaussian")
    state = b.e_step(b.start, b.full, 0.5)
    likelihood = b.model.conditional(b.problem.theta(b.model, b.method.basis))
    invariant = b.method.invariant(NUMPY, b.prior, likelihood, state)
    moved = b.problem.theta(b.model, b.method.basis, moved=True)
    tied = b.m_step.tied(tree_map(NUMPY.asarray, unconstrain(moved)), invariant, b.full.X)
    one, other = (getattr(x, "coupled", x).residual for x in (state, tied.q))
    assert one[0] > 1.1
    assert np.array_equal(one, other)


def test_the_usual_bound_keeps_no_variance() -> None:
    assert list(RESIDUAL_VARIANCES) == ["prior", "scalar", "diagonal"]
    for title in ("t-svgp tied-projected", "q-svgp natgrad", "t-svgp diagonal"):
        b = bench(NUMPY, title, "gaussian")
        assert b.start.residual == ()
        assert not any(np.shape(x) == (1,) for x in leaves(b.start))
