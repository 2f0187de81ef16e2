"""Gradients of M-steps in closed form are those that autodiff finds through the whole bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

from svgpbench.backends import load_backend
from svgpbench.checks.cases import VARIANTS, build_model, likelihoods_of, small_problem
from svgpbench.checks.matrix import difference
from svgpbench.config import LEARN
from svgpbench.kernels import Model, Theta, constrain, unconstrain
from svgpbench.kernels.bases import Features
from svgpbench.kernels.kernels import Kernel, KernelParameters, Matern52, kernel, squared_distance
from svgpbench.methods import build_method
from svgpbench.ops import Array, Ops, Tree
from svgpbench.training.blocks import Batch, data_term, factor_at, prior_at
from svgpbench.training.m_step import MStep
from svgpbench.tree import named_leaves, tree_map

NUMPY = load_backend("numpy")
PROBLEM = small_problem()
SCALE = 1.7

WITH_ADJOINT = [
    name for name, (of, options) in VARIANTS.items() if build_method(of, options).has_adjoint
]
CASES = [
    (variant, likelihood) for variant in WITH_ADJOINT for likelihood in likelihoods_of(variant)
]


def as_one_program(ops: Ops, f: Callable[..., Any]) -> Callable[..., Any]:
    """JAX compiles each operation alone otherwise, and holds a megabyte for each."""
    return ops.jit(f) if ops.name == "jax" else f


class AtHeld(NamedTuple):
    """An M-step's arguments: q after two E-steps, θ elsewhere, so that no gradient vanishes."""

    m_step: MStep
    raw: Theta
    invariant: Tree
    batch: Batch
    scale: Array

    def gradients(self) -> tuple[Theta, Theta]:
        """By autodiff and by the method's own."""
        arguments, ops = self[1:], self.m_step.ops
        (value, autodiff), (again, own) = (
            as_one_program(ops, self.m_step.by_autodiff)(*arguments),
            as_one_program(ops, self.m_step.value_and_gradient)(*arguments),
        )
        assert difference(np.asarray(again), np.asarray(value)) < 1e-14
        return Theta(*autodiff), Theta(*own)


def at_held(
    ops: Ops,
    model: Model,
    variant: str,
    basis: Any = None,
    *,
    kernels: int = 1,
    b: int | None = None,
) -> AtHeld:
    name, options = VARIANTS[variant]
    method, rows = build_method(name, options), np.arange(len(PROBLEM.X))[:b]
    theta, moved = (PROBLEM.theta(model, method.basis, moved=x) for x in (False, True))
    theta, moved = (x._replace(kernel=spread(x.kernel, kernels)) for x in (theta, moved))
    if basis is not None:
        theta, moved = theta._replace(inducing=basis), moved._replace(inducing=basis)
    raw, moved = (tree_map(ops.asarray, unconstrain(x)) for x in (theta, moved))
    y = PROBLEM.targets(model.likelihood.support)
    batch = Batch(*map(ops.asarray, (PROBLEM.X[rows], y[rows], rows)))
    batch = batch._replace(**PROBLEM.random_inputs(ops, model, method, rows))
    scale, rate = (ops.asarray(np.float64(x)) for x in (SCALE, 0.02 if method.first_order else 0.5))

    def held(raw: Theta, batch: Batch, scale: Array, rate: Array) -> Tree:
        at = constrain(ops, raw)
        p = prior_at(ops, model, method, at)
        f, data = factor_at(ops, model, method, at, p, batch.X), data_term(model, at, batch, scale)
        state = method.initial_state(ops, p, model.latents, len(rows))
        for _ in range(2):
            state = method.e_step(ops, f, data, state, rate)
        return method.invariant(ops, p, data.likelihood, state)

    invariant = as_one_program(ops, held)(raw, batch, scale, rate)
    return AtHeld(MStep(ops, model, method, LEARN), moved, invariant, batch, scale)


def spread(p: KernelParameters, kernels: int) -> KernelParameters:
    """A kernel for each latent, all of them different."""
    factor = np.linspace(1.0, 1.2, kernels)
    return KernelParameters(factor * p.variance, factor[:, None] * p.lengthscales)


def assert_equal(ops: Ops, autodiff: Theta, own: Theta, unit: float = 0.0) -> None:
    for (name, one), (_, other) in zip(named_leaves(autodiff), named_leaves(own), strict=True):
        assert tuple(one.shape) == tuple(other.shape), name
        assert difference(ops.to_numpy(one), ops.to_numpy(other), unit=unit) < 1e-11, name


def test_coupled_methods_have_adjoints() -> None:
    families = {VARIANTS[name][0] for name in WITH_ADJOINT}
    assert families >= {"t-svgp", "q-svgp", "diagonal-precision"}


@pytest.mark.parametrize("b", [None, 5], ids=["all rows", "fewer rows than inducing points"])
@pytest.mark.parametrize(("variant", "likelihood"), CASES)
def test_every_method_and_likelihood(variant: str, likelihood: str, b: int | None) -> None:
    # robust-max looks at order alone: the variance's gradient is what rounding leaves of it
    unit = 0.1 if likelihood == "robust-max" else 0.0
    found = at_held(NUMPY, build_model(likelihood, "matern52"), variant, b=b).gradients()
    assert_equal(NUMPY, *found, unit=unit)


@pytest.mark.parametrize("name", ["se", "matern32", "matern52"])
@pytest.mark.parametrize("variant", ["t-svgp tied-projected", "t-svgp untied", "q-svgp natgrad"])
def test_every_kernel_on_every_backend(ops: Ops, name: str, variant: str) -> None:
    found = at_held(ops, build_model("student-t", name), variant).gradients()
    assert_equal(ops, *found)


