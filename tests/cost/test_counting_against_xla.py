"""FLOPs of the counting backend against those that XLA counts in its own program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from svgpbench.backends import framework_missing, load_backend, new_backend
from svgpbench.checks.cases import build_model
from svgpbench.checks.kit.numbers import numbers
from svgpbench.kernels import Theta
from svgpbench.kernels.kernels import KernelParameters, kernel
from svgpbench.likelihoods import GaussianParameters, NoParameters
from svgpbench.methods import DataTerm, build_method
from svgpbench.methods.mean_covariance import MeanCholesky
from svgpbench.numerics.gaussian import Factor
from svgpbench.ops import Array, Ops
from svgpbench.tree import tree_map

INPUTS, POINTS = numbers(300, 7), numbers(40, 7)
PARAMETERS = KernelParameters(np.ones(1), np.ones((1, 7)))
FACTOR = (np.eye(40)[None], numbers(1, 40, 300), np.ones((1, 300)))
Q = MeanCholesky(numbers(1, 40), np.eye(40)[None])


def by_xla(f: Callable[..., Any], arguments: tuple[Any, ...]) -> float:
    """FLOPs that XLA counts in the unoptimised program; it keeps exp and log apart."""
    import jax

    ops = load_backend("jax")
    traced = jax.jit(lambda *xs: f(ops, *xs)).lower(*tree_map(ops.asarray, arguments))
    found = traced.cost_analysis()
    return float(found["flops"] + found.get("transcendentals", 0.0))


def by_shapes(f: Callable[..., Any], arguments: tuple[Any, ...]) -> int:
    ops: Any = new_backend("counting")
    inputs = tree_map(ops.asarray, arguments)
    _, found = ops.count(lambda: f(ops, *inputs))
    return int(found[0])


def bound_slope(likelihood: str) -> Callable[..., Any]:
    """q-SVGP's bound and its gradient in (m, L_S): products and elementwise functions only."""
    method, model = build_method("q-svgp", {}), build_model(likelihood, "se")

    def slope(ops: Ops, f: Any, q: MeanCholesky, y: Array, parameters: Any) -> Any:
        conditional = model.conditional(Theta((), parameters, ()))  # type: ignore[arg-type]
        start = method.initial_state(ops, Factor(*f), 1, 300)

        def at(q: MeanCholesky) -> Array:
            state = start._replace(q=q)
            data = DataTerm(conditional, y, (), ops.asarray(1.0))
            return method.bound(ops, Factor(*f), data, state)

        return ops.value_and_grad(at)(q)

    return slope


def covariance(name: str) -> Callable[..., Any]:
    return lambda ops, p, A, B: kernel(name).cross(ops, p, A, B)


def covariance_slope(name: str) -> Callable[..., Any]:
    def slope(ops: Ops, p: KernelParameters, A: Array, B: Array) -> Any:
        return ops.value_and_grad(lambda t: ops.sum(covariance(name)(ops, *t, B) ** 2))((p, A))

    return slope


def norms(ops: Ops, L: Array, W: Array) -> Array:
    half = L @ W
    return ops.sum(half * half, axis=-2)


Y = numbers(300)
XLA: dict[str, tuple[Callable[..., Any], tuple[Any, ...], float]] = {
    "products and norms": (norms, (FACTOR[0], FACTOR[1]), 0.0),
    **{
        f"covariance, {name}": (covariance(name), (PARAMETERS, POINTS, INPUTS), 0.0)
        for name in ("se", "matern32", "matern52")
    },
    # frameworks differ in how they write the derivative of a square root or a maximum
    **{
        f"gradient of a covariance, {name}": (
            covariance_slope(name),
            (PARAMETERS, POINTS, INPUTS),
            0.08,
        )
        for name in ("se", "matern32", "matern52")
    },
    "bound, gaussian": (
        bound_slope("gaussian"),
        (FACTOR, Q, Y, GaussianParameters(np.float64(0.3))),
        0.001,
    ),
    "bound, bernoulli-logit": (
        bound_slope("bernoulli-logit"),
        (FACTOR, Q, Y, NoParameters()),
        0.03,
    ),
}


@pytest.mark.skipif(framework_missing("jax") is not None, reason="jax is not installed")
@pytest.mark.parametrize("name", XLA)
def test_flops_are_those_that_xla_counts(name: str) -> None:
    function, arguments, tolerance = XLA[name]
    wanted = by_xla(function, arguments)
    assert by_shapes(function, arguments) == pytest.approx(wanted, rel=tolerance, abs=0.0)
