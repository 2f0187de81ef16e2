"""Inducing functions: covariances against integrals of the window, derivatives, and whole methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from finite_differences import gradient
from scipy.integrate import quad
from small_training import column, trainer

from svgpbench.backends import load_backend
from svgpbench.checks.bench import Bench
from svgpbench.checks.cases import SmallProblem, build_model, small_problem
from svgpbench.checks.evaluate import step_by_step
from svgpbench.checks.identities_of_bases import functions_without_width_are_points
from svgpbench.checks.matrix import FLOAT64, difference
from svgpbench.errors import UserError
from svgpbench.kernels import constrain, inducing_functions, unconstrain
from svgpbench.kernels.bases import Decoupled, Features
from svgpbench.kernels.kernels import KernelParameters, kernel, kernels
from svgpbench.methods import build_method
from svgpbench.ops import Array, Ops, Tree
from svgpbench.training.em import Trained
from svgpbench.tree import named_leaves, tree_map

Floats = npt.NDArray[np.float64]
VARIANCE, LENGTHSCALES = 1.7, np.array([0.8, 1.3])
RNG = np.random.default_rng(3)
ONE = Features(RNG.standard_normal((4, 2)), RNG.uniform(0.2, 1.5, (4, 2)))
OTHER = Features(RNG.standard_normal((3, 2)), RNG.uniform(0.2, 1.5, (3, 2)))
X = RNG.standard_normal((5, 2))


def parameters(ops: Ops, lengthscales: Floats = LENGTHSCALES) -> KernelParameters:
    return KernelParameters(
        ops.asarray(np.array([VARIANCE])), ops.asarray(np.atleast_2d(lengthscales))
    )


def cross(ops: Ops, A: Tree, B: Tree, lengthscales: Floats = LENGTHSCALES) -> Floats:
    A, B = (tree_map(ops.asarray, t) for t in (A, B))
    return ops.to_numpy(kernel("se").cross(ops, parameters(ops, lengthscales), A, B))[0]


def under_window(f: Callable[[float], float], centre: float, width: float) -> float:
    """E f(x), x ~ N(centre, width²), by adaptive quadrature."""

    def density(x: float) -> float:
        return float(np.exp(-0.5 * ((x - centre) / width) ** 2) / (width * np.sqrt(2 * np.pi)))

    value, _ = quad(lambda x: f(x) * density(x), centre - 9 * width, centre + 9 * width, epsabs=0)
    return float(value)


def averages(scale: float, a: tuple[float, float], b: tuple[float, float] | float) -> float:
    """Correlation in one dimension of a window average and another or a point, by integration."""

    def with_point(x: float) -> float:
        return under_window(lambda t: float(np.exp(-0.5 * ((t - x) / scale) ** 2)), *a)

    return under_window(with_point, *b) if isinstance(b, tuple) else with_point(b)


def integral(i: int, other: int | None, d: int) -> float:
    """One dimension's correlation of ONE[i] with OTHER[other], or with itself where that is None."""
    a = (ONE.centres[i, d], ONE.widths[i, d])
    b = a if other is None else (OTHER.centres[other, d], OTHER.widths[other, d])
    return averages(LENGTHSCALES[d], a, b)


def test_covariances_are_integrals_under_the_windows() -> None:
    """Two dimensions: the integrals of a product kernel under product windows are products."""
    ops = load_backend("numpy")
    i, j = 1, 2
    own = np.prod([integral(i, None, d) for d in range(2)])
    others = (OTHER.centres[j], OTHER.widths[j])
    own_of_other = np.prod(
        [averages(LENGTHSCALES[d], *[(others[0][d], others[1][d])] * 2) for d in range(2)]
    )
    both = np.prod([integral(i, j, d) for d in range(2)])
    wanted = VARIANCE * both / np.sqrt(own * own_of_other)
    assert cross(ops, ONE, OTHER)[i, j] == pytest.approx(wanted, rel=1e-9)
    point = np.prod(
        [
            averages(LENGTHSCALES[d], (ONE.centres[i, d], ONE.widths[i, d]), float(X[j, d]))
            for d in range(2)
        ]
    )
    wanted = VARIANCE * point / np.sqrt(own)
    assert cross(ops, ONE, X)[i, j] == pytest.approx(wanted, rel=1e-9)


