"""Kernels, and SVGP at a given q: values, gradients, and the same q in t-SVGP's parameters."""

from __future__ import annotations

import functools

import numpy as np
from oracle_agreement import agree
from oracle_files import Oracle, OracleError
from oracle_problem import (
    Problem,
    mean_cholesky_state,
    oracle_model,
    problem,
    q_svgp,
    theta_of,
)

from svgpbench.methods import AnyMethod
from svgpbench.methods.dual import DualSVGP
from svgpbench.methods.mean_covariance import MeanCholesky, QState
from svgpbench.methods.tying import DualState
from svgpbench.ops import Array, Ops, Tree
from svgpbench.training.blocks import factor_at, prior_at


def check_kernel(ops: Ops, oracle: Oracle) -> None:
    """Blocks as GPflow has them, and the prior's K(Z, Z) with the jitter that they lack."""
    model, theta = oracle_model(oracle), theta_of(ops, oracle)
    X = ops.asarray(oracle.number("inputs", "X"))
    Kzz = oracle.number("expected", "Kzz")
    k, p, Z = model.kernel, theta.kernel, theta.inducing
    agree(ops.to_numpy(k.cross(ops, p, Z, Z))[0], Kzz, "Kzz")
    agree(ops.to_numpy(k.cross(ops, p, Z, X))[0], oracle.number("expected", "Kzx"), "Kzx")
    agree(ops.to_numpy(k.diagonal(ops, p, X))[0], oracle.number("expected", "Kdiag"), "Kdiag")
    jittered = Kzz + oracle.jitter * np.eye(len(Kzz))
    agree(ops.to_numpy(model.covariance(ops, theta).square(Z))[0], jittered, "Kzz + jitter")


def _svgp(ops: Ops, oracle: Oracle) -> tuple[Problem, AnyMethod, QState]:
    whiten = oracle.inputs.get("whiten", oracle.name.endswith("_white.json"))
    chol = oracle.number("inputs", "q_sqrt")
    if np.any(np.triu(chol, 1)):
        raise OracleError(f"{oracle.name}: inputs.q_sqrt is not lower triangular")
    state = mean_cholesky_state(ops, oracle.number("inputs", "q_mu"), chol)
    return problem(ops, oracle), q_svgp(whiten=bool(whiten)), state


def check_svgp_values(ops: Ops, oracle: Oracle) -> None:
    x, method, state = _svgp(ops, oracle)
    expected = functools.partial(oracle.number, "expected")
    agree(x.elbo(method, state), expected("elbo"), "elbo")
    q = method.factorise(ops, x.prior, state)
    agree(ops.to_numpy(method.kl(ops, x.f, q)), expected("kl"), "kl")
    mean, var = x.marginals(method, state)
    agree(mean, expected("mean"), "mean")
    agree(var, expected("var"), "var")
    mu, v = method.marginals(ops, x.f, q)
    V = ops.to_numpy(x.likelihood.variational_expectations(ops, x.y, mu, v))
    agree(V, expected("variational_expectations"), "variational_expectations")


def check_svgp_minibatch(ops: Ops, oracle: Oracle) -> None:
    """The first 10 rows with scale n/10."""
    _, method, state = _svgp(ops, oracle)
    first = problem(ops, oracle, rows=10)
    scale = len(oracle.number("inputs", "y")) / 10
    agree(
        first.elbo(method, state, scale),
        oracle.number("expected", "elbo_first10_scaled"),
        "elbo_first10_scaled",
    )


def check_svgp_gradients(ops: Ops, oracle: Oracle) -> None:
    """With respect to constrained variance, lengthscales, Z and the mean of q."""
    x, method, state = _svgp(ops, oracle)
    on_all = x.data()

    def bound(tree: Tree) -> Array:
        kernel_parameters, Z, mean = tree
        theta = x.theta._replace(kernel=kernel_parameters, inducing=Z)
        f = factor_at(ops, x.model, method, theta, prior_at(ops, x.model, method, theta), x.X)
        q = state._replace(q=MeanCholesky(mean, state.q.chol))
        data = on_all._replace(likelihood=x.model.conditional(theta))
        return method.bound(ops, f, data, q)

    gradient = ops.jit(ops.value_and_grad(bound))
    _, (g_kernel, g_Z, g_mean) = gradient((x.theta.kernel, x.theta.inducing, state.q.mean))
    expected = functools.partial(oracle.number, "expected")
    for what, got in (
        ("grad_variance", ops.to_numpy(g_kernel.variance)[0]),
        ("grad_lengthscales", ops.to_numpy(g_kernel.lengthscales)[0]),
        ("grad_Z", ops.to_numpy(g_Z)),
        ("grad_q_mu", ops.to_numpy(g_mean)[0]),
    ):
        agree(got, expected(what), what)


def check_svgp_dual(ops: Ops, oracle: Oracle) -> None:
    """The same q in t-SVGP's parameters has the same bound, KL and predictions."""
    x, method, state = _svgp(ops, oracle)
    mean, cov = x.whitened(method, state)
    precision = np.linalg.inv(cov)
    dual = DualState(
        ops.asarray((precision @ mean)[None]),
        ops.asarray((precision - np.eye(len(mean)))[None]),
        (),
        ops.zeros(()),
    )
    t_svgp = DualSVGP()
    expected = functools.partial(oracle.number, "expected")
    agree(x.elbo(t_svgp, dual), expected("elbo"), "elbo")
    kl = t_svgp.kl(ops, x.f, t_svgp.factorise(ops, x.prior, dual))
    agree(ops.to_numpy(kl), expected("kl"), "kl")
    got = x.marginals(t_svgp, dual)
    agree(got[0], expected("mean"), "mean")
    agree(got[1], expected("var"), "var")
