"""Adapter of GPJax 1.0: `natural_gradient_step` on variational Gaussians."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

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


# JAX compiles again for what is static and not equal: hence the equality here and the cache below
@dataclass(frozen=True)
class JitteredGram(DenseKernelComputation):
    """Gram matrices with the jitter on K(Z, Z) alone. GPJax's own also goes on the data's variances."""

    jitter: float

    def _gram(self, kernel: Any, x: Any) -> Any:
        return super()._gram(kernel, x) + self.jitter * jnp.eye(len(x))


class Probit(gpx.likelihoods.Bernoulli):
    """Likelihood p(y = 1 | f) = Φ(f); GPJax's is squashed to [1e-3, 1 − 1e-3]."""

    def link_function(self, f: Any) -> Any:
        """Return p(y | f)."""
        return npd.Bernoulli(probs=jax.scipy.special.ndtr(f))


integrator = cache(GHQuadratureIntegrator)


def _values(problem: Problem) -> dict[str, Any]:
    """Return the constrained parameters in which the bound is differentiated."""
    names = ("variance", "lengthscales", "mean_constant", "Z", "q_mean", "q_factor")
    values = {name: getattr(problem, name) for name in names} | dict(problem.likelihood_parameters)
    values.pop("degrees_of_freedom", None)
    return {name: jnp.asarray(value, dtype=float) for name, value in values.items()}


def _likelihood(problem: Problem, values: dict[str, Any]) -> Any:
    if problem.likelihood == "gaussian":
        deviation = NonNegativeReal(jnp.sqrt(values["noise_variance"]))
        return gpx.likelihoods.Gaussian(deviation)
    quadrature = integrator(problem.info["gauss_hermite_nodes"])
    if problem.likelihood == "student-t":
        df = problem.likelihood_parameters["degrees_of_freedom"]
        return gpx.likelihoods.StudentT(df, PositiveReal(values["scale"]), quadrature)
    kinds = {"bernoulli-probit": Probit, "poisson": gpx.likelihoods.Poisson}
    return kinds[problem.likelihood](quadrature)


def _family(problem: Problem, values: dict[str, Any]) -> Any:
    """Return the variational family at these parameters."""
    scales = values["lengthscales"]
    kernel = KERNELS[problem.kernel](
        lengthscale=PositiveReal(scales if len(scales) > 1 else scales[0]),
        variance=PositiveReal(values["variance"]),
        compute_engine=JitteredGram(problem.jitter),
    )
    mean = gpx.mean_functions.Constant(values["mean_constant"])
    model = gpx.gps.Prior(kernel, mean, jitter=0.0) * _likelihood(problem, values)
    q_mean = values["q_mean"][:, None]
    if problem.whitened:
        return WhitenedVariationalGaussian(model, values["Z"], q_mean, values["q_factor"])
    q_mean = q_mean + values["mean_constant"]  # its u is f(Z)
    return VariationalGaussian(model, values["Z"], q_mean, values["q_factor"])


def _batch(problem: Problem) -> Any:
    return gpx.Dataset(
        jnp.asarray(problem.X_batch), jnp.asarray(problem.y_batch)[:, None], problem.n
    )


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
def _stepped(family: Any, batch: Any, gamma: Any) -> Any:
    """Return the family after one natural-gradient step that is not shortened."""
    q, theta = partition_variational(family)
    q, _ = natural_gradient_step(
        q, theta, batch, lambda f, d: -gpx.objectives.elbo(f, d), gamma, max_backoff=0
    )
    return eqx.combine(q, theta)


def build(problem: Problem) -> tuple[Any, Problem]:
    """Return the variational family at the problem's θ and q."""
    return _family(problem, _values(problem)), problem


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

    def value(values: dict[str, Any]) -> Any:
        return gpx.objectives.elbo(_family(problem, values), _batch(problem))

    return dict(jax.jit(jax.grad(value))(_values(problem)))
