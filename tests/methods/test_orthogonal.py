"""ORTH and HYBRID: the γ-step, what the coupled method is conditional, and what may not be combined."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest
from finite_differences import gradient
from two_bases import PROBLEM, SCALE, At, at_first_batch

from svgpbench.backends import load_backend
from svgpbench.checks.cases import build_model
from svgpbench.checks.dense import kernel_matrix
from svgpbench.errors import UserError
from svgpbench.methods import build_method
from svgpbench.methods.gamma_steps import TwoPartState
from svgpbench.methods.hybrid import HybridSVGP
from svgpbench.methods.mean_covariance import MeanCholesky, QState
from svgpbench.methods.orthogonal import OrthogonalSVGP
from svgpbench.ops import Ops, Tree
from svgpbench.tree import leaves, tree_map

Floats = npt.NDArray[np.float64]
NUMPY = load_backend("numpy")
M_G, M_B = len(PROBLEM.gamma), len(PROBLEM.Z)
FAMILIES = {"orth": OrthogonalSVGP, "hybrid": HybridSVGP}


def some_state(ops: Ops) -> TwoPartState:
    """A general q, of q-svgp on β."""
    rng = np.random.default_rng(4)
    mean = rng.standard_normal((1, M_B))
    chol = np.tril(0.2 * rng.standard_normal((1, M_B, M_B))) + 0.7 * np.eye(M_B)
    q = QState(MeanCholesky(ops.asarray(mean), ops.asarray(chol)), (), ops.zeros(()))
    return TwoPartState(q, ops.asarray(0.4 * rng.standard_normal((1, M_G))), ())


def gamma_gradient(at: At, state: Tree) -> Floats:
    g, _ = at.method.gamma_gradient(at.ops, at.f, at.data, state)
    return np.asarray(at.ops.to_numpy(g))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli-logit"])
def test_gradient_of_gamma_is_that_of_the_bound(family: str, likelihood: str) -> None:
    at, state = at_first_batch(NUMPY, FAMILIES[family](), likelihood), some_state(NUMPY)
    (numeric,) = gradient(lambda a: float(at.elbo(state._replace(a=a))), [state.a])
    np.testing.assert_allclose(gamma_gradient(at, state), numeric, rtol=0, atol=1e-8)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_coupled_part_moves_by_the_gradient_of_the_whole_bound(family: str) -> None:
    """One gradient of q-svgp's, closed and by autodiff, at what it is conditional."""
    method = FAMILIES[family](coupled="q-svgp adam")
    at, state = at_first_batch(NUMPY, method, "bernoulli-logit"), some_state(NUMPY)

    def bound(mean: Floats, chol: Floats) -> float:
        q = QState(MeanCholesky(mean, np.tril(chol)), (), np.zeros(()))
        return float(at.elbo(state._replace(coupled=q)))

    numeric = gradient(bound, list(state.coupled.q))
    f, data = method.coupled_inputs(NUMPY, at.f, at.data, state.a)
    part = method.part
    by_autodiff = part._gradients_by_autodiff(NUMPY, f, data, state.coupled)
    mean, _, _ = part._gradients(NUMPY, f, data, state.coupled)
    np.testing.assert_allclose(mean, numeric[0], rtol=0, atol=1e-8)
    for exact, wanted in zip(by_autodiff, numeric, strict=True):
        np.testing.assert_allclose(exact, wanted, rtol=0, atol=1e-8)


@pytest.mark.parametrize("ops", ["numpy"], indirect=True)
@pytest.mark.parametrize("family", FAMILIES)
def test_sampled_columns_average_to_the_whole_in_value_and_gradient(ops: Ops, family: str) -> None:
    state = some_state(ops)

    def of(subset: int, points: npt.ArrayLike | None) -> tuple[Floats, Floats]:
        at = at_first_batch(ops, FAMILIES[family](subset=subset), "gaussian", points)
        return np.asarray(ops.to_numpy(at.elbo(state))), gamma_gradient(at, state)

    parts = np.random.default_rng(0).permutation(M_G).reshape(-1, 4)
    sampled = [of(4, points) for points in parts]
    means = [np.mean(x, axis=0) for x in zip(*sampled, strict=True)]
    for mean, wanted in zip(means, of(0, None), strict=True):
        np.testing.assert_allclose(mean, wanted, rtol=0, atol=1e-12 * np.max(np.abs(wanted)))
    assert abs(sampled[0][0] - sampled[1][0]) > 1e-2


def test_hybrid_is_orth_at_a_shifted_mean() -> None:
    """The same q: m_β of ORTH is m_β + K_βγa of HYBRID."""
    hybrid, orth = (at_first_batch(NUMPY, FAMILIES[x](), "gaussian") for x in ("hybrid", "orth"))
    state = some_state(NUMPY)
    q = state.coupled.q
    shift = np.linalg.solve(hybrid.p.coupled.L, hybrid.f.K_bg @ state.a[..., None])[..., 0]
    moved = q._replace(mean=q.mean + shift)
    same = state._replace(coupled=QState(moved, (), np.zeros(())))
    assert hybrid.kl(state) == pytest.approx(orth.kl(same), rel=1e-12)
    assert float(hybrid.elbo(state)) == pytest.approx(float(orth.elbo(same)), rel=1e-12)


