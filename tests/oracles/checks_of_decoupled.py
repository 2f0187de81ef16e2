"""Two bases: decoupled, orthogonal, hybrid."""

from __future__ import annotations

import functools

from oracle_agreement import agree
from oracle_files import Oracle, numbers
from oracle_problem import (
    mean_cholesky_state,
)

from svgpbench.kernels import Model, Theta
from svgpbench.kernels.bases import Decoupled
from svgpbench.kernels.kernels import KernelParameters, kernel, kernels
from svgpbench.likelihoods import (
    GaussianLikelihood,
    NoParameters,
)
from svgpbench.methods import AnyMethod
from svgpbench.methods.decoupled import DecoupledState, DecoupledSVGP, MeanPrecision
from svgpbench.methods.gamma_steps import TwoPartState
from svgpbench.ops import Ops, Tree
from svgpbench.training.blocks import factor_at, prior_at

UNWHITENED = "q-svgp natgrad unwhitened"
DENSE_JITTER = 1e-6
"""The file's KLs have 1e-10 added to both dense covariances, which moves them by so much."""


def check_decoupled(ops: Ops, oracle: Oracle) -> None:
    """DECOUPLED: KL and marginals at the test inputs."""
    given = functools.partial(oracle.number, "inputs")
    q = MeanPrecision(ops.asarray(given("a")[None]), ops.asarray(given("B_cholesky")[None]))
    _decoupled(ops, oracle, "decoupled", DecoupledSVGP(), DecoupledState(q, ()))


def check_two_part(key: str, method: AnyMethod, ops: Ops, oracle: Oracle) -> None:
    """ORTH and HYBRID: KL and marginals at the test inputs."""
    given = functools.partial(oracle.number, "inputs")
    q = mean_cholesky_state(ops, given("m_beta"), given("S_cholesky"))
    _decoupled(ops, oracle, key, method, TwoPartState(q, ops.asarray(given("a")[None]), ()))


def _decoupled(ops: Ops, oracle: Oracle, key: str, method: AnyMethod, state: Tree) -> None:
    given = functools.partial(oracle.number, "inputs")
    bases = Decoupled(ops.asarray(given("gamma_or_alpha")), ops.asarray(given("beta")))
    parameters = KernelParameters(
        ops.asarray(given("variance").reshape(1)), ops.asarray(given("lengthscales")[None])
    )
    model = Model(
        kernel(oracle.word("kernel", list(kernels()))), GaussianLikelihood(), oracle.jitter
    )
    theta = Theta(parameters, NoParameters(), bases)
    p = prior_at(ops, model, method, theta)
    f = factor_at(ops, model, method, theta, p, ops.asarray(given("Xtest")))
    q = method.factorise(ops, f, state)
    mean, var = method.marginals(ops, f, q)
    expected, where = oracle.expected[key], f"{oracle.name}: expected.{key}"
    agree(ops.to_numpy(mean)[0], numbers(expected, "mean", where), f"{key} mean")
    agree(ops.to_numpy(var)[0], numbers(expected, "var", where), f"{key} var")
    kl = float(ops.to_numpy(method.kl(ops, f, q)))
    assert abs(kl / float(numbers(expected, "kl", where)) - 1.0) < DENSE_JITTER, f"{key} kl: {kl}"
