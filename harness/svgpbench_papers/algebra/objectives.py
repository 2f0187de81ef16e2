"""M-step objectives as functions of θ, and derivatives by central differences of sixth order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from svgpbench.checks.bench import Bench, worst_of
from svgpbench.checks.cases import MatrixCase
from svgpbench.checks.dense.gaussians import Dense
from svgpbench.kernels import Theta, unconstrain
from svgpbench.ops import Tree
from svgpbench.training.m_step import m_objective
from svgpbench.tree import leaves, tree_map

T = TypeVar("T", float, npt.NDArray[np.float64])


def converged_state(
    b: Bench, rate: float = 0.8, *, start: Tree = None, still: float = 1e-12, most: int = 400
) -> Tree:
    """Return the state after full-batch E-steps until it changes by less than `still`, at most `most`."""
    state, batch = b.start if start is None else start, b.full
    f = b.steps.factor(b.raw, b.prior, batch)
    for _ in range(most):
        before = state
        state = b.steps.e_phase(b.raw, f, batch, before, b.number(rate), b.one)
        if worst_of(leaves(state), leaves(before)) < still:
            break
    return state


def partial_state(b: Bench) -> Tree:
    """Return the state after two full-batch E-steps of rate ½."""
    return b.e_step(b.e_step(b.start, b.full, 0.5), b.full, 0.5)


def theta_at(
    b: Bench,
    *,
    variance: float = 1.0,
    lengthscales: float = 1.0,
    noise: float = 1.0,
    shift: float = 0.0,
) -> Theta:
    """Return the bench's θ with its parts multiplied by factors and its inducing inputs, if any, shifted."""
    theta = b.problem.theta(b.model, b.method.basis)
    kernel = theta.kernel._replace(
        variance=theta.kernel.variance * variance,
        lengthscales=theta.kernel.lengthscales * lengthscales,
    )
    likelihood = tree_map(lambda x: x * noise, theta.likelihood)
    inducing = theta.inducing if b.method.basis == "data" else theta.inducing + shift
    return Theta(kernel, likelihood, inducing)


def kernel_paths(b: Bench) -> dict[str, Callable[[float], Theta]]:
    """Return paths of θ along the logarithms of the kernel's parameters."""
    return {
        "variance": lambda t: theta_at(b, variance=float(np.exp(t))),
        "lengthscales": lambda t: theta_at(b, lengthscales=float(np.exp(t))),
    }


def raw_at(b: Bench, theta: Theta) -> Theta:
    """Return unconstrained θ as arrays of the bench's backend."""
    raw: Theta = tree_map(b.ops.asarray, unconstrain(theta))
    return raw


def dense_of(
    b: Bench, theta: Theta | None = None, rows: npt.NDArray[np.int64] | None = None
) -> Dense:
    """Return the dense algebra of a bench at `theta` and on `rows`; by default at its own θ on all rows."""
    rows = np.arange(b.n) if rows is None else rows
    theta = theta_at(b) if theta is None else theta
    case = MatrixCase("t-svgp tied-projected", b.model.likelihood.name, b.model.kernel.name)
    # t-VGP adds none to K_ff, which it never factorises
    jitter = 0.0 if b.method.name == "t-vgp" else b.model.jitter
    dense = Dense(case, theta, b.problem.X[rows], b.y[rows], b.n / len(rows), jitter=jitter)
    dense.likelihood = b.model.likelihood  # with its own settings, which a case does not hold
    return dense


def dual(b: Bench, state: Tree, theta: Theta) -> float:
    """Return the objective of the method's M-steps at θ, for a state at the bench's own θ."""
    ops = b.ops
    invariant = b.method.invariant(ops, b.prior, b.model.conditional(theta_at(b)), state)
    value = m_objective(ops, b.model, b.method, raw_at(b, theta), invariant, b.full, b.one)
    return float(ops.to_numpy(value))


def standard(b: Bench, state: Tree, theta: Theta) -> float:
    """Return the bound at θ with the q(u) of a state held fixed, by dense algebra."""
    m, S = b.posterior(state)[:2]
    return dense_of(b, theta).elbo(m, S)


def slope(f: Callable[[float], T], h: float = 3e-3) -> T:
    """Return f′(0) from six values at distances up to 3h."""
    # truncation h⁶f⁽⁷⁾/140 = 5e-18 f⁽⁷⁾ lies far below the rounding of f, ε/h = 7e-14
    d1, d2, d3 = (f(k * h) - f(-k * h) for k in (1, 2, 3))
    return (45.0 * d1 - 9.0 * d2 + d3) / (60.0 * h)


def slope_along(f: Callable[..., T], point: Sequence[Any], direction: Sequence[Any]) -> T:
    """Return the slope of f at a point along a direction; both have one entry per argument of f."""
    return slope(lambda t: f(*(x + t * d for x, d in zip(point, direction, strict=True))))


def curvature(f: Callable[[float], float], h: float = 2e-2) -> float:
    """Return f″(0) from seven values at distances up to 3h."""
    # rounding grows as ε/h², so h is larger: 6e-13, beside a truncation h⁶f⁽⁸⁾/560 = 1e-13 f⁽⁸⁾
    s1, s2, s3 = (f(k * h) + f(-k * h) for k in (1, 2, 3))
    return (270.0 * s1 - 27.0 * s2 + 2.0 * s3 - 490.0 * f(0.0)) / (180.0 * h * h)
