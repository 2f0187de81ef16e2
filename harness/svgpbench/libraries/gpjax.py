"""Timed steps, training, stability runs and exchanged posteriors of GPJax. Requires GPJax.

`serve.py` loads this file with the Python of GPJax's environment, which has none of svgpbench's packages.

Steps are jitted: natural gradients for q and Adam for θ, as in GPJax's `fit_natgrads`. Method `whitened`
uses `WhitenedVariationalGaussian`. Method `dual` uses `DualVariationalGaussian`, whose sites are fixed in an
M-step.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

# before SciPy is imported: XLA runs LAPACK calls side by side, and their threads would compete
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import equinox as eqx
import gpjax as gpx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as npd
import optax
from gpjax.kernels.computations import DenseKernelComputation
from gpjax.linalg.utils import stabilised_cholesky
from gpjax.natural_gradients import natural_gradient_step, partition_variational
from gpjax.parameters import NonNegativeReal, PositiveReal, val
from gpjax.variational_families import (
    DualVariationalGaussian,
    VariationalGaussian,
    WhitenedVariationalGaussian,
)

from svgpbench.errors import UserError
from svgpbench.libraries.steps import (
    ADAM_EPSILON,
    CACHED_ROWS,
    HELD_STEPS,
    SMALLEST_POSITIVE,
    timed_batches,
)
from svgpbench.libraries.whitened import (
    ExportedPosterior,
    TableScaling,
    foreign_likelihood,
    kernel_class,
    load_whitened,
    missing_likelihood,
    named_kernel,
    plain_table,
    save_whitened,
    whiten,
    with_positive_diagonal,
)

VERSIONS = ("gpjax", "jax", "jaxlib", "equinox", "numpyro", "optax", "numpy")
DEFAULT_BACKOFF = 5  # shorter steps that GPJax tries by default if one leaves the cone
FAMILIES = {
    "whitened": WhitenedVariationalGaussian,
    "dual": DualVariationalGaussian,
}
DEFAULT_SQUASH = 1e-3
"""ε in the link of `gpjax.likelihoods.Bernoulli`."""

KERNELS = {
    "se": gpx.kernels.RBF,
    "matern32": gpx.kernels.Matern32,
    "matern52": gpx.kernels.Matern52,
}


def start(threads: int) -> None:
    """Enable float64. XLA takes the number of its threads from NPROC, which is set."""
    jax.config.update("jax_enable_x64", True)


# --- models ------------------------------------------------------------------------------------


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


class FlooredDeviation(NonNegativeReal):
    """Standard deviation whose square has the floor and is optimised by Adam."""

    def __init__(self, variance: Any) -> None:
        # raw values of the variance: with raw deviations Adam's step would differ from all others'
        super().__init__(variance - SMALLEST_POSITIVE)

    def unwrap(self) -> Any:
        """Return the value."""
        return jnp.sqrt(SMALLEST_POSITIVE + super().unwrap())


def joint_model(p: dict[str, Any], *, library_defaults: bool = False) -> Any:
    """Build the Matérn-5/2 prior times the likelihood; `library_defaults` is as in `EMSteps`."""
    gaussian, noise_variance = str(p["likelihood"]) == "gaussian", p["noise_variance"]
    if library_defaults:
        kernel = gpx.kernels.Matern52(
            lengthscale=jnp.asarray(float(p["lengthscales"])),
            variance=jnp.asarray(float(p["variance"])),
        )
        prior = gpx.gps.Prior(kernel, gpx.mean_functions.Zero(), jitter=float(p["jitter"]))
        deviation: Any = float(np.sqrt(noise_variance))
    else:
        kernel = gpx.kernels.Matern52(
            lengthscale=Floored(jnp.asarray(p["lengthscales"])),
            variance=Floored(jnp.asarray(p["variance"])),
            compute_engine=JitteredGram(float(p["jitter"])),
        )
        prior = gpx.gps.Prior(kernel, gpx.mean_functions.Zero(), jitter=0.0)
        deviation = FlooredDeviation(jnp.asarray(noise_variance)) if gaussian else None
    if gaussian:
        return prior * gpx.likelihoods.Gaussian(deviation)
    return prior * gpx.likelihoods.Bernoulli()  # its link is the problem's squashed probit


def dataset(X: Any, y: Any, n: Any) -> gpx.Dataset:
    """Return a minibatch of a data set of n rows."""
    return gpx.Dataset(jnp.asarray(X), jnp.asarray(y)[:, None], int(n))


# --- benchmarks --------------------------------------------------------------------------------


class EMSteps:
    """Steps of an EM iteration on a variational family. Nothing is changed in place.

    By default the jitter, the floor of positive parameters and the bound are svgpbench's, and a step is not
    shortened. With `library_defaults` they are GPJax's: the jitter is also added to the variances at X, the
    bound is `elbo`, and a step that leaves the cone of negative-definite precisions is shortened.
    """

    def __init__(self, p: dict[str, Any], method: str, *, library_defaults: bool = False) -> None:
        if int(p["classes"]) > 1:
            raise NotImplementedError("no variational family of GPJax has several latent functions")
        self.objective = gpx.objectives.elbo
        if method == "dual" and not library_defaults:
            self.objective = gpx.objectives.dual_elbo
        # with a minibatch and rate of the timed problems no step leaves the cone
        self.max_backoff = DEFAULT_BACKOFF if library_defaults else 0
        self.e_rate, self.m_rate = jnp.asarray(p["e_rate"]), float(p["m_rate"])
        model = joint_model(p, library_defaults=library_defaults)
        self.q, self.theta = partition_variational(FAMILIES[method](model, jnp.asarray(p["Z"])))

    def e_step(self, q: Any, theta: Any, batch: Any) -> Any:
        """Take one natural-gradient step."""
        backoff = {"max_backoff": self.max_backoff}
        return natural_gradient_step(q, theta, batch, self.loss, self.e_rate, **backoff)[0]

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
        return -self.objective(family, batch)

    def adam(self) -> optax.GradientTransformation:
        """Return Adam for all parameters but q."""
        return optax.adam(self.m_rate, b1=0.9, b2=0.999, eps=ADAM_EPSILON)


class GPJaxStep(EMSteps):
    """Step of a variational family at its start."""

    def __init__(self, p: dict[str, Any], method: str, name: str) -> None:
        super().__init__(p, method)
        if name in CACHED_ROWS:
            raise NotImplementedError("GPJax keeps no factors between predictions")
        self.name = name
        self.batches = timed_batches(p, lambda X, y: dataset(X, y, p["n"]))
        self.new = jnp.asarray(p["X_new"]), jnp.asarray(p["y_new"])
        if name in ("m_step", "predict"):
            self.q = jax.jit(self.e_step)(self.q, self.theta, self.batches[0])
        function, arguments = self.step()
        compiled = jax.jit(function)
        self.modes = {"jit": lambda: jax.block_until_ready(compiled(*arguments))}

    def step(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return the function that is compiled, and its arguments."""
        if self.name == "e_step":
            return self.e_step, (self.q, self.theta, self.batches[0])
        if self.name == "e_step_held":
            return self.e_steps, (self.q, self.theta, self.batches[0])
        if self.name == "predict":
            return self.predict, (self.q, self.theta, *self.new)
        adam = self.adam()
        start = (self.q, self.theta, adam.init(self.theta))
        if self.name == "m_step":
            return self.m_step(adam), (*start, self.batches[0])
        return self.em_step(adam), (*start, self.batches[:-1], self.batches[-1])

    def e_steps(self, q: Any, theta: Any, batch: Any) -> Any:
        """Take `HELD_STEPS` steps on one batch. XLA moves K(Z, Z) and its factor out of the loop."""
        return jax.lax.fori_loop(0, HELD_STEPS, lambda _, q: self.e_step(q, theta, batch), q)

    def predict(self, q: Any, theta: Any, X: Any, y: Any) -> Any:
        """Return log predictive densities and mean predictions of new rows."""
        family = eqx.combine(q, theta)
        f = family.condition(None)(X, covariance="diagonal")
        likelihood = family.model.likelihood
        if isinstance(likelihood, gpx.likelihoods.Gaussian):
            predicted = likelihood(f)
            return npd.Normal(f.mean, jnp.sqrt(predicted.variance)).log_prob(y), predicted.mean
        # E[Φ(f)] = Φ(μ/√(1 + v)), and the link is affine in Φ: no quadrature is needed
        predicted = likelihood.link_function(f.mean / jnp.sqrt(1.0 + f.variance))
        return predicted.log_prob(y), predicted.mean

    def figure(self, result: Any) -> float:
        """Return the mean log density, or the bound on the batch after the step."""
        if self.name == "predict":
            return float(result[0].mean())
        q, theta = result[:2] if isinstance(result, tuple) else (result, self.theta)
        batch = self.batches[-1 if self.name == "em_step" else 0]
        return float(self.objective(eqx.combine(q, theta), batch))

    def reset(self) -> None:
        """Do nothing, as every call starts from the same state."""