SEVERAL = ["t-svgp tied-projected", "t-svgp tied", "t-svgp standard", "q-svgp natgrad"]


@pytest.mark.parametrize("kernels", [1, 3])
@pytest.mark.parametrize("variant", SEVERAL)
def test_latents_of_one_kernel_and_of_their_own(ops: Ops, variant: str, kernels: int) -> None:
    model = build_model("softmax", "matern52")
    assert_equal(ops, *at_held(ops, model, variant, kernels=kernels).gradients())


@pytest.mark.parametrize(
    ("likelihood", "kernels"), [("gaussian", 1), ("softmax", 1), ("softmax", 3)]
)
def test_a_batch_smaller_than_the_basis(ops: Ops, likelihood: str, kernels: int) -> None:
    """Whitened q-SVGP then forms no covariance."""
    model = build_model(likelihood, "matern52")
    found = at_held(ops, model, "q-svgp natgrad", kernels=kernels, b=5).gradients()
    assert_equal(ops, *found)


class Cubic(Kernel):
    """A kernel that says its shape and nothing else."""

    name: ClassVar[str] = "cubic"

    def shape(self, ops: Ops, d2: Array) -> Array:
        return 1.0 / ((1.0 + d2) * (1.0 + d2) * (1.0 + d2))


class Rising(Matern52):
    """A kernel with blocks of its own, whose variance rises from the origin."""

    def cross(self, ops: Ops, p: KernelParameters, A: Tree, B: Tree) -> Array:
        return (
            self._height(ops, p, A)[..., None]
            * self._height(ops, p, B)[..., None, :]
            * (super().cross(ops, p, A, B))
        )

    def diagonal(self, ops: Ops, p: KernelParameters, A: Tree) -> Array:
        height = self._height(ops, p, A)
        return height * height * super().diagonal(ops, p, A)

    def _height(self, ops: Ops, p: KernelParameters, A: Tree) -> Array:
        a = A[None] / p.lengthscales[:, None, :]
        return 1.0 + 0.1 * ops.sum(a * a, axis=-1)


@pytest.mark.parametrize("made", [Cubic, Rising])
def test_kernels_that_declare_no_slope(ops: Ops, made: type[Kernel]) -> None:
    model = Model(made(), build_model("gaussian", "se").likelihood)
    assert_equal(ops, *at_held(ops, model, "t-svgp tied-projected").gradients())


def test_one_lengthscale_for_all_dimensions() -> None:
    found = at_held(NUMPY, build_model("gaussian", "se"), "t-svgp tied-projected")
    kernel = found.raw.kernel._replace(lengthscales=found.raw.kernel.lengthscales[:, :1])
    assert_equal(NUMPY, *found._replace(raw=found.raw._replace(kernel=kernel)).gradients())


def test_inducing_functions() -> None:
    centres = PROBLEM.Z + 0.0
    basis = Features(centres, np.full(centres.shape, 0.4))
    model = build_model("bernoulli-logit", "se")
    assert_equal(NUMPY, *at_held(NUMPY, model, "t-svgp tied-projected", basis).gradients())


@pytest.mark.parametrize("name", ["se", "matern32", "matern52"])
def test_a_kernel_s_slope_is_its_shape_s_derivative(ops: Ops, name: str) -> None:
    of, d2 = kernel(name), ops.asarray(np.array([0.0, 1e-12, 1e-3, 0.7, 9.0, 400.0]))
    shape, slope = (ops.to_numpy(x) for x in of.shape_and_slope(ops, d2))
    np.testing.assert_allclose(shape, ops.to_numpy(of.shape(ops, d2)), rtol=1e-15)
    known = ops.to_numpy(Kernel.shape_and_slope(of, ops, d2)[1])
    positive = slice(0 if name == "se" else 2, None)  # a root's own derivative fails at 0
    np.testing.assert_allclose(slope[positive], known[positive], rtol=1e-9)
    assert np.all(np.isfinite(slope)) and slope[0] == pytest.approx(slope[1], rel=1e-5)


def test_points_that_coincide_have_a_finite_gradient(ops: Ops) -> None:
    """Two equal inducing points, and one on a datum: autodiff through a root gives NaN there."""
    Z = PROBLEM.Z.copy()
    Z[1], Z[2] = Z[0], PROBLEM.X[3]
    _, own = at_held(ops, build_model("gaussian", "matern32"), "q-svgp natgrad", Z).gradients()
    assert all(np.all(np.isfinite(ops.to_numpy(x))) for _, x in named_leaves(own))


@pytest.mark.parametrize("likelihood", ["gaussian", "softmax"])
@pytest.mark.parametrize("variant", ["t-svgp tied-projected", "q-svgp natgrad"])
def test_an_ill_conditioned_kernel_keeps_the_gradient(variant: str, likelihood: str) -> None:
    """K of condition above 1e9: the gradient in the kernel's parameters agrees to what is left of it."""
    model = build_model(likelihood, "se", jitter=1e-9)
    Z = PROBLEM.Z.copy()
    Z[1] = Z[0] + 1e-5
    p = KernelParameters(np.array([1.7]), np.array([[0.9, 1.2, 1.6]]))
    a = Z[None] / p.lengthscales[:, None, :]
    K = 1.7 * np.exp(-0.5 * squared_distance(NUMPY, a, a)[0]) + 1e-9 * np.eye(len(Z))
    assert np.linalg.cond(K) > 1e9
    autodiff, own = at_held(NUMPY, model, variant, Z).gradients()
    for one, other in zip(autodiff.kernel, own.kernel, strict=True):
        assert difference(one, other) < 1e-6