def test_every_backend_gives_the_same_covariances(ops: Ops) -> None:
    reference = load_backend("numpy")
    for A, B in ((ONE, OTHER), (ONE, X), (X, ONE), (ONE, ONE)):
        for lengthscales in (LENGTHSCALES, np.array([0.9])):
            got = cross(ops, A, B, lengthscales)
            wanted = cross(reference, A, B, lengthscales)
            np.testing.assert_allclose(got, wanted, rtol=1e-13)
            np.testing.assert_allclose(got, cross(reference, B, A, lengthscales).T, rtol=1e-13)


def test_an_isotropic_kernel_is_one_of_equal_lengthscales() -> None:
    ops = load_backend("numpy")
    for A, B in ((ONE, OTHER), (ONE, X)):
        both = [cross(ops, A, B, np.full(n, 0.9)) for n in (1, 2)]
        np.testing.assert_allclose(*both, rtol=1e-14)


def test_an_inducing_function_has_the_variance_of_a_point() -> None:
    """In 30 dimensions too, where the unscaled average all but vanishes."""
    ops, D = load_backend("numpy"), 30
    wide = Features(RNG.standard_normal((4, D)), np.full((4, D), 2.0))
    K = cross(ops, wide, wide, np.ones(D))
    np.testing.assert_allclose(np.diagonal(K), VARIANCE, rtol=1e-13)
    p = parameters(ops, np.ones(D))
    np.testing.assert_array_equal(kernel("se").diagonal(ops, p, wide), np.full((1, 4), VARIANCE))
    assert (1 / 3) ** (D / 2) < 1e-7  # variance of the average itself over that of a point


def test_joint_covariance_of_functions_and_points_is_positive() -> None:
    ops = load_backend("numpy")
    points = Features(X, np.zeros_like(X))
    for A, least in ((ONE, 1e-4), (points, -1e-14)):  # a function of width 0 is the point
        within, across = cross(ops, A, A), cross(ops, A, X)
        joint = np.block([[within, across], [across.T, cross(ops, X, X)]])
        assert np.linalg.eigvalsh(joint).min() > least


def total(ops: Ops, tree: Tree, points: Array) -> Array:
    p, A, B = tree
    k = kernel("se")
    w = ops.asarray(np.cos(np.arange(12.0)).reshape(4, 3))
    v = ops.asarray(np.sin(1.0 + np.arange(20.0)).reshape(4, 5))
    return ops.sum(w * k.cross(ops, p, A, B)) + ops.sum(v * k.cross(ops, p, A, points))


def test_gradients_equal_differences(ops: Ops) -> None:
    numpy = load_backend("numpy")
    tree = (parameters(ops), *(tree_map(ops.asarray, t) for t in (ONE, OTHER)))
    _, found = ops.value_and_grad(lambda t: total(ops, t, ops.asarray(X)))(tree)
    host = [x for _, x in named_leaves((parameters(numpy), ONE, OTHER))]

    def plain(*flat: Floats) -> float:
        p = KernelParameters(*flat[:2])
        return float(total(numpy, (p, Features(*flat[2:4]), Features(*flat[4:])), X))

    wanted = gradient(plain, [np.asarray(x) for x in host])
    for (name, got), expected in zip(named_leaves(found), wanted, strict=True):
        np.testing.assert_allclose(ops.to_numpy(got), expected, rtol=1e-8, atol=1e-9, err_msg=name)