class GPJaxLearner(EMSteps):
    """Variational family that trains on the batches it is fed."""

    def __init__(self, p: dict[str, Any], method: str, mode: str) -> None:
        super().__init__(p, method)
        self.n, self.X_new = p["n"], jnp.asarray(p["X_new"])
        self.seen = dataset(p["X"][p["checked"]], p["y"][p["checked"]], self.n)
        self.batches: list[gpx.Dataset] = []
        adam = self.adam()
        start = (self.q, self.theta, adam.init(self.theta))
        # Python numbers have weak types, for which the iteration would be compiled again
        self.state = self.start = jax.tree.map(
            lambda x: jax.lax.convert_element_type(x, x.dtype), start
        )
        self.iteration, self.modes = jax.jit(self.em_step(adam)), {"jit": self.iterate}
        self.compiled_elbo = jax.jit(
            lambda q, theta: self.objective(eqx.combine(q, theta), self.seen)
        )
        self.compiled_moments = jax.jit(self.moments)

    def iterate(self) -> None:
        """Run one iteration on the batches fed last, and wait for its result."""
        arguments = (*self.state, self.batches[:-1], self.batches[-1])
        self.state = jax.block_until_ready(self.iteration(*arguments))

    def feed(self, batches: Any, noise: Any) -> None:
        """Set the rows of each E-step and of the M-step. The draws are not used."""
        self.batches = [dataset(X, y, self.n) for X, y in batches]

    def elbo(self) -> float:
        """Return the family's own bound from the checked rows."""
        return float(self.compiled_elbo(*self.state[:2]))

    def moments(self, q: Any, theta: Any) -> tuple[Any, Any, Any]:
        """Return mean and variance [1, t] of q(f) at the new rows, and the Gaussian noise variance, or 0."""
        family = eqx.combine(q, theta)
        f = family.condition(None)(self.X_new, covariance="diagonal")
        noise = getattr(family.model.likelihood, "obs_stddev", None)
        return f.mean[None], f.variance[None], 0.0 if noise is None else noise.unwrap() ** 2

    def predict(self) -> tuple[Any, Any, Any]:
        """Return `moments` of the current family."""
        moments: tuple[Any, Any, Any] = self.compiled_moments(*self.state[:2])
        return moments

    def figure(self, result: Any) -> float:
        """Return the bound after a call."""
        return self.elbo()

    def reset(self) -> None:
        """Set the family and Adam back to their start."""
        self.state = self.start


