"""GPJax's SVGP, jitted: natural gradients for q, Adam for θ, as in its `fit_natgrads`. Served by `serve.py`.

Method `whitened` uses `WhitenedVariationalGaussian`. Method `dual` uses `DualVariationalGaussian`, whose
sites are fixed in an M-step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import gpjax as gpx
import jax
import jax.numpy as jnp
import numpyro.distributions as npd
import optax
from gpjax.kernels.computations import DenseKernelComputation
from gpjax.natural_gradients import natural_gradient_step, partition_variational
from gpjax.parameters import NonNegativeReal, PositiveReal
from gpjax.variational_families import DualVariationalGaussian, WhitenedVariationalGaussian

VERSIONS = ("gpjax", "jax", "jaxlib", "equinox", "numpyro", "optax", "numpy")
HELD = 8
SMALLEST_POSITIVE = 1e-6  # θ = floor + softplus(raw), as in svgpbench
ADAM_EPSILON = 1e-8
FAMILIES = {
    "whitened": (WhitenedVariationalGaussian, gpx.objectives.elbo),
    "dual": (DualVariationalGaussian, gpx.objectives.dual_elbo),
}


def start(threads: int) -> None:
    """Enable float64. XLA takes its threads from the cores that the process is pinned to."""
    jax.config.update("jax_enable_x64", True)


class EM:
    """Steps of an EM iteration on a variational family. Nothing is changed in place."""

    def __init__(self, p: dict[str, Any], method: str) -> None:
        family, self.bound = FAMILIES[method]
        self.e_rate, self.m_rate = jnp.asarray(p["e_rate"]), float(p["m_rate"])
        self.q, self.theta = partition_variational(family(joint_model(p), jnp.asarray(p["Z"])))

    def e_step(self, q: Any, theta: Any, batch: Any) -> Any:
        """Take one natural-gradient step.

        No step here makes the precision indefinite, so the search for shorter steps is off.
        """
        return natural_gradient_step(q, theta, batch, self.loss, self.e_rate, max_backoff=0)[0]

    def m_step(self, adam: optax.GradientTransformation) -> Callable[..., Any]:
        """Return a step of Adam on kernel, likelihood and inducing inputs, with q's own numbers fixed."""

        def step(q: Any, theta: Any, state: Any, batch: Any) -> Any:
            gradient = jax.grad(lambda theta: self.loss(eqx.combine(q, theta), batch))(theta)
            updates, state = adam.update(gradient, state, theta)
            return q, eqx.apply_updates(theta, updates), state

        return step

    def em_step(self, adam: optax.GradientTransformation) -> Callable[..., Any]:
        """Return an iteration: natural-gradient steps, each on its own minibatch, then Adam on another."""
        m_step = self.m_step(adam)

        def step(q: Any, theta: Any, state: Any, batches: Any, last: Any) -> Any:
            for batch in batches:
                q = self.e_step(q, theta, batch)
            return m_step(q, theta, state, last)

        return step

    def loss(self, family: Any, batch: Any) -> Any:
        """Return the negative bound."""
        return -self.bound(family, batch)

    def adam(self) -> optax.GradientTransformation:
        """Return Adam for all parameters but q."""
        return optax.adam(self.m_rate, b1=0.9, b2=0.999, eps=ADAM_EPSILON)


