"""Adapter of GPJax 1.0: `natural_gradient_step` on variational Gaussians. It has no Student-t likelihood."""

from __future__ import annotations

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

KERNELS = {
    "se": gpx.kernels.RBF,
    "matern32": gpx.kernels.Matern32,
    "matern52": gpx.kernels.Matern52,
}


class JitteredGram(DenseKernelComputation):
    """Gram matrices with the jitter on K(Z, Z) alone. GPJax's own also goes on the data's variances."""

    def __init__(self, jitter: float) -> None:
        self.jitter = jitter

    def _gram(self, kernel: Any, x: Any) -> Any:
        return super()._gram(kernel, x) + self.jitter * jnp.eye(len(x))


class Probit(gpx.likelihoods.Bernoulli):
    """Likelihood p(y = 1 | f) = Φ(f); GPJax's is squashed to [1e-3, 1 − 1e-3]."""

    def link_function(self, f: Any) -> Any:
        """Return p(y | f)."""
        return npd.Bernoulli(probs=jax.scipy.special.ndtr(f))


def _values(problem: Problem) -> dict[str, Any]:
    """Return the constrained parameters in which the bound is differentiated."""
    names = ("variance", "lengthscales", "mean_constant", "Z", "q_mean", "q_factor")
    values = {name: jnp.asarray(getattr(problem, name), dtype=float) for name in names}
    if problem.likelihood == "gaussian":
        values["noise_variance"] = jnp.asarray(problem.likelihood_parameters["noise_variance"])
    return values


def _family(problem: Problem, values: dict[str, Any]) -> Any:
    """Return the variational family at these parameters."""
    scales, nodes = values["lengthscales"], problem.info["gauss_hermite_nodes"] or 20
    kernel = KERNELS[problem.kernel](
        lengthscale=PositiveReal(scales if len(scales) > 1 else scales[0]),
        variance=PositiveReal(values["variance"]),
        compute_engine=JitteredGram(problem.jitter),
    )
    mean = gpx.mean_functions.Constant(values["mean_constant"])
    if problem.likelihood == "gaussian":
        deviation = NonNegativeReal(jnp.sqrt(values["noise_variance"]))
        likelihood: Any = gpx.likelihoods.Gaussian(deviation)
    elif problem.likelihood == "bernoulli-probit":
        likelihood = Probit(integrator=GHQuadratureIntegrator(nodes))
    elif problem.likelihood == "poisson":
        likelihood = gpx.likelihoods.Poisson(integrator=GHQuadratureIntegrator(nodes))
    else:
        raise NotImplementedError(f"GPJax has no likelihood {problem.likelihood!r}")
    model = gpx.gps.Prior(kernel, mean, jitter=0.0) * likelihood
    q_mean = values["q_mean"][:, None]
    if problem.whitened:
        return WhitenedVariationalGaussian(model, values["Z"], q_mean, values["q_factor"])
    q_mean = q_mean + values["mean_constant"]  # its u is f(Z)
    return VariationalGaussian(model, values["Z"], q_mean, values["q_factor"])


def _batch(problem: Problem) -> Any:
    return gpx.Dataset(
        jnp.asarray(problem.X_batch), jnp.asarray(problem.y_batch)[:, None], problem.n
    )


def _loss(family: Any, batch: Any) -> Any:
    return -gpx.objectives.elbo(family, batch)


def build(problem: Problem) -> tuple[Any, Problem]:
    """Return the variational family at the problem's θ and q."""
    return _family(problem, _values(problem)), problem


def bound(built: tuple[Any, Problem]) -> dict[str, Any]:
    """Return the bound and KL."""
    family, problem = built
    return {"bound": gpx.objectives.elbo(family, _batch(problem)), "kl": family.prior_kl()}


def predict(built: tuple[Any, Problem], X: Any) -> dict[str, Any]:
    """Return the marginals of q(f)."""
    f = built[0].condition(None)(jnp.asarray(X), covariance="diagonal")
    return {"mean": f.mean, "variance": f.variance}


def step(built: tuple[Any, Problem], gamma: float) -> tuple[Any, Problem]:
    """Take one natural-gradient step."""
    family, problem = built
    q, theta = partition_variational(family)
    rate = jnp.asarray(gamma)
    q = natural_gradient_step(q, theta, _batch(problem), _loss, rate, max_backoff=0)[0]
    return eqx.combine(q, theta), problem


def gradient(built: tuple[Any, Problem]) -> dict[str, Any]:
    """Return the gradient of the bound in constrained parameters."""
    problem = built[1]
    return dict(jax.grad(lambda x: -_loss(_family(problem, x), _batch(problem)))(_values(problem)))
