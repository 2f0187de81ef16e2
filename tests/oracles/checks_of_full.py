"""Exact regression, and q on all data."""

from __future__ import annotations

from typing import Any

from oracle_agreement import agree
from oracle_files import Oracle
from oracle_problem import (
    Problem,
    compiled_step,
    problem,
)

from svgpbench.methods import AnyMethod
from svgpbench.methods.exact import GPR
from svgpbench.methods.full import (
    FullFactor,
    FullPrior,
    SitePosterior,
)
from svgpbench.numerics import gaussian
from svgpbench.ops import Ops

VGP_STEPS = 40


def _full_blocks(ops: Ops, x: Problem, method: AnyMethod, *, jitter: float) -> tuple[Any, Any, Any]:
    """Prior, factor at all data and factor at the test inputs, f itself having the jitter.

    The files' VGP adds it to K_ff wherever K_ff stands, which is another model by 1e-6.
    """
    cov = x.model.covariance(ops, x.theta)
    K = cov.cross(x.X, x.X) + jitter * ops.eye(x.y.shape[0])
    at_data, at_test = cov.diagonal(x.X) + jitter, cov.diagonal(x.X_test)
    cross = cov.cross(x.X, x.X_test)
    if isinstance(method, SitePosterior):
        return FullPrior(K), FullFactor(K, K, at_data), FullFactor(K, cross, at_test)
    p = gaussian.prior(ops, K)
    return p, gaussian.factor(ops, p, K, at_data), gaussian.factor(ops, p, cross, at_test)


def check_gpr(ops: Ops, oracle: Oracle) -> None:
    """The log marginal likelihood and predictions, without any jitter."""
    x, method = problem(ops, oracle), GPR()
    p, f, at_test = _full_blocks(ops, x, method, jitter=0.0)
    start = method.initial_state(ops, p, 1, x.y.shape[0])
    state = method.e_step(ops, f, x.data(), start, x.scalar(1.0))
    value = method.bound(ops, f, x.data(), state)
    agree(
        ops.to_numpy(value),
        oracle.number("expected", "log_marginal_likelihood"),
        "log_marginal_likelihood",
    )
    mean, var = method.marginals(ops, at_test, method.factorise(ops, p, state))
    agree(ops.to_numpy(mean)[0], oracle.number("expected", "mean"), "mean")
    agree(ops.to_numpy(var)[0], oracle.number("expected", "var"), "var")


def check_vgp(method: AnyMethod, ops: Ops, oracle: Oracle) -> None:
    """The optimum that natural-gradient steps of rate 1 reach from the prior."""
    x = problem(ops, oracle)
    p, f, at_test = _full_blocks(ops, x, method, jitter=oracle.jitter)
    step = compiled_step(ops, x.model.likelihood, method)
    one = x.scalar(1.0)
    state = method.initial_state(ops, p, 1, x.y.shape[0])
    for _ in range(VGP_STEPS):
        state = step(f, x.theta.likelihood, x.y, x.index, state, one, one)
    value = method.bound(ops, f, x.data(), state)
    agree(ops.to_numpy(value), oracle.number("expected", "elbo_at_optimum"), "elbo_at_optimum")
    mean, var = method.marginals(ops, at_test, method.factorise(ops, p, state))
    agree(ops.to_numpy(mean)[0], oracle.number("expected", "mean"), "mean")
    agree(ops.to_numpy(var)[0], oracle.number("expected", "var"), "var")
