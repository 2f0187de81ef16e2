"""A reference file turned into a model, θ and a batch on one backend."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from oracle_files import Oracle, OracleError

from svgpbench.kernels import Model, Theta
from svgpbench.kernels.kernels import KernelParameters, kernel, kernels
from svgpbench.likelihoods import (
    BernoulliLogit,
    BernoulliProbit,
    Conditional,
    GaussianLikelihood,
    GaussianParameters,
    Likelihood,
    NoParameters,
    Poisson,
    RobustMax,
    StudentT,
    StudentTParameters,
)
from svgpbench.methods import AnyMethod, DataTerm
from svgpbench.methods.dual import DualSVGP
from svgpbench.methods.mean_covariance import MeanCholesky, MeanCholeskySVGP, QState
from svgpbench.numerics.gaussian import Factor, Prior
from svgpbench.ops import Array, Ops, Tree
from svgpbench.training.blocks import factor_at, prior_at

Floats = npt.NDArray[np.float64]

SERVED = ("gaussian", "bernoulli-probit", "bernoulli-logit", "student-t", "poisson")
"""Likelihoods of one latent that the package has; a file of another one fails."""

GPFLOW_NODES, GPFLOW_SQUASH, DENSE_NODES = 20, 1e-3, 200
GPFLOW_ROBUST_MAX_SQUASH = 1e-6
STUDENT_T_SCALE, STUDENT_T_DF = 0.7, 3.0
"""Settings that the files state in their notes, or that are the default of who made them."""


def likelihood_word(oracle: Oracle) -> str:
    """The likelihood's name: from the inputs, the file's name, or that there is noise."""
    if oracle.kind in ("gpr", "sgpr"):
        return "gaussian"
    word = oracle.word("likelihood", list(SERVED))
    if word not in SERVED and oracle.inputs.get("noise_variance") is not None:
        return "gaussian"
    return word


def build_likelihood(name: str, *, nodes: int, squash: float) -> Likelihood:
    made: dict[str, Likelihood] = {
        "gaussian": GaussianLikelihood(),
        "bernoulli-probit": BernoulliProbit(nodes=nodes, squash=squash),
        "bernoulli-logit": BernoulliLogit(nodes=nodes),
        "student-t": StudentT(nodes=nodes, df=STUDENT_T_DF),
        "poisson": Poisson(nodes=nodes),
    }
    return made[name]


def likelihood_parameters(ops: Ops, name: str, noise_variance: npt.ArrayLike) -> Tree:
    """The parameters at which a file was made."""
    if name == "gaussian":
        return GaussianParameters(ops.asarray(np.float64(noise_variance)))
    if name == "student-t":
        return StudentTParameters(ops.asarray(np.float64(STUDENT_T_SCALE)))
    return NoParameters()


def robust_max(oracle: Oracle) -> RobustMax:
    return RobustMax(
        classes=int(oracle.number("inputs", "classes")),
        epsilon=float(oracle.number("inputs", "epsilon")),
        nodes=GPFLOW_NODES,
        squash=GPFLOW_ROBUST_MAX_SQUASH,
    )


def oracle_model(oracle: Oracle) -> Model:
    """Kernel, likelihood (nodes and squash as the file's author had them) and jitter."""
    name = oracle.word("kernel", list(kernels()))
    if name not in kernels():
        raise OracleError(f"{oracle.name}: no kernel named in inputs.kernel or the file's name")
    if oracle.kind == "kernel":
        return Model(kernel(name), GaussianLikelihood(), jitter=oracle.jitter)
    if oracle.kind == "robustmax":
        return Model(kernel(name), robust_max(oracle), jitter=oracle.jitter)
    dense = oracle.kind == "m_step"
    likelihood = build_likelihood(
        likelihood_word(oracle),
        nodes=int(oracle.settings.get("nodes", DENSE_NODES if dense else GPFLOW_NODES)),
        squash=float(oracle.settings.get("squash", 0.0 if dense else GPFLOW_SQUASH)),
    )
    return Model(kernel(name), likelihood, jitter=oracle.jitter)


def theta_of(ops: Ops, oracle: Oracle, **changes: npt.ArrayLike) -> Theta:
    """Constrained θ of the file, with some of its hyperparameters replaced."""

    def value(name: str) -> Floats:
        return np.asarray(changes.get(name, oracle.number("inputs", name)), dtype=np.float64)

    noise: Any = NoParameters()
    if oracle.kind not in ("kernel", "robustmax"):
        name = likelihood_word(oracle)
        variance = oracle.number("inputs", "noise_variance") if name == "gaussian" else 0.0
        noise = likelihood_parameters(ops, name, variance)
    parameters = KernelParameters(
        ops.asarray(value("variance").reshape(1)),
        ops.asarray(value("lengthscales").reshape(1, -1)),
    )
    return Theta(parameters, noise, ops.asarray(value("Z")))


@functools.cache
def compiled_step(ops: Ops, likelihood: Likelihood, method: AnyMethod) -> Callable[..., Tree]:
    """An E-step sees no kernel, so files that differ in theirs share what is compiled."""

    def step(
        f: Factor, parameters: Tree, y: Array, index: Array, state: Tree, rate: Array, scale: Array
    ) -> Tree:
        data = DataTerm(Conditional(likelihood, parameters), y, index, scale)
        return method.e_step(ops, f, data, state, rate)

    return ops.jit(step)


@dataclass(frozen=True)
class Problem:
    """Everything at the file's θ; `f` is the factor of the training inputs."""

    ops: Ops
    model: Model
    theta: Theta
    prior: Prior
    f: Factor
    likelihood: Conditional
    X: Array
    y: Array
    X_test: Array
    index: Array

    def elbo(self, method: AnyMethod, state: Tree, scale: float = 1.0) -> float:
        """The bound at the file's θ."""
        value = method.bound(self.ops, self.f, self.data(scale), state)
        return float(self.ops.to_numpy(value))

    def data(self, scale: float = 1.0) -> DataTerm:
        """All the problem's rows."""
        return DataTerm(self.likelihood, self.y, self.index, self.scalar(scale))

    def scalar(self, x: float) -> Array:
        return self.ops.asarray(np.float64(x))

    def start(self, method: AnyMethod) -> Tree:
        """The state of q = p."""
        return method.initial_state(self.ops, self.prior, self.model.latents, self.y.shape[0])

    def stepper(self, method: AnyMethod, scale: float = 1.0) -> Callable[[Tree, Array], Tree]:
        """A compiled E-step on all the problem's rows, (state, rate) → state."""
        step = compiled_step(self.ops, self.model.likelihood, method)
        parameters, s = self.theta.likelihood, self.scalar(scale)
        return lambda state, rate: step(self.f, parameters, self.y, self.index, state, rate, s)

    def whitened(self, method: AnyMethod, state: Tree) -> tuple[Floats, Floats]:
        """Mean [M] and covariance [M, M] of L⁻¹u."""
        q = method.factorise(self.ops, self.prior, state)
        identity = self.ops.eye(self.prior.L.shape[-1])[None]
        return self._host(method.posterior(self.ops, Prior(identity, identity), q))

    def posterior(self, method: AnyMethod, state: Tree) -> tuple[Floats, Floats]:
        """Mean [M] and covariance [M, M] of u."""
        q = method.factorise(self.ops, self.prior, state)
        return self._host(method.posterior(self.ops, self.prior, q))

    def marginals(self, method: AnyMethod, state: Tree) -> tuple[Floats, Floats]:
        """Mean and variance of f at the test inputs."""
        f = factor_at(self.ops, self.model, method, self.theta, self.prior, self.X_test)
        q = method.factorise(self.ops, self.prior, state)
        return self._host(method.marginals(self.ops, f, q))

    def _host(self, pair: tuple[Array, Array]) -> tuple[Floats, Floats]:
        first, second = pair
        return self.ops.to_numpy(first)[0], self.ops.to_numpy(second)[0]


def problem(ops: Ops, oracle: Oracle, *, rows: int | None = None, copies: int = 1) -> Problem:
    """The file's model at its θ; `rows` keeps the first so many data, `copies` repeats them."""
    model, theta = oracle_model(oracle), theta_of(ops, oracle)
    X = ops.asarray(np.tile(oracle.number("inputs", "X")[:rows], (copies, 1)))
    y = np.tile(oracle.number("inputs", "y")[:rows], copies)
    coupled = DualSVGP()  # every coupled method has the same blocks
    p = prior_at(ops, model, coupled, theta)
    return Problem(
        ops,
        model,
        theta,
        p,
        factor_at(ops, model, coupled, theta, p, X),
        model.conditional(theta),
        X,
        ops.asarray(y),
        ops.asarray(oracle.number("inputs", "Xtest")),
        ops.asarray(np.arange(len(y))),
    )


def mean_cholesky_state(ops: Ops, mean: Floats, chol: Floats) -> QState:
    """State of a natural-gradient q-SVGP from host arrays [P, M] and [P, M, M]; P may be left out."""
    M = mean.shape[-1]
    q = MeanCholesky(ops.asarray(mean.reshape(-1, M)), ops.asarray(chol.reshape(-1, M, M)))
    return QState(q, (), ops.zeros(()))


def q_svgp(*, whiten: bool, gradient: str = "closed-form") -> MeanCholeskySVGP:
    return MeanCholeskySVGP(whiten=whiten, gradient=gradient)
