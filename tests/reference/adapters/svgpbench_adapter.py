"""Adapter of svgpbench: q-SVGP with natural gradients in closed form, on the NumPy backend."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import svgpbench
from svgp_reference import Problem
from svgpbench.backends import load_backend
from svgpbench.kernels import Model, Theta
from svgpbench.kernels.kernels import KernelParameters, kernel
from svgpbench.likelihoods import (
    BernoulliProbit,
    GaussianLikelihood,
    GaussianParameters,
    NoParameters,
    Poisson,
    StudentT,
    StudentTParameters,
)
from svgpbench.methods import DataTerm
from svgpbench.methods.mean_covariance import MeanCholesky, MeanCholeskySVGP, QState
from svgpbench.training.blocks import factor_at, marginals_at, prior_at

ops = load_backend("numpy")
library = f"svgpbench {svgpbench.__version__}"


class Built(NamedTuple):
    """A model at θ with its q."""

    problem: Problem
    model: Model
    method: MeanCholeskySVGP
    theta: Theta
    q: MeanCholesky


def build(problem: Problem) -> Built:
    """Return the model at the problem's θ and q."""
    p = problem.likelihood_parameters
    nodes = int(problem.info["gauss_hermite_nodes"]) or 20
    likelihood, parameters = {
        "gaussian": lambda: (
            GaussianLikelihood(),
            GaussianParameters(ops.asarray(np.float64(p["noise_variance"]))),
        ),
        "bernoulli-probit": lambda: (BernoulliProbit(nodes=nodes), NoParameters()),
        "poisson": lambda: (Poisson(nodes=nodes), NoParameters()),
        "student-t": lambda: (
            StudentT(nodes=nodes, df=p["degrees_of_freedom"]),
            StudentTParameters(ops.asarray(np.float64(p["scale"]))),
        ),
    }[problem.likelihood]()
    variance, lengthscales = np.array([problem.variance]), problem.lengthscales[None]
    model = Model(kernel(problem.kernel), likelihood, jitter=problem.jitter)
    theta = Theta(
        KernelParameters(variance, lengthscales),
        parameters,
        problem.Z,
        np.array([problem.mean_constant]),
    )
    q = MeanCholesky(problem.q_mean[None], problem.q_factor[None])
    return Built(problem, model, MeanCholeskySVGP(whiten=problem.whitened), theta, q)


def _data(built: Built, theta: Theta) -> tuple[Any, DataTerm]:
    """Return the method's blocks and the data term at θ."""
    x, problem = built, built.problem
    f = factor_at(
        ops, x.model, x.method, theta, prior_at(ops, x.model, x.method, theta), problem.X_batch
    )
    scale = np.float64(problem.scale)
    return f, DataTerm(x.model.conditional(theta), problem.y_batch, problem.batch, scale)


def _state(q: MeanCholesky) -> QState:
    return QState(q, (), ops.zeros(()))


def bound(built: Built) -> dict[str, Any]:
    """Return the bound and its parts."""
    f, data = _data(built, built.theta)
    q = built.method.factorise(ops, f, _state(built.q))
    V = data.likelihood.variational_expectations(ops, data.y, *built.method.marginals(ops, f, q))
    value = built.method.bound(ops, f, data, _state(built.q))
    return {"bound": value, "kl": built.method.kl(ops, f, q), "expected_log_likelihood": V}


def predict(built: Built, X: Any) -> dict[str, Any]:
    """Return the marginals of q(f), and the log density of the problem's test targets."""
    x = built
    prior = prior_at(ops, x.model, x.method, x.theta)
    mu, v = marginals_at(ops, x.model, x.method, x.theta, prior, _state(x.q), X)
    likelihood = x.model.conditional(x.theta)
    density = likelihood.log_predictive_density(ops, x.problem.y_test, mu, v)
    return {"mean": likelihood.of_f(mu)[0], "variance": v[0], "log_density": density}


def step(built: Built, gamma: float) -> Built:
    """Take one natural-gradient step."""
    f, data = _data(built, built.theta)
    state = built.method.e_step(ops, f, data, _state(built.q), np.float64(gamma))
    return built._replace(q=state.q)


def gradient(built: Built) -> dict[str, Any]:
    """Return the gradient of the bound in θ and q by autodiff."""

    def value(tree: tuple[Theta, MeanCholesky]) -> Any:
        theta, q = tree
        f, data = _data(built, theta)
        return built.method.bound(ops, f, data, _state(q))

    _, (theta, q) = ops.value_and_grad(value)((built.theta, built.q))
    found = {
        "variance": theta.kernel.variance[0],
        "lengthscales": theta.kernel.lengthscales[0],
        "mean_constant": theta.mean[0],
        "Z": theta.inducing,
        "q_mean": q.mean[0],
        "q_factor": q.chol[0],
    }
    return found | dict(theta.likelihood._asdict())
