"""Adapter of GPJax 1.0: `natural_gradient_step` on variational Gaussians."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import equinox as eqx
import gpjax as gpx
import jax
import jax.numpy as jnp
import numpyro.distributions as npd
from gpjax.integrators import GHQuadratureIntegrator
from gpjax.kernels.computations import DenseKernelComputation
from gpjax.natural_gradients import natural_gradient_step, partition_variational
from gpjax.parameters import NonNegativeReal, PositiveReal
from gpjax.variational_families import VariationalGaussian, WhitenedVariationalGaussian

from svgp_reference import Problem

jax.config.update("jax_enable_x64", True)

library = f"GPJax {gpx.__version__}"

KERNELS = {
    "se": gpx.kernels.RBF,
    "matern32": gpx.kernels.Matern32,
    "matern52": gpx.kernels.Matern52,
}


# what is static is compared: JAX compiles once for equal kinds, and not again for each problem
@dataclass(frozen=True)
class JitteredGram(DenseKernelComputation):
    """Gram matrices with the jitter on K(Z, Z) alone. GPJax's own also goes on the data's variances."""

    jitter: float

    def _gram(self, kernel: Any, x: Any) -> Any:
        return super()._gram(kernel, x) + self.jitter * jnp.eye(len(x))


quadrature = cache(GHQuadratureIntegrator)


class Probit(gpx.likelihoods.Bernoulli):
    """Likelihood p(y = 1 | f) = Φ(f); GPJax's is squashed to [1e-3, 1 − 1e-3]."""

    def link_function(self, f: Any) -> Any:
        """Return p(y | f)."""
        return npd.Bernoulli(probs=jax.scipy.special.ndtr(f))


class Kind(NamedTuple):
    """The parts of a problem that are not numbers of its model."""

    kernel: str
    likelihood: str
    nodes: int
    whitened: bool
    jitter: float


def _kind(problem: Problem) -> Kind:
    nodes = problem.info["gauss_hermite_nodes"]
    return Kind(problem.kernel, problem.likelihood, nodes, problem.whitened, problem.jitter)


def _values(problem: Problem) -> dict[str, Any]:
    """Return the constrained parameters."""
    names = ("variance", "lengthscales", "mean_constant", "Z", "q_mean", "q_factor")
    values = {name: getattr(problem, name) for name in names} | dict(problem.likelihood_parameters)
    return {name: jnp.asarray(value, dtype=float) for name, value in values.items()}


def _likelihood(kind: Kind, values: dict[str, Any]) -> Any:
    if kind.likelihood == "gaussian":
        deviation = NonNegativeReal(jnp.sqrt(values["noise_variance"]))
        return gpx.likelihoods.Gaussian(deviation)
    if kind.likelihood == "student-t":
        scale, df = (PositiveReal(values[name]) for name in ("scale", "degrees_of_freedom"))
        return gpx.likelihoods.StudentT(df, scale, quadrature(kind.nodes))
    kinds = {"bernoulli-probit": Probit, "poisson": gpx.likelihoods.Poisson}
    return kinds[kind.likelihood](quadrature(kind.nodes))


@eqx.filter_jit
def _family(kind: Kind, values: dict[str, Any]) -> Any:
    """Return the variational family at these parameters."""
    scales = values["lengthscales"]
    kernel = KERNELS[kind.kernel](
        lengthscale=PositiveReal(scales if len(scales) > 1 else scales[0]),
        variance=PositiveReal(values["variance"]),
        compute_engine=JitteredGram(kind.jitter),
    )
    mean = gpx.mean_functions.Constant(values["mean_constant"])
    model = gpx.gps.Prior(kernel, mean, jitter=0.0) * _likelihood(kind, values)
    q_mean = values["q_mean"][:, None]
    if kind.whitened:
        return WhitenedVariationalGaussian(model, values["Z"], q_mean, values["q_factor"])
    q_mean = q_mean + values["mean_constant"]  # its u is f(Z)
    return VariationalGaussian(model, values["Z"], q_mean, values["q_factor"])


def _batch(problem: Problem) -> Any:
    X, y = jnp.asarray(problem.X_batch), jnp.asarray(problem.y_batch[:, None])
    return gpx.Dataset(X, y, problem.n)


@eqx.filter_jit
def _parts(family: Any, batch: Any) -> dict[str, Any]:
    """Return the bound and its parts."""
    return {
        "bound": gpx.objectives.elbo(family, batch),
        "kl": family.prior_kl(),
        "expected_log_likelihood": gpx.objectives.variational_expectation(family, batch),
    }


@eqx.filter_jit
def _predicted(family: Any, X: Any, y: Any) -> dict[str, Any]:
    """Return the marginals of q(f), and the log density of y for the likelihoods that have it."""
    f, likelihood = family.condition(None)(X, covariance="diagonal"), family.model.likelihood
    found = {"mean": f.mean, "variance": f.variance}
    if isinstance(likelihood, gpx.likelihoods.Gaussian):
        predicted = likelihood(f)  # of all rows together
        found["log_density"] = npd.Normal(predicted.mean, jnp.sqrt(predicted.variance)).log_prob(y)
    elif isinstance(likelihood, Probit):
        found["log_density"] = likelihood(f).log_prob(y)
    return found  # other likelihoods are predicted at the mean of f


@eqx.filter_jit
def _slopes(kind: Kind, values: dict[str, Any], batch: Any) -> dict[str, Any]:
    """Return the gradient of the bound in each of the values."""
    return dict(jax.grad(lambda v: gpx.objectives.elbo(_family(kind, v), batch))(values))


@eqx.filter_jit
def _stepped(family: Any, batch: Any, gamma: Any) -> Any:
    """Return the family after one natural-gradient step that is not shortened."""
    q, theta = partition_variational(family)
    q, _ = natural_gradient_step(
        q, theta, batch, lambda f, d: -gpx.objectives.elbo(f, d), gamma, max_backoff=0
    )
    return eqx.combine(q, theta)


def build(problem: Problem) -> tuple[Any, Problem]:
    """Return the variational family at the problem's θ and q."""
    return _family(_kind(problem), _values(problem)), problem


def bound(built: tuple[Any, Problem]) -> dict[str, Any]:
    """Return the bound and its parts."""
    family, problem = built
    return dict(_parts(family, _batch(problem)))


def predict(built: tuple[Any, Problem], X: Any) -> dict[str, Any]:
    """Return the marginals of q(f), and the log density of the problem's test targets."""
    family, problem = built
    return dict(_predicted(family, jnp.asarray(X), jnp.asarray(problem.y_test)))


def step(built: tuple[Any, Problem], gamma: float) -> tuple[Any, Problem]:
    """Take one natural-gradient step."""
    family, problem = built
    return _stepped(family, _batch(problem), jnp.asarray(gamma)), problem


def gradient(built: tuple[Any, Problem]) -> dict[str, Any]:
    """Return the gradient of the bound in constrained parameters."""
    problem = built[1]
    return dict(_slopes(_kind(problem), _values(problem), _batch(problem)))