class GPJaxWalker(EMSteps):
    """Natural-gradient steps at a fixed θ, from q = p, with GPJax's own settings."""

    def __init__(self, p: dict[str, Any], request: dict[str, Any]) -> None:
        jax.config.update("jax_enable_x64", request["dtype"] == "float64")
        rates = {"e_rate": float(request["rate"]), "m_rate": 0.0}
        super().__init__(p | rates, request["method"], library_defaults=True)
        self.p, theta, dual = p, self.theta, request["method"] == "dual"

        def variances(q: Any, X: Any) -> Any:
            family = eqx.combine(q, theta)
            if dual:
                return family.marginals(X)[1]
            return jax.vmap(lambda x: family(x[None]).covariance_matrix[0, 0])(X)

        self.compiled_step = jax.jit(lambda q, batch: self.e_step(q, theta, batch))
        self.compiled_bound = jax.jit(lambda q, batch: self.objective(eqx.combine(q, theta), batch))
        self.compiled_variances = jax.jit(variances)

    def minibatch(self, rows: Any) -> Any:
        """Return these rows of the data."""
        return dataset(self.p["X"][rows], self.p["y"][rows], self.p["n"])

    def step(self, k: int) -> None:
        """Take one natural-gradient step on minibatch `k`."""
        self.q = self.compiled_step(self.q, self.minibatch(self.p["rows"][k]))

    def bound(self) -> float:
        """Return the family's ELBO from the checked rows."""
        return float(self.compiled_bound(self.q, self.minibatch(self.p["checked"])))

    def state(self) -> Any:
        """Return the leaves of q."""
        return jax.tree.leaves(self.q)

    def restore(self, state: Any) -> None:
        """Set q from its leaves."""
        self.q = jax.tree.unflatten(jax.tree.structure(self.q), state)

    def variances(self, k: int) -> Any:
        """Return the variances of q(f) at minibatch `k`, [b]."""
        X = jnp.asarray(self.p["X"][self.p["rows"][k]])
        return np.asarray(self.compiled_variances(self.q, X))