def test_width_0_is_a_stationary_point_with_a_finite_gradient(ops: Ops) -> None:
    points = Features(ops.asarray(ONE.centres), ops.asarray(np.zeros((4, 2))))
    tree = (parameters(ops), points, tree_map(ops.asarray, OTHER))
    _, (_, g, _) = ops.value_and_grad(lambda t: total(ops, t, ops.asarray(X)))(tree)
    assert np.all(ops.to_numpy(g.widths) == 0.0)
    assert np.all(np.isfinite(ops.to_numpy(g.centres)))


@pytest.mark.parametrize("name", [k for k in kernels() if not kernels()[k].has_features])
def test_other_kernels_refuse_inducing_functions(name: str) -> None:
    ops = load_backend("numpy")
    for call in (
        lambda: kernel(name).cross(ops, parameters(ops), ONE, X),
        lambda: kernel(name).cross(ops, parameters(ops), X, ONE),
        lambda: kernel(name).diagonal(ops, parameters(ops), ONE),
    ):
        with pytest.raises(UserError, match="has no inducing functions; use kernel 'se'") as caught:
            call()
        assert "\n" not in str(caught.value)


WIDTHS = np.random.default_rng(1).uniform(0.1, 0.6, small_problem().Z.shape)


class WithFeatures(SmallProblem):
    """The small problem with inducing functions in place of its inducing inputs."""

    def inducing(self, basis: str) -> Features:
        return Features(self.Z, WIDTHS)


PROBLEM = WithFeatures(**vars(small_problem()))


def test_a_method_takes_inducing_functions_alike_on_every_backend(ops: Ops) -> None:
    """Q(u) and bound after two steps, M-step objective and its gradient in centres and widths."""
    model, method = build_model("gaussian", "se"), build_method("t-svgp", {})
    found = []
    for o in (load_backend("numpy"), step_by_step(ops)):
        b = Bench(o, model, method, PROBLEM)
        state = b.minibatch_run(2)
        moved = tree_map(o.asarray, unconstrain(PROBLEM.theta(model, moved=True)))
        value, slope = b.objective(state, moved)
        found.append([*b.posterior(state), np.array(value), *slope])
    assert max(map(difference, *found)) < FLOAT64["gradients"]
    assert np.abs(found[0][-1]).max() > 0.1  # the widths' own


def test_both_bases_of_a_decoupled_model_may_be_functions() -> None:
    ops, model = load_backend("numpy"), build_model("gaussian", "se")
    theta = PROBLEM.theta(model)._replace(inducing=Decoupled(ONE, OTHER))
    back = dict(named_leaves(constrain(ops, unconstrain(theta)).inducing))
    assert list(back) == ["gamma.centres", "gamma.widths", "beta.centres", "beta.widths"]
    assert all(np.array_equal(back[k], x) for k, x in named_leaves(theta.inducing))


def run(**settings: Any) -> Trained:
    model = build_model("gaussian", "se")
    return trainer(load_backend("numpy"), problem=PROBLEM, model=model, **settings).run()


def test_training_moves_the_widths_where_they_are_learned() -> None:
    trained = run(em_iterations=6, m_steps=10, m_rate=0.05)
    bounds = column(trained, "elbo")
    assert bounds[-1] > bounds[0] + 1.0
    assert np.abs(trained.theta.inducing.widths - WIDTHS).max() > 0.05
    kept = run(em_iterations=2, m_steps=3, learn=("kernel",))
    assert np.array_equal(kept.theta.inducing.widths, WIDTHS)


def test_without_the_scaling_their_identity_is_red(monkeypatch: pytest.MonkeyPatch) -> None:
    ops, sound = load_backend("numpy"), inducing_functions._log_norm
    assert functions_without_width_are_points(ops, ()) < 1e-12
    monkeypatch.setattr(
        inducing_functions, "_log_norm", lambda ops, l2, c2: sound(ops, l2, 0.0 * c2)
    )
    assert functions_without_width_are_points(ops, ()) > 1e-2