class Step(EM):
    """Step of a variational family at its start."""

    def __init__(self, p: dict[str, Any], method: str, name: str) -> None:
        super().__init__(p, method)
        self.name = name
        self.batch = dataset(p["X"], p["y"], p["n"])
        later = zip(p["X_later"], p["y_later"], strict=True)
        self.later = [dataset(X, y, p["n"]) for X, y in later]
        self.new = jnp.asarray(p["X_new"]), jnp.asarray(p["y_new"])
        if name in ("m_step", "predict"):
            self.q = jax.jit(self.e_step)(self.q, self.theta, self.batch)
        function, arguments = self.step()
        compiled = jax.jit(function)
        self.modes = {"jit": lambda: jax.block_until_ready(compiled(*arguments))}

    def step(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return the function that is compiled, and its arguments."""
        if self.name == "e_step":
            return self.e_step, (self.q, self.theta, self.batch)
        if self.name == "e_step_held":
            return self.e_steps, (self.q, self.theta, self.batch)
        if self.name == "predict":
            return self.predict, (self.q, self.theta, *self.new)
        adam = self.adam()
        start = (self.q, self.theta, adam.init(self.theta))
        if self.name == "m_step":
            return self.m_step(adam), (*start, self.batch)
        batches = [self.batch, *self.later[:-1]]
        return self.em_step(adam), (*start, batches, self.later[-1])

    def e_steps(self, q: Any, theta: Any, batch: Any) -> Any:
        """Take `HELD` steps on one batch. XLA moves K(Z, Z) and its factor out of the loop."""
        return jax.lax.fori_loop(0, HELD, lambda _, q: self.e_step(q, theta, batch), q)

    def predict(self, q: Any, theta: Any, X: Any, y: Any) -> Any:
        """Return log predictive densities and mean predictions of new rows."""
        family = eqx.combine(q, theta)
        f = family.condition(None)(X, covariance="diagonal")
        likelihood = family.model.likelihood
        if isinstance(likelihood, gpx.likelihoods.Gaussian):
            predicted = likelihood(f)
            return npd.Normal(f.mean, jnp.sqrt(predicted.variance)).log_prob(y), predicted.mean
        predicted = likelihood.link_function(f.mean / jnp.sqrt(1.0 + f.variance))
        return predicted.log_prob(y), predicted.mean

    def figure(self, result: Any) -> float:
        """Return the mean log density, or the bound on the batch after the step."""
        if self.name == "predict":
            return float(result[0].mean())
        q, theta = result[:2] if isinstance(result, tuple) else (result, self.theta)
        batch = self.later[-1] if self.name == "em_step" else self.batch
        return float(self.bound(eqx.combine(q, theta), batch))

    def reset(self) -> None:
        """Do nothing, as every call starts from the same state."""


class Learner(EM):
    """Variational family that trains on the batches it is fed."""

    def __init__(self, p: dict[str, Any], method: str) -> None:
        super().__init__(p, method)
        self.n, self.X_new = p["n"], jnp.asarray(p["X_new"])
        self.seen = dataset(p["X"][p["checked"]], p["y"][p["checked"]], self.n)
        self.batches: list[gpx.Dataset] = []
        adam = self.adam()
        start = (self.q, self.theta, adam.init(self.theta))
        # Python numbers have weak types, for which the iteration would be compiled again
        self.at = self.start = jax.tree.map(
            lambda x: jax.lax.convert_element_type(x, x.dtype), start
        )
        self.iteration, self.modes = jax.jit(self.em_step(adam)), {"jit": self.iterate}
        self.elbo_of = jax.jit(lambda q, theta: self.bound(eqx.combine(q, theta), self.seen))
        self.moments_of = jax.jit(self.moments)

    def iterate(self) -> None:
        """Run one iteration on the batches fed last, and wait for its result."""
        arguments = (*self.at, self.batches[:-1], self.batches[-1])
        self.at = jax.block_until_ready(self.iteration(*arguments))

    def feed(self, batches: Any, noise: Any) -> None:
        """Set the rows of each E-step and of the M-step. The draws are not used."""
        self.batches = [dataset(X, y, self.n) for X, y in batches]

    def elbo(self) -> float:
        """Return the family's own bound from the checked rows."""
        return float(self.elbo_of(*self.at[:2]))

    def moments(self, q: Any, theta: Any) -> tuple[Any, Any, Any]:
        """Return mean and variance [1, t] of q(f) at the new rows, and the Gaussian noise variance, or 0."""
        family = eqx.combine(q, theta)
        f = family.condition(None)(self.X_new, covariance="diagonal")
        noise = getattr(family.model.likelihood, "obs_stddev", None)
        return f.mean[None], f.variance[None], 0.0 if noise is None else noise.unwrap() ** 2

    def predict(self) -> tuple[Any, Any, Any]:
        """Return `moments` of the current family."""
        found: tuple[Any, Any, Any] = self.moments_of(*self.at[:2])
        return found

    def figure(self, result: Any) -> float:
        """Return the bound after a call."""
        return self.elbo()

    def reset(self) -> None:
        """Set the family and Adam back to their start."""
        self.at = self.start


def build(problem: dict[str, Any], method: str, step: str) -> Step:
    """Return a step at its start. Raises `NotImplementedError` if GPJax has no such model."""
    refuse(problem)
    return Step(problem, method, step)


def learner(problem: dict[str, Any], method: str, mode: str) -> Learner:
    """Return a model at its start, in the only mode. Raises as `build` does."""
    refuse(problem)
    return Learner(problem, method)


def refuse(problem: dict[str, Any]) -> None:
    """Raise `NotImplementedError` for several latent functions."""
    if int(problem["classes"]) > 1:
        raise NotImplementedError("no variational family of GPJax has several latent functions")


def dataset(X: Any, y: Any, n: Any) -> gpx.Dataset:
    """Return a minibatch of a data set of n rows."""
    return gpx.Dataset(jnp.asarray(X), jnp.asarray(y)[:, None], int(n))


def joint_model(p: dict[str, Any]) -> Any:
    """Build the Matérn-5/2 prior times the likelihood, with the problem's jitter and a positive floor."""
    kernel = gpx.kernels.Matern52(
        lengthscale=Floored(jnp.asarray(p["lengthscales"])),
        variance=Floored(jnp.asarray(p["variance"])),
        compute_engine=JitteredGram(float(p["jitter"])),
    )
    prior = gpx.gps.Prior(kernel, gpx.mean_functions.Zero(), jitter=0.0)
    if str(p["likelihood"]) == "gaussian":
        return prior * gpx.likelihoods.Gaussian(Deviation(jnp.asarray(p["noise_variance"])))
    return prior * gpx.likelihoods.Bernoulli()  # its link is the problem's squashed probit


class JitteredGram(DenseKernelComputation):
    """Gram matrices with the jitter on K(Z, Z) alone. GPJax's own also goes on the data's variances."""

    def __init__(self, jitter: float) -> None:
        self.jitter = jitter

    def _gram(self, kernel: Any, x: Any) -> Any:
        return super()._gram(kernel, x) + self.jitter * jnp.eye(len(x))


class Floored(PositiveReal):
    """Positive parameter with a floor."""

    def __init__(self, value: Any) -> None:
        super().__init__(value - SMALLEST_POSITIVE)

    def unwrap(self) -> Any:
        """Return the value."""
        return SMALLEST_POSITIVE + super().unwrap()


class Deviation(NonNegativeReal):
    """Standard deviation whose square has the floor and is optimised by Adam."""

    def __init__(self, variance: Any) -> None:
        super().__init__(variance - SMALLEST_POSITIVE)

    def unwrap(self) -> Any:
        """Return the value."""
        return jnp.sqrt(SMALLEST_POSITIVE + super().unwrap())