# names that `serve.py` reads
build, learner, natural_gradient_run = GPJaxStep, GPJaxLearner, GPJaxWalker


# --- posteriors --------------------------------------------------------------------------------


class JitteredGaussian(WhitenedVariationalGaussian):
    """Whitened family with a jitter on K(Z, Z) alone.

    The jitter of GPJax's prior, 0 here, would also be added to the variances at X.
    """

    jitter: float = eqx.field(static=True)

    def __init__(self, model: Any, exported: ExportedPosterior) -> None:
        mean, chol = jnp.asarray(exported.mean[0][:, None]), jnp.asarray(exported.chol[0])
        super().__init__(model, jnp.asarray(exported.Z), mean, chol)
        self.jitter = exported.jitter

    def condition(self, train_data: Any) -> Any:
        """Condition as the base class does, with the jitter in the factor of K(Z, Z)."""
        K = self.model.prior.kernel.gram(self._fmt_inducing_inputs()).as_matrix()
        L = stabilised_cholesky(K, self.jitter)
        return eqx.tree_at(lambda q: q.cholesky_kzz, super().condition(train_data), L)


class SquashedProbit(gpx.likelihoods.Bernoulli):
    """Likelihood p(y = 1 | f) = ε + (1 − 2ε) Φ(f); GPJax's has ε = 1e-3."""

    squash: float = eqx.field(static=True, default=0.0)

    def __init__(self, squash: float) -> None:
        super().__init__()
        self.squash = squash

    def link_function(self, f: Any) -> Any:
        """Return p(y | f)."""
        p = self.squash + (1.0 - 2.0 * self.squash) * jax.scipy.special.ndtr(f)
        return npd.Bernoulli(probs=p)


def to_gpjax(path: str | Path) -> Any:
    """Return the whitened family of a posterior in a file; its data are in the model's units.

    Raises `UserError` if the file is not an exported posterior, if GPJax has no such model, or if JAX has
    no float64.
    """
    if not jax.config.jax_enable_x64:
        raise UserError("JAX has no float64 here; set JAX_ENABLE_X64=1 before it is imported")
    exported = load_whitened(path)
    if len(exported.mean) > 1:
        raise UserError(
            f"{path}: {len(exported.mean)} latent functions; families of GPJax have one"
        )
    kind = kernel_class(path, exported, KERNELS, "GPJax")
    scales = exported.lengthscales if len(exported.lengthscales) > 1 else exported.lengthscales[0]
    kernel = kind(
        lengthscale=jnp.asarray(scales),
        variance=jnp.asarray(exported.variance),
        n_dims=exported.Z.shape[1],
    )
    mean = gpx.mean_functions.Zero()
    if len(exported.latent_mean):
        mean = gpx.mean_functions.Constant(jnp.asarray(exported.latent_mean))
    prior = gpx.gps.Prior(kernel, mean, jitter=0.0)
    return JitteredGaussian(prior * _build_likelihood(path, exported), exported)