@pytest.mark.parametrize("ops", ["numpy"], indirect=True)
@pytest.mark.parametrize("step", ["scaled", "natural", "newton", "hybrid newton"])
def test_latents_move_independently(ops: Ops, step: str) -> None:
    """A step on two latents at once is a step on each, whatever each is conditional of γ."""
    family, gamma_step = (
        FAMILIES["hybrid" if "hybrid" in step else "orth"],
        step.rsplit(maxsplit=1)[-1],
    )
    method = family(coupled="q-svgp natgrad", gamma_step=gamma_step)
    at, one = at_first_batch(ops, method, "gaussian"), some_state(ops)
    other = tree_map(lambda x: 0.5 * x, one)
    # what has no latent axis (the count of halvings) is shared
    both = tree_map(lambda x, y: ops.concat([x, y], axis=0) if len(x.shape) else x, one, other)
    half = ops.asarray(np.float64(0.5))

    def moved(state: Tree) -> list[Floats]:
        out = method.e_step(ops, at.f, at.data, state, half)
        return [ops.to_numpy(x) for x in leaves(out) if len(x.shape)]

    for stacked, first, second in zip(moved(both), moved(one), moved(other), strict=True):
        np.testing.assert_allclose(stacked, np.concatenate([first, second]), rtol=0, atol=1e-11)
    assert float(at.kl(both)) == pytest.approx(at.kl(one) + at.kl(other), rel=1e-12)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("orth", {"gamma_step": "newtn"}, "unknown gamma_step of orth 'newtn'; did you mean 'newton'"),
        ("hybrid", {"gamma_step": "natural"}, "unknown gamma_step of hybrid 'natural'"),
        ("orth", {"gamma_step": "newton", "subset": 5}, "solves against all of D_γ: leave subset at 0"),
        ("orth", {"subset": -1}, "gamma_rate and subset of method 'orth' must be 0 or more"),
        ("orth", {"coupled": "q-svgp natgard"}, "variant of method q-svgp 'natgard'; did you mean 'natgrad'"),
        ("orth", {"coupled": "p-svgp"}, "unknown method 'p-svgp'; did you mean"),
        ("orth", {"coupled": "decoupled"}, "no coupled method on inducing inputs"),
        ("hybrid", {"coupled": "orth"}, "no coupled method on inducing inputs"),
        ("orth", {"coupled": "t-svgp untied"}, "keeps sites that depend on γ's mean"),
    ],
)  # fmt: skip
def test_what_cannot_be_combined_is_one_line(
    name: str, options: dict[str, object], message: str
) -> None:
    with pytest.raises(UserError, match=message) as caught:
        build_method(name, options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli-logit", "student-t"])
@pytest.mark.parametrize(
    ("family", "gamma_step"),
    [*itertools.product(["orth"], ["scaled", "natural", "newton"]), ("hybrid", "newton")],
)
def test_a_step_of_gamma_solves_the_dense_curvature(
    family: str, gamma_step: str, likelihood: str
) -> None:
    """By D_γ, its diagonal, or D_γ + s K_⊥ᵀ diag(β⁺) K_⊥, at the marginals after the step on β."""
    method = FAMILIES[family](coupled="q-svgp natgrad", gamma_step=gamma_step)
    at, state, rate = at_first_batch(NUMPY, method, likelihood), some_state(NUMPY), 0.3
    moved = method.e_step(NUMPY, at.f, at.data, state, np.float64(rate))
    coupled = method.part.e_step(
        NUMPY, *method.coupled_inputs(NUMPY, at.f, at.data, state.a), state.coupled, rate
    )
    before = state._replace(coupled=coupled)
    for found, expected in zip(leaves(moved.coupled), leaves(coupled), strict=True):
        np.testing.assert_array_equal(found, expected)
    theta = PROBLEM.theta(build_model(likelihood, "matern52"), "decoupled")
    X, (gamma, beta) = PROBLEM.X[PROBLEM.batches[0]], theta.inducing

    def k(A: Floats, B: Floats) -> Floats:
        return kernel_matrix("matern52", theta, A, B)

    K_b = k(beta, beta) + 1e-6 * np.eye(M_B)
    explains = k(gamma, beta) @ np.linalg.inv(K_b) if family == "orth" else np.zeros((M_G, M_B))
    D = k(gamma, gamma) + 1e-6 * np.eye(M_G) - explains @ k(beta, gamma)
    K_x = k(gamma, X) - explains @ k(beta, X)
    W = np.linalg.solve(np.linalg.cholesky(K_b), k(beta, X))
    q = before.coupled.q
    mu = before.a @ K_x + q.mean @ W
    v = np.diag(k(X, X)) - np.sum(W**2, axis=0) + np.sum((q.chol[0].T @ W) ** 2, axis=0)
    _, weights = at.data.likelihood.gradients(NUMPY, at.data.y, mu, v[None])
    assert np.any(weights < 0.0) == (likelihood == "student-t")
    weights = np.maximum(weights, 0.0)
    curvature = {
        "scaled": np.diag(np.diag(D)),
        "natural": D,
        "newton": D + SCALE * (K_x * weights) @ K_x.T,
    }[gamma_step]
    step = np.linalg.solve(curvature, gamma_gradient(at, before)[0])
    np.testing.assert_allclose(moved.a[0], state.a[0] + rate * step, rtol=1e-8, atol=1e-10)
