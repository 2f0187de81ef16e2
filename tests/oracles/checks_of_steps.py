"""Natural gradients, their fixed points, and the objectives of the M-step."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np
from oracle_agreement import agree
from oracle_files import Oracle, numbers
from oracle_problem import (
    Problem,
    mean_cholesky_state,
    problem,
    q_svgp,
    theta_of,
)

from svgpbench.methods import AnyMethod
from svgpbench.methods.collapsed import SGPR
from svgpbench.methods.dual import DualSVGP
from svgpbench.methods.tying import DualState, Sites
from svgpbench.numerics.gaussian import matvec
from svgpbench.ops import Array, Ops, Tree
from svgpbench.training.blocks import factor_at, prior_at


def check_natgrad(method: AnyMethod, ops: Ops, oracle: Oracle) -> None:
    """The bound after every step, and the last q and its predictions."""
    x = problem(ops, oracle)
    expected = functools.partial(oracle.number, "expected")
    trace = expected("elbo_trace")
    step, rate, state = x.stepper(method), x.scalar(float(oracle.number("inputs", "gamma"))), None
    bounds = []
    for _ in trace:
        state = x.start(method) if state is None else step(state, rate)
        bounds.append(x.elbo(method, state))
    agree(bounds, trace, "elbo_trace")
    mean, cov = x.whitened(method, state)
    agree(mean, expected("whitened_q_mu"), "whitened_q_mu")
    agree(cov, expected("whitened_q_cov"), "whitened_q_cov")
    mu, var = x.marginals(method, state)
    agree(mu, expected("mean"), "mean")
    agree(var, expected("var"), "var")
    assert float(ops.to_numpy(state.halvings)) == 0.0  # the file's steps were not damped


def check_sgpr(method: AnyMethod, ops: Ops, oracle: Oracle) -> None:
    """One natural-gradient step of rate 1 from the prior gives Titsias's optimal q and bound.

    The data come twice with scale ½, which changes nothing but tells whether the scale is applied.
    """
    check_sgpr_state(method, ops, oracle, copies=2)


def check_sgpr_state(method: AnyMethod, ops: Ops, oracle: Oracle, *, copies: int) -> None:
    x = problem(ops, oracle, copies=copies)
    state = x.stepper(method, 1.0 / copies)(x.start(method), x.scalar(1.0))
    expected = functools.partial(oracle.number, "expected")
    agree(x.elbo(method, state, 1.0 / copies), expected("bound"), "bound")
    mu, var = x.marginals(method, state)
    agree(mu, expected("mean"), "mean")
    agree(var, expected("var"), "var")
    mean, cov = x.posterior(method, state)
    agree(mean, expected("q_mean"), "q_mean")
    agree(cov, expected("q_cov"), "q_cov")


def check_sgpr_collapsed(ops: Ops, oracle: Oracle) -> None:
    """Titsias's bound itself, and his q."""
    check_sgpr_state(SGPR(), ops, oracle, copies=1)


def _from_sites(x: Problem, oracle: Oracle, *, keep: bool) -> DualState:
    sites = Sites(
        x.ops.asarray(oracle.number("expected", "site_lambda1")[None]),
        x.ops.asarray(oracle.number("expected", "site_beta")[None]),
    )
    C = (x.f.W * sites.beta[..., None, :]) @ x.ops.matrix_transpose(x.f.W)
    return DualState(matvec(x.f.W, sites.lambda1), C, sites if keep else (), x.ops.zeros(()))


def check_e_step_sites(ops: Ops, oracle: Oracle) -> None:
    """E-steps of rate ½ from the prior reach the file's sites, and their sums."""
    x, method = problem(ops, oracle), DualSVGP(tying="untied")

    def run(state: Tree, rate: Array) -> Tree:
        data = x.data()

        def step(s: Tree, _: Tree) -> Tree:
            return method.e_step(ops, x.f, data, s, rate)

        return ops.scan(step, state, (), length=300)

    state = ops.jit(run)(x.start(method), x.scalar(0.5))
    agree(
        ops.to_numpy(state.sites.lambda1)[0],
        oracle.number("expected", "site_lambda1"),
        "site_lambda1",
    )
    agree(ops.to_numpy(state.sites.beta)[0], oracle.number("expected", "site_beta"), "site_beta")
    wanted = _from_sites(x, oracle, keep=True)
    agree(ops.to_numpy(state.c), ops.to_numpy(wanted.c), "c")
    agree(ops.to_numpy(state.C), ops.to_numpy(wanted.C), "C")


def _objectives(x: Problem, method: AnyMethod, state: Tree, oracle: Oracle, key: str) -> None:
    """The bound at every listed θ, q moving as the method says from the file's θ."""
    ops = x.ops
    invariant = method.invariant(ops, x.prior, x.likelihood, state)
    on_all = x.data()

    def objective(kernel_parameters: Tree) -> Array:
        theta = x.theta._replace(kernel=kernel_parameters)
        f = factor_at(ops, x.model, method, theta, prior_at(ops, x.model, method, theta), x.X)
        data = on_all._replace(likelihood=x.model.conditional(theta))
        return method.bound(ops, f, data, method.state_at(ops, f, data.likelihood, invariant))

    compiled = ops.jit(objective)
    rows: list[Mapping[str, object]] = oracle.expected["objectives"]
    for i, row in enumerate(rows):
        where = f"{oracle.name}: objectives[{i}]"
        changes = {k: numbers(row, k, where) for k in ("variance", "lengthscales")}
        value = compiled(theta_of(ops, oracle, **changes).kernel)
        what = f"{key} at variance {row['variance']}, lengthscales {row['lengthscales']}"
        agree(ops.to_numpy(value), numbers(row, key, where), what)


def check_m_step_dual(tying: str, ops: Ops, oracle: Oracle) -> None:
    x, method = problem(ops, oracle), DualSVGP(tying=tying)
    state = _from_sites(x, oracle, keep=tying == "untied")
    _objectives(x, method, state, oracle, tying.replace("-", "_"))


def check_m_step_mean_cholesky(whiten: bool, ops: Ops, oracle: Oracle) -> None:
    """Holding (m, S) is the standard objective, holding the whitened (m_v, S_v) the whitened one."""
    x, dual = problem(ops, oracle), DualSVGP()
    read = x.whitened if whiten else x.posterior
    mean, cov = read(dual, _from_sites(x, oracle, keep=False))
    state = mean_cholesky_state(ops, mean, np.linalg.cholesky(cov))
    _objectives(x, q_svgp(whiten=whiten), state, oracle, "whitened" if whiten else "standard")