def from_gpjax(family: Any, path: str | Path, table: TableScaling | None = None) -> Path:
    """Write the posterior of a `VariationalGaussian`, whitened or not, to an .npz file.

    GPJax's own families also add the prior's jitter to the variances at X, and predictions from the file
    lack it. Predictions of a family from `to_gpjax` do not change.

    Args:
        family: a family with a kernel of `KERNELS` on all inputs, and a constant mean.
        path: path of the file.
        table: scaling of the table from which the model's inputs and targets were made; none by default.

    Raises:
        UserError: if svgpbench has no such model, with the part that it lacks.
    """
    kinds = (JitteredGaussian, WhitenedVariationalGaussian, VariationalGaussian)
    # exact types: a subclass may read its mean and root in another way
    if type(family) not in kinds:
        raise UserError(f"{type(family).__name__}: only Gaussians by mean and root cross")
    prior, jitter = family.model.prior, float(getattr(family, "jitter", family.model.prior.jitter))
    if type(prior.mean_function) not in (gpx.mean_functions.Zero, gpx.mean_functions.Constant):
        raise UserError(f"mean {type(prior.mean_function).__name__}: svgpbench's is constant")
    Z = np.asarray(val(family.inducing_inputs), dtype=np.float64)
    mean = np.asarray(val(family.variational_mean), dtype=np.float64).T  # [1, M]
    latent_mean = np.ravel(np.asarray(prior.mean_function(jnp.asarray(Z[:1])), dtype=np.float64))
    chol = np.asarray(val(family.variational_root_covariance), dtype=np.float64)[None]
    # the exact type: whitened families are subclasses, and their mean is that of v
    if type(family) is VariationalGaussian:
        K = np.asarray(prior.kernel.gram(jnp.asarray(Z)).as_matrix()) + jitter * np.eye(len(Z))
        mean, chol = whiten(K, mean - latent_mean, chol)  # its u is f
    name, parameters = _exported_likelihood(family.model.likelihood)
    kernel, chol = named_kernel(prior.kernel, KERNELS), with_positive_diagonal(chol)
    variance = float(val(prior.kernel.variance))
    lengthscales = np.ravel(np.asarray(val(prior.kernel.lengthscale), dtype=np.float64))
    scaling = table or plain_table(Z.shape[1])
    exported = ExportedPosterior(
        kernel,
        variance,
        lengthscales,
        name,
        parameters,
        jitter,
        Z,
        mean,
        chol,
        scaling,
        latent_mean,
    )
    return save_whitened(exported, path)


def _build_likelihood(path: str | Path, exported: ExportedPosterior) -> Any:
    if exported.likelihood == "gaussian":
        return gpx.likelihoods.Gaussian(jnp.sqrt(exported.parameters["noise_variance"]))
    if exported.likelihood == "bernoulli-probit":
        squash = exported.parameters["squash"]
        plain = squash == DEFAULT_SQUASH
        return gpx.likelihoods.Bernoulli() if plain else SquashedProbit(squash)
    raise missing_likelihood(path, exported, "GPJax")


def _exported_likelihood(likelihood: Any) -> tuple[str, dict[str, float]]:
    """Return name and parameters of a likelihood."""
    if type(likelihood) is gpx.likelihoods.Gaussian:
        return "gaussian", {"noise_variance": float(val(likelihood.obs_stddev)) ** 2}
    if isinstance(likelihood, SquashedProbit):
        return "bernoulli-probit", {"squash": likelihood.squash}
    if type(likelihood) is gpx.likelihoods.Bernoulli:
        return "bernoulli-probit", {"squash": DEFAULT_SQUASH}
    raise foreign_likelihood(likelihood)
